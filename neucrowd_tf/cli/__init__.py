"""What commands and runs share: flags of labels, exit codes, outputs, the files of a run."""
