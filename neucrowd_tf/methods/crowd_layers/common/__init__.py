"""What crowd layers share: heads, models, losses, base classifiers and estimators."""
