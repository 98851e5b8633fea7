"""CIFAR-10N and CIFAR-10H on small files of the published layouts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from data import cifar, cifar10h
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import DataError, UsageError
from tests.cases import raises


def write_batch(path: Path, labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """Writes images of random pixels and returns them `[M, 3, 32, 32]`."""
    images = default_rng(seed).integers(256, size=(len(labels), 3, 32, 32), dtype=np.uint8)
    records = np.concatenate(
        [labels.astype(np.uint8)[:, None], images.reshape(len(labels), -1)], axis=1
    )
    path.write_bytes(records.tobytes())
    return images


def test_binary_layout(tmp_path: Path) -> None:
    """Channel first in the file, channel last in memory; the label is the first byte."""
    written = write_batch(tmp_path / "batch.bin", np.array([3, 9]))
    images, labels = cifar.read_batch(tmp_path / "batch.bin")
    assert images.shape == (2, 32, 32, 3) and labels.tolist() == [3, 9]
    assert images[1, 5, 7, 2] == written[1, 2, 5, 7]
    features = cifar.as_features(images)
    assert features.dtype == np.float32
    assert features[1, 5, 7, 2] == np.float32(written[1, 2, 5, 7]) / np.float32(255)
    (tmp_path / "short.bin").write_bytes(b"\0" * 3072)
    with pytest.raises(DataError, match=r"short\.bin: expected records of 3073 bytes"):
        cifar.read_batch(tmp_path / "short.bin")
    write_batch(tmp_path / "label.bin", np.array([3, 10]))
    with pytest.raises(
        DataError, match=r"label\.bin: row 1: expected a class code from 0 to 9, received 10"
    ):
        cifar.read_batch(tmp_path / "label.bin")


@pytest.fixture
def cifar10n(tmp_path: Path) -> Path:
    """Batches 1 and 3 of 60 images each: tasks 0 to 59 and 20000 to 20059; annotators a and b label
    all, c only task 49999.
    """
    folder = tmp_path / "cifar10n"
    folder.mkdir()
    labels = np.arange(60) % 10
    for number in (1, 3):
        write_batch(folder / f"data_batch_{number}.bin", labels, number)
    write_batch(folder / "test_batch.bin", np.arange(20) % 10, 9)
    tasks = np.concatenate([np.arange(60), 20000 + np.arange(60)])
    rows = [
        (task, worker, (task + shift) % 10)
        for worker, shift in (("a", 0), ("b", 1))
        for task in tasks
    ]
    pd.DataFrame([(49999, "c", 4), *rows], columns=["task", "worker", "label"]).to_csv(
        folder / "annotations.csv", index=False
    )
    return tmp_path


def test_cifar10n_matches_tasks_to_images(cifar10n: Path) -> None:
    dataset = registry.dataset("cifar10n").load(cifar10n)
    assert dataset.annotations.instance_names[[0, 59, 60, 119]].tolist() == [0, 59, 20000, 20059]
    assert dataset.annotations.annotator_names.tolist() == ["a", "b"]
    dense = dataset.annotations.to_dense()
    assert (dense[:, 0] == dataset.truth).all() and (dense[:, 1] == (dataset.truth + 1) % 10).all()
    assert dataset.class_names[dataset.truth[:3]].tolist() == ["airplane", "automobile", "bird"]
    assert len(dataset.test) == 20
    few = registry.dataset("cifar10n").load(cifar10n, size=70)
    assert few.annotations.instance_names[-1] == 20009
    assert (few.features == dataset.features[:70]).all()


def test_cifar10n_long_tail(cifar10n: Path) -> None:
    """12 images a class: 12 * 4 ** (-c / 9) = 12, 10.3, 8.8, 7.6, 6.5, 5.6, 4.8, 4.1, 3.5, 3."""
    dataset = registry.dataset("cifar10n_lt").load(cifar10n, ratio=4.0)
    assert np.bincount(dataset.truth).tolist() == [12, 10, 8, 7, 6, 5, 4, 4, 3, 3]
    assert (dataset.annotations.to_dense()[:, 0] == dataset.truth).all()
    with pytest.raises(DataError, match="one class has none"):
        registry.dataset("cifar10n").load(cifar10n, ratio=4.0, size=5)


def test_options_that_are_no_numbers_of_images_or_annotators(tmp_path: Path) -> None:
    for name, option, value in (
        ("cifar10n", "ratio", 0.5),
        ("cifar10n", "ratio", float("nan")),
        ("cifar10n", "size", "many"),
        ("cifar100n", "size", -5),
        ("cifar10h", "annotators", -1),
        ("digits", "seed", -1),
        ("digits", "seed", 1.5),
    ):
        with pytest.raises(UsageError, match=f"^{option}: expected .*, received {value!r}"):
            registry.dataset(name).load(tmp_path, **{option: value})


def test_cifar10n_cannot_be_downloaded_or_hold_other_labels(cifar10n: Path) -> None:
    with pytest.raises(
        DataError, match=r"cifar10n: expected --data_dir to name a folder .* cannot be downloaded"
    ):
        registry.dataset("cifar10n").load(None)
    path = cifar10n / "cifar10n" / "annotations.csv"
    path.write_text(path.read_text() + "5,c,10\n")
    raises(DataError, r"annotations\.csv: .*'10'", registry.dataset("cifar10n").load, cifar10n)


@pytest.fixture
def cifar_h(tmp_path: Path) -> Path:
    """2,000 test images; annotator k of 60 labels 300 of them and is wrong on the first 5k; ten
    attention checks each.
    """
    folder = tmp_path / "cifar10h"
    folder.mkdir()
    truth = np.arange(2000) % 10
    write_batch(folder / "test_batch.bin", truth)
    generator = default_rng(0)
    frames = []
    for annotator in range(60):
        tasks = generator.permutation(1900)[:300]  # the last 100 images have no labels
        true = truth[tasks]
        chosen = np.where(np.arange(300) < 5 * annotator, (true + 1) % 10, true)
        frames.append(pd.DataFrame([tasks, chosen, true]).T.assign(check=0, annotator=annotator))
        frames.append(pd.DataFrame([[-99999, 3, 3, 1, annotator]] * 10, columns=frames[0].columns))
    frame = pd.concat(frames).assign(chosen_category="cat")
    names = [cifar10h.TASK, cifar10h.CHOSEN, cifar10h.TRUE, cifar10h.CHECK, "annotator_id"]
    frame.columns = [*names, "chosen_category"]
    frame.to_csv(folder / "cifar10h-raw.csv", index=False)
    return tmp_path


def test_cifar10h_crowding(cifar_h: Path) -> None:
    """The least accurate annotators are those with the largest k; an image is in training or in
    test, never in both.
    """
    dataset = registry.dataset("cifar10h").load(cifar_h, annotators=3)
    assert sorted(dataset.annotations.annotator_names.tolist()) == [57, 58, 59]
    assert (dataset.annotations.labels_per_annotator() == 300).all()  # attention checks are gone
    train, test = dataset.annotations.instance_names, dataset.test.names
    assert not set(train.tolist()) & set(test.tolist())
    assert len(train) + len(test) == 2000
    assert set(range(1900, 2000)) <= set(test.tolist())
    assert (dataset.truth == train % 10).all() and (dataset.test.labels == test % 10).all()
    images, _ = cifar.read_batch(cifar_h / "cifar10h" / "test_batch.bin")
    assert (dataset.features == cifar.as_features(images[train])).all()
    # Annotator 59 is right on its last 5 of 300, 58 on 10, 57 on 15.
    right = dataset.annotations.labels == dataset.truth[dataset.annotations.instances]
    names = dataset.annotations.annotator_names[dataset.annotations.annotators]
    assert [int(right[names == k].sum()) for k in (57, 58, 59)] == [15, 10, 5]


def test_cifar10h_dasc(cifar_h: Path) -> None:
    dataset = registry.dataset("cifar10h_lt").load(cifar_h)
    assert dataset.annotations.num_annotators == 49
    assert np.bincount(dataset.test.labels).tolist() == [100] * 10
    assert not set(dataset.annotations.instance_names.tolist()) & set(dataset.test.names.tolist())
    sizes = np.bincount(dataset.truth)
    assert (np.diff(sizes) <= 0).all() and sizes[0] / sizes[-1] == pytest.approx(5, rel=0.05)


def test_cifar10h_refuses(cifar_h: Path) -> None:
    path = cifar_h / "cifar10h" / "cifar10h-raw.csv"
    text = path.read_text()
    path.write_text(text.replace("chosen_label", "chosen_lable", 1))
    with pytest.raises(DataError, match=r"cifar10h-raw\.csv: .*'chosen_label'"):
        registry.dataset("cifar10h").load(cifar_h)
    path.write_text(text)
    write_batch(cifar_h / "cifar10h" / "test_batch.bin", (np.arange(2000) + 1) % 10)
    with pytest.raises(DataError, match=r"expected the image's class as true_label, received \d"):
        registry.dataset("cifar10h").load(cifar_h)


def test_cifar100n_reads_the_second_label_byte(tmp_path: Path) -> None:
    folder = tmp_path / "cifar100n"
    folder.mkdir()
    labels = np.arange(0, 100, 5)
    for name in ("train.bin", "test.bin"):
        records = np.full((20, 3074), 7, dtype=np.uint8)  # 7 is the superclass
        records[:, 1] = labels
        (folder / name).write_bytes(records.tobytes())
    rows = [
        (task, f"w{task // 5}", (label + task // 16) % 100) for task, label in enumerate(labels)
    ]
    frame = pd.DataFrame([*rows, (49999, "last", 99)], columns=["task", "worker", "label"])
    frame.to_csv(folder / "annotations.csv", index=False)
    dataset = registry.dataset("cifar100n").load(tmp_path, size=18)
    assert dataset.truth.tolist() == labels[:18].tolist() and dataset.num_classes == 100
    assert dataset.annotations.annotator_names.tolist() == ["w0", "w1", "w2", "w3"]
    assert dataset.annotations.labels.tolist() == [row[2] for row in rows[:18]]
    assert len(dataset.test) == 20 and dataset.features.shape == (18, 32, 32, 3)
