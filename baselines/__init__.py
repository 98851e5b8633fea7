"""What the papers compare with. Importing this package registers every method in it."""

from baselines import deep_labels, metric_learning, raykar, softprob, two_stage

__all__ = ["deep_labels", "metric_learning", "raykar", "softprob", "two_stage"]
