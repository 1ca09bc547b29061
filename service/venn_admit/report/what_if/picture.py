"""What the setting in use would admit with one part of it varied, as a picture."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from venn_admit.core.calibrators.arguments import called
from venn_admit.core.evaluation.tallies import Tally, Verdict
from venn_admit.report.charts.charts import save_png
from venn_admit.report.charts.drawing import CLASS_LOOKS, NAME_WIDTH, TARGET_COLOUR
from venn_admit.report.charts.looks import (
    drawable_class_names,
    drawable_text,
    drawing_fonts,
    name_series,
    verdict_mark,
    verdict_marks,
)
from venn_admit.report.evaluation.wording import PREDICTED, TRUE, kind_tallies, shorten
from venn_admit.report.what_if.settings import SettingsTried, settings_title

MOST_LEVEL_TICKS = 6
"""The names of more values than these are turned, so that they do not hide each other."""

ASIDE = 0.12
"""How far the marks of two classes at one value stand apart, as a part of the way to the next value."""


def settings_figure(found: SettingsTried) -> Figure:
    """Draw the share admitted, and the shares right by true and by predicted class, over the values.

    If there are more classes than looks, those are drawn whose share right is the lowest at any value.
    """
    with drawing_fonts():
        figure = Figure(figsize=(12.5, 4.8), layout="constrained")
        admitted, by_true = figure.add_subplot(1, 3, 1), figure.add_subplot(1, 3, 2)
        right = (by_true, figure.add_subplot(1, 3, 3, sharey=by_true))
        positions = range(len(found.tried))
        tallies = [one.admission.admitted for one in found.tried]
        low, high = zip(*(tally.interval for tally in tallies), strict=True)
        admitted.plot(positions, [tally.share for tally in tallies], color="black", marker="o", linewidth=1.8)
        admitted.fill_between(positions, low, high, color="black", alpha=0.12, linewidth=0)
        admitted.set(title="Admitted", ylabel="share of mc admitted", ylim=(0, 1.02))
        shown = _shown_classes(found)
        for axes, kind in zip(right, (TRUE, PREDICTED), strict=True):
            for place, number in enumerate(shown):
                of_class = [kind_tallies(one.admission.right, kind)[number] for one in found.tried]
                aside = (place - (len(shown) - 1) / 2) * ASIDE
                _draw_class(axes, [x + aside for x in positions], of_class, found, CLASS_LOOKS[place][0])
            axes.step(
                [-0.5, *positions, len(found.tried) - 0.5],
                [float(1 - one.settings.alpha) for one in (found.tried[0], *found.tried, found.tried[-1])],
                where="mid",
                color=TARGET_COLOUR,
                linestyle=":",
                linewidth=1.2,
            )
            axes.set(title=f"Right, by {'true class' if kind == TRUE else 'predicted class'}")
        for axes in (admitted, *right):
            axes.set_xticks(
                list(positions), [f"{one.value}\nin use" if one.is_current else one.value for one in found.tried]
            )
            axes.tick_params(axis="x", labelrotation=90 if len(found.tried) > MOST_LEVEL_TICKS else 0)
            axes.set_xlabel(called(found.varied))
            axes.grid(alpha=0.25)
        names = drawable_class_names(found.class_names)
        lines = [Line2D([], [], color=CLASS_LOOKS[place][0], marker="o") for place in range(len(shown))]
        lines += [Line2D([], [], color=TARGET_COLOUR, linestyle=":"), *verdict_marks()]
        words = [*(shorten(names[number], NAME_WIDTH) for number in shown), "1 - alpha"]
        name_series(figure, lines, [*words, *(verdict.words for verdict in Verdict)], columns=6)
        figure.suptitle(drawable_text(settings_title(found)), fontsize=11, fontweight="bold", parse_math=False)
    return figure


def save_settings_picture(found: SettingsTried, folder: Path) -> Path:
    """Write the picture as PNG into a folder and return its path; the same figures give the same bytes."""
    return save_png(settings_figure(found), folder / "what-if.png")


def _draw_class(
    axes: Axes, positions: Sequence[float], tallies: Sequence[Tally], found: SettingsTried, colour: str
) -> None:
    """The shares right of one class with their intervals and verdicts; those of too few points are left out."""
    judged = [
        (x, tally, one.settings.alpha)
        for x, tally, one in zip(positions, tallies, found.tried, strict=True)
        if not tally.is_few
    ]
    axes.plot([x for x, _, _ in judged], [tally.share for _, tally, _ in judged], color=colour, linewidth=1, alpha=0.6)
    for x, tally, alpha in judged:
        verdict_mark(axes, (x, tally.share), tally.interval, tally.verdict(alpha), colour)


def _shown_classes(found: SettingsTried) -> list[int]:
    """The numbers of the classes that are drawn, ascending."""

    def lowest(number: int) -> float:
        shares = (
            tallies[number].share
            for one in found.tried
            for tallies in (one.admission.right.per_true_class, one.admission.right.per_predicted_class)
            if not tallies[number].is_few
        )
        return min(shares, default=2.0)

    return sorted(sorted(range(len(found.class_names)), key=lowest)[: len(CLASS_LOOKS)])
