"""A folder of images as features."""

from __future__ import annotations

import builtins
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from neucrowd_tf.declare import registry
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.images import read_images
from tests.cases import raises
from tests.crowds import array_of

image = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")


def write(folder: Path, sizes: dict[str, tuple[int, int]]) -> Path:
    folder.mkdir()
    for i, (name, size) in enumerate(sizes.items()):
        image.new("RGB", size, (51 * i, 0, 255)).save(folder / name)
    return folder


def test_images_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Red is 51 of 255, so 0.2, for the image that was written second and is first by name."""
    folder = write(tmp_path / "i", {"b.png": (4, 3), "a.png": (4, 3)})
    (folder / "notes.txt").write_text("text")
    items, rows = read_images(folder)
    assert items.tolist() == ["a", "b"] and rows.shape == (2, 3, 4, 3) and rows.dtype == np.float32
    assert_allclose(rows[:, 0, 0], array_of("0.2 0 1; 0 0 1"), atol=1e-6)
    assert read_images(folder, 8)[1].shape == (2, 8, 8, 3)


def test_images_as_they_are_shown(tmp_path: Path) -> None:
    """A photograph on its side, a transparent picture, 16 bits."""
    for name in "abc":
        (tmp_path / name).mkdir()
    photo, turned = image.new("RGB", (4, 2), "white"), image.Exif()
    turned[0x0112] = 6  # a quarter turn
    photo.save(tmp_path / "a" / "x.jpg", exif=turned)
    assert read_images(tmp_path / "a")[1].shape == (1, 4, 2, 3)
    image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(tmp_path / "b" / "x.png")
    assert (read_images(tmp_path / "b")[1] == 1.0).all()
    image.fromarray(np.full((2, 2), 13107, np.uint16)).save(tmp_path / "c" / "x.png")
    assert_allclose(read_images(tmp_path / "c")[1], 0.2, atol=1e-4)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"a.png": (4, 3), "b.png": (5, 3)}, r"b.png: the image has 3x5 pixels, .*--image_size"),
        ({"a.png": (4, 3), "a.bmp": (4, 3)}, "two images are named 'a'"),
        ({}, r"it has no images \(.png"),
    ],
)
def test_folders_that_are_rejected(
    tmp_path: Path, sizes: dict[str, tuple[int, int]], message: str
) -> None:
    raises(DataError, message, read_images, write(tmp_path / "i", sizes))


def test_an_image_of_too_many_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "MAX_IMAGE_PIXELS", 5)
    with pytest.raises(DataError, match=r"a\.png: the image has more pixels.*Scale the image down"):
        read_images(write(tmp_path / "i", {"a.png": (4, 3)}))


def test_a_damaged_image_and_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no image")
    raises(DataError, r"a\.png: this is not an image", read_images, tmp_path)
    raises(DataError, "there is no such folder", read_images, tmp_path / "none")


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *arguments, **options):
        if name.split(".")[0] == "PIL":
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    (tmp_path / "day.png").touch()
    with pytest.raises(
        UsageError, match=r"pip install pillow \(in a clone: pip install '\.\[images\]'\)"
    ):
        read_images(tmp_path)


def test_images_as_a_dataset(tmp_path: Path) -> None:
    import neucrowd_tf.datasets.table  # noqa: F401

    folder = write(tmp_path / "i", {f"t{i}.png": (4, 4) for i in range(6)})
    rows = [f"t{i},w{j},{i % 2}" for i in range(6) for j in range(2)]
    (tmp_path / "a.csv").write_text("\n".join(["task,worker,label", *rows]) + "\n")
    loaded = registry.dataset("table").load(
        None, 0, images=folder, annotations=tmp_path / "a.csv", image_size=2
    )
    assert loaded.features.shape[1:] == (2, 2, 3) and loaded.feature_names is None
