"""Controls: variants of the papers' methods that only a study of ours needs."""
