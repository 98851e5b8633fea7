"""What the papers compare with. Importing this package registers every method in it."""

from baselines import raykar, softprob, two_stage

__all__ = ["raykar", "softprob", "two_stage"]
