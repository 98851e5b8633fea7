"""Each method: a package or a file per paper, crowd layers, two-stage methods, and `auto`."""
