"""What in a table of labels is no label, no annotator and no task."""
