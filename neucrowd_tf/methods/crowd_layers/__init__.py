"""Crowd layers, one file each: citation, head, Keras model, estimator and registration."""
