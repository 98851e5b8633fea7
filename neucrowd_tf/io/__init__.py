"""Each kind of file once: text, CSV, features, images, annotations."""
