"""Ids as arrays, texts that are whole numbers, and orders of names."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf import names
from neucrowd_tf.io.table import encode
from neucrowd_tf.names import natural_key


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "uint64"])
def test_whole_numbers_become_int64(kind: str) -> None:
    numbers = np.array([3, 1], dtype=kind)
    for values in (numbers, list(numbers), numbers.tolist()):
        array = names.as_name_array(values)
        assert array.dtype == np.int64 and array.tolist() == [3, 1]


def test_other_ids_keep_their_types() -> None:
    large = names.as_name_array(np.array([2**63], dtype=np.uint64))
    assert large.dtype == object and type(large[0]) is int and large[0] == 2**63
    for values in (np.array([True, False]), [np.True_, False]):
        array = names.as_name_array(values)
        assert array.dtype == bool and array.tolist() == [True, False]
    mixed = names.as_name_array([np.str_("a"), np.float64(0.5), (1, 2), np.datetime64(1, "ns")])
    assert [type(name) for name in mixed] == [str, float, tuple, np.datetime64]
    assert names.as_name_array([]).dtype == object


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_dates_and_durations_do_not_become_numbers(unit: str) -> None:
    day = np.datetime64("2020-01-01", unit)
    for name in (day, np.timedelta64(1, unit)):
        for values in ([name], np.array([name])):
            array = names.as_name_array(values)
            assert array.dtype == object and type(array[0]) is type(name) and array[0] == name
    assert names.spelt(day).startswith("2020-01-01") and names.spelt(np.int64(7)) == "7"
    assert names.spelt(np.str_("a")) == "'a'"


def test_texts_that_are_whole_numbers() -> None:
    for text in ("0", "7", "-7", "9" * 18, "-" + "9" * 18):
        assert names.typed_names([text]).tolist() == [int(text)], text
    for text in ("-0", "07", "+7", "1_0", "", "1" + "0" * 18):
        assert names.typed_names([text]).tolist() == [text], text
    assert names.plain_integers([]) and names.typed_names([]).dtype == np.int64


def test_orders_and_lists() -> None:
    assert sorted(["b10", "b2", "2", "10"], key=natural_key) == ["2", "10", "b2", "b10"]
    assert names.listed(["a", "b"], 2) == "a, b" and names.listed(["a", "b"], 1) == "a, ..."
    texts, codes = encode(["b", "a", "b"])
    assert texts == ["b", "a"] and codes.tolist() == [0, 1, 0]


def test_aliases() -> None:
    assert names.roles_of(["Task-No", "raterids", "Labels", "label_no"]) == {
        "task": ["Task-No"],
        "worker": ["raterids"],
        "label": ["Labels"],
    }
    assert names.close_names("labl", ["label", "labels_per_item"]) == ["label"]
    assert names.close_names("items", ["labels_per_item", "seed"]) == ["labels_per_item"]
