"""The report's pictures: matplotlib figures as SVG that takes its ink from the page, so that they
read in light and dark.
"""

from __future__ import annotations

import dataclasses
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.report.text import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

# A colour that nothing else has; in the finished SVG the page's text colour stands in its place.
INK = "#010203"
COLOURS = (
    "#3b7dd8",
    "#e07b39",
    "#2e9e6b",
    "#c2487a",
    "#8a63d2",
    "#b59a1c",
    "#3aa6b9",
    "#8c6d5a",
    "#7f8c2d",
    "#d1495b",
)
GREY = "#8a8a8a"  # reads on light and dark pages, where points are drawn as pixels
SIZE = (4.4, 2.9)
MOST_BARS = 20

_STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "path",
    "text.parse_math": False,
    "lines.linewidth": 1.4,
    "savefig.dpi": 144,
    "figure.dpi": 144,
}


class Pictures:
    """Draws pictures; each method returns SVG text. Make one for each page: it gives every picture
    ids of its own.

    Raises:
        ImportError: matplotlib is not installed.
    """

    def __init__(self) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self._figure, self._canvas = Figure, FigureCanvasSVG
        self._count = 0

    # ----------------------------------------------------------------- the crowd

    def bars(self, names: Sequence[Any], series: Mapping[str, Sequence[float]], label: str) -> str:
        """Horizontal bars, a group for each name and a colour for each series; the first 20
        names."""
        names = [shown(name, 24) for name in list(names)[:MOST_BARS]]
        with self._style():
            figure, axes = self._axes(
                (SIZE[0], max(1.3, 0.75 + 0.24 * len(names) * max(1, len(series) * 0.7)))
            )
            height = 0.8 / len(series)
            for i, (what, values) in enumerate(series.items()):
                places = np.arange(len(names)) + (i - (len(series) - 1) / 2) * height
                axes.barh(
                    places,
                    list(values)[:MOST_BARS],
                    height * 0.92,
                    color=COLOURS[i % len(COLOURS)],
                    label=what,
                )
            axes.set_yticks(np.arange(len(names)), names)
            axes.invert_yaxis()
            axes.set_xlabel(label)
            if len(series) > 1:
                figure.legend(loc="outside upper center", ncols=len(series))
            return self._svg(figure)

    def histogram(self, values: NDArray[Any], label: str, unit: str) -> str:
        """How often each number occurs: a bar a value where there are few, bins otherwise."""
        values = np.asarray(values)
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 1)
        with self._style():
            figure, axes = self._axes((SIZE[0], 2.0))
            bins: Any = (
                np.arange(low - 0.5, high + 1.5)
                if high - low <= 30
                else int(np.clip(len(values) / 4, 6, 30))
            )
            axes.hist(values, bins=bins, color=COLOURS[0], rwidth=0.9)
            axes.set_xlabel(label)
            axes.set_ylabel(unit)
            axes.locator_params(axis="both", integer=True, nbins=7, min_n_ticks=1)
            return self._svg(figure)

    # ----------------------------------------------------------------- the model

    def curves(self, stages: Mapping[str, tuple[NDArray[Any], NDArray[Any]]]) -> str:
        """One value over epochs (or rounds), a line for each stage of training."""
        with self._style():
            figure, axes = self._axes((SIZE[0], 2.3))
            for i, (stage, (steps, values)) in enumerate(stages.items()):
                marker = "o" if len(steps) < 8 else None
                axes.plot(
                    steps,
                    values,
                    color=COLOURS[i % len(COLOURS)],
                    label=shown(stage or "training", 24),
                    marker=marker,
                    markersize=3,
                )
            axes.set_xlabel(
                "epoch"
                if max((len(steps) for steps, _ in stages.values()), default=0) > 8
                else "epoch or round"
            )
            axes.locator_params(axis="x", integer=True, nbins=7)
            if len(stages) > 1:
                figure.legend(loc="outside upper center", ncols=3)
            return self._svg(figure)

    def calibration(
        self, truth: NDArray[np.int64], probabilities: NDArray[Any], bins: int = 10
    ) -> str:
        """Accuracy by confidence, and how many predictions each bin holds."""
        confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
        place = np.minimum((confidence * bins).astype(int), bins - 1)
        count = np.bincount(place, minlength=bins)
        filled = count > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            x = np.bincount(place, confidence, bins) / count
            y = np.bincount(place, right, bins) / count
        with self._style():
            figure = self._new((SIZE[0], 3.2))
            top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
            top.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle="--", alpha=0.5)
            error = 1.96 * np.sqrt(np.maximum(y * (1 - y), 0)[filled] / count[filled])
            top.errorbar(
                x[filled],
                y[filled],
                yerr=error,
                color=COLOURS[0],
                marker="o",
                markersize=4,
                linewidth=1.2,
                capsize=2,
            )
            top.set_ylabel("accuracy")
            top.set_xlim(min(0.5, 1 / probabilities.shape[1]) - 0.02, 1.02)
            top.set_ylim(-0.03, 1.03)
            bottom.bar(
                (np.arange(bins) + 0.5) / bins, count, 0.9 / bins, color=COLOURS[0], alpha=0.6
            )
            bottom.set_xlabel("confidence of the prediction")
            bottom.set_ylabel("rows")
            bottom.locator_params(axis="y", integer=True, nbins=3)
            return self._svg(figure)

    def scatter(
        self,
        points: NDArray[Any],
        codes: NDArray[np.int64],
        names: Sequence[Any],
        ring: NDArray[np.bool_] | None = None,
    ) -> str:
        """Points in the plane by class (-1 where it is not known); `ring` marks some of them. At
        most ten classes have a colour of their own.
        """
        with self._style():
            figure, axes = self._axes((SIZE[0], 3.6))
            for code in [-1, *range(len(names))]:
                mine = codes == code
                if mine.any():
                    colour = GREY if code < 0 else COLOURS[code % len(COLOURS)]
                    label = "not known" if code < 0 else shown(names[code], 18)
                    x, y = points[mine].T
                    axes.scatter(
                        x,
                        y,
                        s=9,
                        color=colour,
                        alpha=0.65,
                        linewidths=0,
                        label=label if code < 10 else None,
                        rasterized=len(points) > 300,
                    )
            if ring is not None and ring.any():
                axes.scatter(
                    *points[ring].T,
                    s=34,
                    facecolors="none",
                    edgecolors=GREY,
                    linewidths=0.9,
                    label="wrong",
                    rasterized=len(points) > 300,
                )
            axes.set_xticks([])
            axes.set_yticks([])
            figure.legend(
                loc="outside upper center",
                ncols=min(4, len(names) + 1),
                markerscale=1.4,
                handletextpad=0.2,
                columnspacing=0.8,
            )
            return self._svg(figure)

    def matrix(self, shares: NDArray[Any], label: str) -> str:
        """A confusion matrix of many classes as a heatmap."""
        with self._style():
            figure, axes = self._axes((SIZE[0], 3.9))
            image = axes.imshow(shares, vmin=0, vmax=1, cmap="Blues", interpolation="nearest")
            axes.set_xlabel("predicted class")
            axes.set_ylabel(label)
            figure.colorbar(image, ax=axes, shrink=0.8)
            return self._svg(figure)

    def intervals(
        self,
        names: Sequence[str],
        middle: NDArray[Any],
        low: NDArray[Any],
        high: NDArray[Any],
        label: str,
    ) -> str:
        """A point with its interval for each name, and a line at zero."""
        with self._style():
            figure, axes = self._axes((SIZE[0], 0.9 + 0.26 * len(names)))
            places = np.arange(len(names))
            axes.axvline(0.0, color=INK, linewidth=0.8, alpha=0.5)
            axes.errorbar(
                middle,
                places,
                xerr=np.abs(np.stack([middle - low, high - middle])),
                fmt="o",
                color=COLOURS[0],
                markersize=4,
                capsize=2,
            )
            axes.set_yticks(places, [shown(name, 24) for name in names])
            axes.set_ylim(len(names) - 0.4, -0.6)
            axes.set_xlabel(label)
            return self._svg(figure)

    # ----------------------------------------------------------------- how

    def _style(self) -> Any:
        import matplotlib

        self._count += 1
        return matplotlib.rc_context({**_STYLE, "svg.hashsalt": f"picture-{self._count}"})

    def _new(self, size: tuple[float, float]) -> Figure:
        return self._figure(figsize=size, layout="constrained")

    def _axes(self, size: tuple[float, float]) -> tuple[Figure, Any]:
        figure = self._new(size)
        return figure, figure.subplots()

    def _svg(self, figure: Figure) -> str:
        stream = io.StringIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # glyphs that the font lacks are drawn as boxes
            self._canvas(figure).print_svg(
                stream, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
            )
        text = stream.getvalue()
        text = text[text.index("<svg") :]
        # Comments repeat the texts that are drawn; the page's style sheet sets the size.
        text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        for _ in range(2):
            text = re.sub(r'(<svg [^>]*?) (?:width|height)="[^"]*"', r"\1", text, count=1)
        return _own_ids(text.replace(INK, "currentColor"), f"p{self._count}-").strip()


@dataclasses.dataclass(frozen=True)
class Page:
    """What a page is made with, and what it had to leave out.

    Attributes:
        artist: what draws its pictures; None for none.
        downloads: whether its tables can be saved as CSV.
        missing: a sentence on each thing that could not be shown.
    """

    artist: Pictures | None = None
    downloads: bool = True
    missing: list[str] = dataclasses.field(default_factory=list)

    def draw(self, caption: str, kind: str, *values: Any) -> list[dict[str, str]]:
        """Returns the picture that the artist's method `kind` draws of the values, and its caption;
        nothing without an artist. One that cannot be drawn is named in `missing`.
        """
        from markupsafe import Markup

        if self.artist is None:
            return []
        try:
            return [{"svg": Markup(getattr(self.artist, kind)(*values)), "caption": caption}]
        except Exception as error:  # what goes wrong in drawing must not cost the run its report
            failed = f"The picture “{caption}” could not be drawn ({type(error).__name__})."
            self.missing.append(failed)
            return []


def _own_ids(svg: str, prefix: str) -> str:
    """Returns the SVG with all ids, and all references to them, under a prefix: several pictures
    share one page.
    """
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}', svg)
    return re.sub(r"url\(#", f"url(#{prefix}", svg)
