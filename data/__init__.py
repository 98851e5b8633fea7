"""Benchmark datasets, one module each; importing this package registers them all by name."""

from data import bundled, hotel, synthetic, table
from data.cards import card_table, card_text, dataset_statistics

__all__ = ["bundled", "card_table", "card_text", "dataset_statistics", "hotel", "synthetic", "table"]
