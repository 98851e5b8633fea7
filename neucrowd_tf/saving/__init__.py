"""Fitted objects in files: saved and loaded without pickle, and exported for serving."""
