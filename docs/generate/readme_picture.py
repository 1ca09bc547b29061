"""Draw the picture of the README: what may be acted on, by which method, and how much of it is right.

    make picture

The figures are those of `evaluate` on the bundled reviews and tweets. It needs a database without a classifier
`reviews`, which `make picture` makes and throws away.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import venn_admit
from venn_admit.core.evaluation.tallies import Verdict
from venn_admit.report.charts.charts import save_png
from venn_admit.report.charts.drawing import CLASS_LOOKS, TARGET_COLOUR
from venn_admit.report.charts.looks import drawing_fonts, name_series, verdict_mark, verdict_marks

PICTURE = Path(__file__).parents[1] / "assets" / "admitted.png"
CLASSES = ("negative", "positive")
SETS = {"test": "Film reviews, like those calibrated on", "ood": "Tweets, which the network was not made for"}
METHODS = {
    "KNN": "act on\neverything",
    "Conf_BASE": "split\nconformal",
    "APS": "APS",
    "softmax >= 1 - alpha": "softmax",
    "Venn-ADMIT weighted": "Venn-\nADMIT",
    "certified": "Venn-Abers,\ncertified",
}
# In the order of `verdict_marks`.
VERDICTS = {
    Verdict.MET: "target met",
    Verdict.MISSED: "target missed",
    Verdict.CANNOT_TELL: "the sample cannot tell",
}
LEAST = 0.78
ASIDE = 0.13
DOTS_PER_INCH = 110


def main() -> None:
    """Calibrate and evaluate, and write the picture."""
    with venn_admit.connect() as connection:
        found = evaluations(connection)
    save_png(picture(found), PICTURE, DOTS_PER_INCH)
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


def evaluations(connection: venn_admit.Connection) -> dict[str, dict[str, Any]]:
    """Take the bundled data from nothing to evaluations, by the name of the set."""
    data = venn_admit.example_data()
    reviews = connection.create("reviews", CLASSES, dimension=128)
    reviews.ingest(data / "train.npz", split="train")
    reviews.ingest(data / "valid.npz")
    reviews.fit()
    reviews.calibrate(method="venn-admit", alpha="0.1", kappa=100)
    return {name: reviews.evaluate(data / f"{name}.npz").to_dict() for name in SETS}


def picture(found: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Return the picture: a panel a set, and in it a mark for each method and predicted class.

    Args:
        found: What `Evaluation.to_dict` returns, by the name of the set.
    """
    with drawing_fonts():
        figure = Figure(figsize=(13.2, 4.3), layout="constrained")
        panels = figure.subplots(1, len(SETS), sharey=True)
        for axes, name in zip(panels, SETS, strict=True):
            _draw(axes, SETS[name], found[name])
        panels[0].set_ylabel("right among those admitted")
        colours = [Line2D([], [], color=colour, linewidth=3) for colour, _ in CLASS_LOOKS[: len(CLASSES)]]
        names = [*(f"predicted {name}" for name in CLASSES), *VERDICTS.values()]
        name_series(figure, [*colours, *verdict_marks()], names, columns=5)
    return figure


def _draw(axes: Axes, title: str, found: Mapping[str, Any]) -> None:
    target = float(found["verdict"]["target"])
    axes.axhspan(LEAST, target, color="black", alpha=0.05, linewidth=0)
    axes.axhline(target, color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
    for place, method in enumerate(METHODS):
        measured = found["methods"][method]
        for side, name, (colour, _) in zip((-1, 1), CLASSES, CLASS_LOOKS, strict=False):
            tally = measured["per_predicted_class"][name]
            at = (place + side * ASIDE, tally["share_correct"])
            verdict_mark(axes, at, tuple(tally["interval"]), Verdict(tally["verdict"]), colour)
        share = measured["all"]["n"] / found["points"]
        axes.text(place, LEAST + 0.006, f"admits {share:.0%}", ha="center", fontsize=9, color="#333333")
    axes.set(xlim=(-0.5, len(METHODS) - 0.5), ylim=(LEAST, 1.008), title=title)
    axes.set_xticks(range(len(METHODS)), list(METHODS.values()))
    axes.get_xticklabels()[-1].set_fontweight("bold")
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
