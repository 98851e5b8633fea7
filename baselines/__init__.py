"""What the papers compare with. Importing this package registers every method in it."""

from baselines import auto, cpc, deep_labels, mbem, metric_learning, raykar, smote_two_stage, softprob, two_stage

__all__ = ["auto", "cpc", "deep_labels", "mbem", "metric_learning", "raykar", "smote_two_stage", "softprob", "two_stage"]
