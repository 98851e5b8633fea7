"""Benchmark datasets, one module each; importing this package registers them all by name."""

from data import bundled, hotel, labelme, music, synthetic, table
from data.cards import card_table, card_text, dataset_statistics
from data.one_vs_rest import register_one_vs_rest

register_one_vs_rest("labelme", 8)
register_one_vs_rest("digits", 10)

__all__ = ["bundled", "card_table", "card_text", "dataset_statistics", "hotel", "labelme", "music", "synthetic", "table"]
