"""Measures the certainty of inferred labels on crowds whose true labels are known."""
