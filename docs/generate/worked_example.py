"""The worked example: two reviews, from their bands to the decisions, as a picture and as a table.

The numbers are those of `tests/golden/sentiment.npz`, a sample of the bundled reviews for which every step is known.
"""

from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from docs.generate.markdown import table

GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "sentiment.npz"
CLASSES = ("negative", "positive")
# One whose evidence is plain, and one that weights reject although its plain probability would do.
REVIEWS = {"A": 7, "B": 20}
COLOURS = {"A": "#0072B2", "B": "#D55E00"}
GREY, DARK = "#b8b8b8", "#333333"


@dataclass(frozen=True, slots=True, eq=False)
class Review:
    """One scored review with what its decision rests on."""

    name: str
    q: int
    d: float
    omega: float
    probabilities: npt.NDArray[np.float64]  # of each class
    band_probabilities: tuple[npt.NDArray[np.float64], ...]  # for each class, of that class at its points in the band
    thresholds: npt.NDArray[np.float64]
    predicted: int
    label: int
    category_size: int
    category_correct: int
    upweight: float
    plain: float
    weighted: float

    @property
    def decision(self) -> str:
        return (
            f"admitted as {CLASSES[self.predicted]}" if self.weighted >= 1 - float(_golden()["alpha"]) else "rejected"
        )


@cache
def _golden() -> dict[str, npt.NDArray[Any]]:
    with np.load(GOLDEN) as arrays:
        return dict(arrays)


def _softmax(logits: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True), dtype=np.float64)


def _review(name: str) -> Review:
    data, row = _golden(), REVIEWS[name]
    q, d, omega = int(data["score_q"][row]), float(data["score_d"][row]), float(data["omega"])
    in_band = (data["mc_q"] == q) & (np.abs(data["mc_d"] - d) <= omega)
    calibration = _softmax(data["mc_logits"])
    predicted, size = int(data["score_predicted"][row]), int(data["score_category_size"][row])
    plain = float(data["score_lower_plain"][row])
    return Review(
        name=name,
        q=q,
        d=d,
        omega=omega,
        probabilities=_softmax(data["score_logits"][row]),
        band_probabilities=tuple(calibration[in_band & (data["mc_y"] == c), c] for c in range(len(CLASSES))),
        thresholds=data["score_threshold"][row],
        predicted=predicted,
        label=int(data["score_y"][row]),
        category_size=size,
        category_correct=round(plain * (size + 1)),
        upweight=float(data["score_upweight"][row]),
        plain=plain,
        weighted=float(data["score_lower_weighted"][row]),
    )


def worked_example_table() -> str:
    """Return the numbers of both reviews, step by step, as a Markdown table."""
    reviews = [_review(name) for name in REVIEWS]

    def per_class(values: npt.ArrayLike, digits: int) -> str:
        return ", ".join(f"{name} {value:.{digits}f}" for name, value in zip(CLASSES, np.asarray(values), strict=True))

    rows = [
        ("q, matching neighbours of K = 25", *(str(each.q) for each in reviews)),
        ("d, distance to the nearest training exemplar", *(f"{each.d:.2f}" for each in reviews)),
        ("probabilities of the KNN", *(per_class(each.probabilities, 3) for each in reviews)),
        ("n, points in the band", *(per_class([len(part) for part in each.band_probabilities], 0) for each in reviews)),
        ("tau, thresholds", *(per_class(each.thresholds, 3) for each in reviews)),
        ("ADMIT set", *(_set(each) for each in reviews)),
        (
            "category: points of vp, right among them",
            *(f"{each.category_size}, {each.category_correct}" for each in reviews),
        ),
        ("plain lower probability", *(f"{each.plain:.3f}" for each in reviews)),
        ("w, weight of the review itself", *(f"{each.upweight:.1f}" for each in reviews)),
        ("weighted lower probability", *(f"{each.weighted:.3f}" for each in reviews)),
        ("decision at alpha = 0.1", *(f"**{each.decision}**" for each in reviews)),
        ("label", *(CLASSES[each.label] for each in reviews)),
    ]
    return table(["step", *(f"review {name}" for name in REVIEWS)], rows)


