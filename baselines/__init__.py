"""What the papers compare with. Importing this package registers every method in it."""

from baselines import two_stage

__all__ = ["two_stage"]
