"""Ids of tasks, annotators and classes, and how they are spelt."""