def _set(review: Review) -> str:
    included = [
        c for c in range(len(CLASSES)) if c == review.predicted or review.probabilities[c] >= review.thresholds[c]
    ]
    return f"{{{', '.join(CLASSES[c] for c in included)}}}"


def worked_example_picture() -> str:
    """Return the picture as SVG: the bands, then for each review its thresholds and its probabilities."""
    figure = Figure(figsize=(9.4, 5.8), layout="constrained")
    panels = figure.subplot_mosaic(
        [["bands", "set A", "venn A"], ["bands", "set B", "venn B"]], width_ratios=[1.4, 1.3, 1]
    )
    _draw_bands(panels["bands"])
    for name in REVIEWS:
        _draw_set(panels[f"set {name}"], _review(name))
        _draw_probabilities(panels[f"venn {name}"], _review(name))
    text = StringIO()
    with mpl.rc_context({"svg.hashsalt": "worked-example", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, dpi=150)
    return text.getvalue()


def _draw_bands(axes: Axes) -> None:
    data = _golden()
    jitter = np.random.default_rng(0).uniform(-0.35, 0.35, len(data["mc_q"]))
    for right, colour, words in ((True, GREY, "KNN right"), (False, "#CC3311", "KNN wrong")):
        chosen = (data["mc_predicted"] == data["mc_y"]) == right
        axes.scatter(
            data["mc_q"][chosen] + jitter[chosen],
            data["mc_d"][chosen],
            s=4,
            c=colour,
            label=words,
            linewidths=0,
            rasterized=True,
        )
    for name in REVIEWS:
        review = _review(name)
        corner = (review.q - 0.5, review.d - review.omega)
        axes.add_patch(Rectangle(corner, 1, 2 * review.omega, fill=False, edgecolor=COLOURS[name], linewidth=2))
        axes.plot(review.q, review.d, marker="D", color=COLOURS[name], markeredgecolor="white", markersize=8)
        axes.annotate(
            name,
            (review.q, review.d + review.omega),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            color=COLOURS[name],
            fontweight="bold",
            fontsize=13,
        )
    axes.set(
        xlabel="q, matching neighbours",
        ylabel="d, distance to training",
        title="1. Bands among the points of mc",
    )
    axes.legend(loc="lower center", ncols=2, markerscale=3, frameon=True)


def _draw_set(axes: Axes, review: Review) -> None:
    for c, values in enumerate(review.band_probabilities):
        spread = np.random.default_rng(c).uniform(-0.18, 0.18, len(values))
        axes.scatter(values, c + spread, s=6, c=GREY, linewidths=0, rasterized=True)
        axes.plot([review.thresholds[c]] * 2, [c - 0.32, c + 0.32], color=DARK, linewidth=2)
        axes.plot(
            review.probabilities[c], c, marker="D", color=COLOURS[review.name], markeredgecolor="white", markersize=9
        )
    axes.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.5, 1.5),
        yticks=[0, 1],
        yticklabels=[
            f"{name}\n(n = {len(values)})" for name, values in zip(CLASSES, review.band_probabilities, strict=True)
        ],
        title=f"2. Review {review.name}: set {_set(review)}",
        xlabel="probability of the class, and threshold",
    )


def _draw_probabilities(axes: Axes, review: Review) -> None:
    values = (review.category_correct / review.category_size, review.plain, review.weighted)
    axes.barh([2, 1, 0], values, color=[GREY, GREY, COLOURS[review.name]], height=0.6)
    for place, value in zip((2, 1, 0), values, strict=True):
        axes.text(0.02, place, f"{value:.3f}", va="center", color=DARK if place else "white", fontweight="bold")
    axes.axvline(0.9, color=DARK, linestyle="--")
    axes.set(
        xlim=(0, 1),
        xticks=[0, 0.5, 0.9],
        yticks=[2, 1, 0],
        yticklabels=["right in T", "lower, plain", "lower, weighted"],
        title=f"3. {review.decision.split()[0].capitalize()}",
    )
