"""The report's pictures: SVG in the page's colours, and confusion matrices as PNG."""

from __future__ import annotations

import base64
import dataclasses
import io
import re
import struct
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.report.text import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

# A colour that nothing else has; the finished SVG has the page's text colour instead.
INK = "#010203"
COLOURS = (
    *("#3b7dd8", "#e07b39", "#2e9e6b", "#c2487a", "#8a63d2"),
    *("#b59a1c", "#3aa6b9", "#8c6d5a", "#7f8c2d", "#d1495b"),
)
RIGHT, WRONG = (22, 130, 70), (200, 60, 40)
WIDTH = 4.4
MOST_BARS = 20
_STYLE = {
    "font.size": 9,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor"), "none"),
    "svg.fonttype": "path",
    "text.parse_math": False,
    "savefig.dpi": 144,
    "figure.dpi": 144,
}


class Pictures:
    """Draws pictures; each method returns SVG text.

    Make one for each page: it gives every picture ids of its own.

    Raises:
        ImportError: matplotlib is not installed.
    """

    def __init__(self) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self._figure, self._canvas = Figure, FigureCanvasSVG
        self._count = 0

    def bars(self, names: Sequence[Any], series: Mapping[str, Sequence[float]], label: str) -> str:
        """Draws horizontal bars, a group for each name (at most 20), a colour for each series."""
        names = [shown(name, 24) for name in list(names)[:MOST_BARS]]
        height = 0.8 / len(series)

        def plot(figure: Figure, axes: Any) -> None:
            for i, (label_of, values) in enumerate(series.items()):
                places = np.arange(len(names)) + (i - (len(series) - 1) / 2) * height
                axes.barh(
                    *(places, list(values)[:MOST_BARS], height * 0.92),
                    color=COLOURS[i % len(COLOURS)],
                    label=label_of,
                )
            axes.set_yticks(np.arange(len(names)), names)
            axes.invert_yaxis()
            axes.set_xlabel(label)
            if len(series) > 1:
                figure.legend(loc="outside upper center", ncols=len(series))

        return self._draw(max(1.3, 0.75 + 0.24 * len(names) * max(1, len(series) * 0.7)), plot)

    def histogram(self, values: NDArray[Any], label: str, unit: str) -> str:
        """Draws how often each number occurs: one bar per value, or bins for many values."""
        values = np.asarray(values)
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 1)
        bins: Any = int(np.clip(len(values) / 4, 6, 30))
        if high - low <= 30:
            bins = np.arange(low - 0.5, high + 1.5)

        def plot(_: Figure, axes: Any) -> None:
            axes.hist(values, bins=bins, color=COLOURS[0], rwidth=0.9)
            axes.set_xlabel(label)
            axes.set_ylabel(unit)
            axes.locator_params(axis="both", integer=True, nbins=7, min_n_ticks=1)

        return self._draw(2.0, plot)

    def _draw(self, height: float, plot: Callable[[Figure, Any], None]) -> str:
        """Returns the SVG of what `plot` draws."""
        import matplotlib

        self._count += 1
        stream = io.StringIO()
        style = {**_STYLE, "svg.hashsalt": f"picture-{self._count}"}
        with matplotlib.rc_context(style), warnings.catch_warnings():
            figure = self._figure(figsize=(WIDTH, height), layout="constrained")
            plot(figure, figure.subplots())
            warnings.simplefilter("ignore")  # glyphs that the font lacks are drawn as boxes
            no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            self._canvas(figure).print_svg(stream, metadata=no_metadata)
        text = stream.getvalue()
        text = text[text.index("<svg") :]
        # Comments repeat the texts that are drawn; the page's style sheet sets the size.
        text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        for _ in range(2):
            text = re.sub(r'(<svg [^>]*?) (?:width|height)="[^"]*"', r"\1", text, count=1)
        # Several pictures share one page, so that ids need a prefix.
        text = re.sub(r'(\bid="|href="#|url\(#)', rf"\1p{self._count}-", text)
        return text.replace(INK, "currentColor").strip()


@dataclasses.dataclass(frozen=True)
class Page:
    """The means of a page, and what it had to leave out.

    Attributes:
        artist: draws its pictures; None for none.
        downloads: whether its tables can be saved as CSV.
        missing: a sentence for each thing that could not be shown.
    """

    artist: Pictures | None = None
    downloads: bool = True
    missing: list[str] = dataclasses.field(default_factory=list)

    def draw(self, caption: str, kind: str, *values: Any) -> list[dict[str, str]]:
        """Returns a picture with its caption, or nothing without an artist.

        A picture that cannot be drawn is named in `missing`.

        Args:
            caption: of the picture.
            kind: the artist's method.
            *values: its arguments.
        """
        from markupsafe import Markup

        if self.artist is None:
            return []
        try:
            return [{"svg": Markup(getattr(self.artist, kind)(*values)), "caption": caption}]
        except Exception as error:  # a picture that fails must not cost the run its report
            failed = f"The picture “{caption}” could not be drawn ({type(error).__name__})."
            self.missing.append(failed)
            return []


def heatmap(matrix: NDArray[Any]) -> str:
    """Returns a confusion matrix as a data address of a PNG, one pixel per cell of `[C, C]`.

    True classes are rows, labels are columns. The diagonal is green, mistakes are red. Opacity is
    the cell's probability, so that it is readable on light and dark pages. NaN is transparent.
    """
    shares = np.clip(np.nan_to_num(np.asarray(matrix, dtype=np.float64)), 0.0, 1.0)
    pixels = np.empty((*shares.shape, 4), dtype=np.uint8)
    pixels[..., :3] = WRONG
    diagonal = np.arange(min(shares.shape))
    pixels[diagonal, diagonal, :3] = RIGHT
    pixels[..., 3] = np.round(255 * shares)
    height, width = shares.shape
    # Each row begins with its filter: none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode("ascii")
