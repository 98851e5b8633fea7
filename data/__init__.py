"""Benchmark datasets, one module each; importing this package registers them all by name."""

from data import (
    cifar10h,
    cifar10n,
    cifar100n,
    gisette,
    gsad,
    hotel,
    labelme,
    lewidi,
    music,
    rte_text,
    synthetic,
    usps,
)
from data.cards import card_text, dataset_statistics
from data.one_vs_rest import register_one_vs_rest
from neucrowd_tf.datasets import bundled, table  # what one-vs-rest parts, and the table

register_one_vs_rest("labelme", 8)
register_one_vs_rest("digits", 10)
register_one_vs_rest("cifar10n", 10)
