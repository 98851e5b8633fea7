"""Annotator heads as Keras layers, one a file."""
