"""What a certificate draws: the share right, and the p-value, along the thresholds that each chain was tested at."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from venn_admit.core.calibrators.certified.certificate import Certificate, Chain, TriedPolicy
from venn_admit.core.comparison.confidence import binomial_upper_bound
from venn_admit.report.charts.drawing import NAME_WIDTH, TARGET_COLOUR
from venn_admit.report.charts.drawn_calibration import COLUMNS, MOST_PANELS
from venn_admit.report.charts.looks import drawing_fonts, name_series
from venn_admit.report.evaluation.wording import shorten

SHARE_COLOUR, FAILED_COLOUR = "#0072b2", "#d55e00"
LEAST_P_VALUE = 1e-6
"""p-values are drawn on a logarithmic axis, this small at least."""
CAPTION = (
    "The policies that each chain was tested at, from strict to liberal, by how many points of the evidence they "
    "admit. Above, the {figure} of a class that is tested{bound}, and the dotted target. Below, the p-value, "
    "which may be at most the dotted level. The chain ends at the first cross, and the disc before it is certified."
)
OF_POINTS = ", with its lower confidence limit at the level of the chain"
OF_OTHER_TRAFFIC = " (in the calibration data, not in the class shares of traffic)"
WEIGHED = " (weighed by the class shares of traffic)"


def caption(certificate: Certificate) -> str:
    """Return what stands below the picture."""
    bound = OF_POINTS if _has_limit(certificate) else ""
    if certificate.class_shares is not None:
        bound = OF_OTHER_TRAFFIC if certificate.loss is None else WEIGHED
    said = CAPTION.format(
        figure="lowest share right" if certificate.loss is None else "largest mean loss",
        bound=bound,
    )
    chains = len(_tested(certificate))
    if chains > MOST_PANELS:
        said += f" {MOST_PANELS} of {chains} chains shown: those that admit least."
    return said


def _tested(certificate: Certificate) -> list[Chain]:
    return [chain for chain in certificate.chains if chain.steps]


def _has_limit(certificate: Certificate) -> bool:
    """Whether the test says by which limit of the share right a policy passes."""
    return certificate.single_points and certificate.loss is None and certificate.class_shares is None


def certificate_figure(certificate: Certificate, class_names: Sequence[str]) -> Figure:
    """Return a panel for each chain, of those that admit least if there are many. At least one has a step."""
    chains = _tested(certificate)
    least = sorted(range(len(chains)), key=lambda place: _admitted(chains[place]))[:MOST_PANELS]
    shown = [chains[place] for place in sorted(least)]
    columns = min(COLUMNS, len(shown))
    rows = ceil(len(shown) / columns)
    with drawing_fonts():
        figure = Figure(figsize=(1.2 + 3.9 * columns, 0.8 + 3.7 * rows), layout="constrained")
        grid = figure.add_gridspec(2 * rows, columns, height_ratios=[2, 1.2] * rows)
        first: Axes | None = None
        for number, chain in enumerate(shown):
            row, column = divmod(number, columns)
            shares = figure.add_subplot(grid[2 * row, column], sharey=first)
            first = first or shares
            p_values = figure.add_subplot(grid[2 * row + 1, column], sharex=shares)
            _draw(shares, p_values, certificate, chain)
            name, result = chain.name, chain.steps[0].classes[0]
            if name in {"class", "class in group"}:
                name = f"predicted as {shorten(class_names[chain.predicted[0]], NAME_WIDTH)}"
            if chain.name in {"group", "class in group"}:
                group = shorten(str(result.value), NAME_WIDTH)
                name = group if chain.name == "group" else f"{name}, {group}"
            shares.set_title(name, parse_math=False)
            p_values.set_xlabel("points of the evidence admitted")
            if column == 0:
                shares.set_ylabel("least share right" if certificate.loss is None else "largest mean loss")
                p_values.set_ylabel("p-value")
        target = Line2D([], [], color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
        name_series(
            figure, [_mark("o", SHARE_COLOUR), _mark("X", FAILED_COLOUR), target], ["passed", "failed", "target"], 3
        )
    return figure


def _admitted(chain: Chain) -> int:
    return 0 if chain.last_passed is None else chain.last_passed.admitted


def _mark(marker: str, colour: str) -> Line2D:
    return Line2D([], [], color=colour, marker=marker, linestyle="")


def _draw(shares: Axes, p_values: Axes, certificate: Certificate, chain: Chain) -> None:
    at = np.array([step.admitted for step in chain.steps])
    least = [_least(step) for step in chain.steps]
    share = np.array([right / admitted if admitted else np.nan for right, admitted in least])
    target = 1 - certificate.alpha
    if certificate.loss is not None:
        share, target = np.array([_largest_loss(step) for step in chain.steps]), certificate.alpha
    elif _has_limit(certificate):
        limit = [1 - binomial_upper_bound(admitted - right, admitted, chain.level) for right, admitted in least]
        shares.fill_between(at, limit, share, color=SHARE_COLOUR, alpha=0.18, linewidth=0)
    found = np.maximum([step.p_value for step in chain.steps], LEAST_P_VALUE)
    passed = np.array([step.passed for step in chain.steps])
    for axes, values in ((shares, share), (p_values, found)):
        axes.plot(at, values, color=SHARE_COLOUR, linewidth=1.4)
        axes.plot(at[passed], values[passed], "o", color=SHARE_COLOUR, markersize=4)
        axes.plot(at[~passed], values[~passed], "X", color=FAILED_COLOUR, markersize=7)
        axes.grid(alpha=0.25)
    shares.axhline(float(target), color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
    shares.tick_params(labelbottom=False)
    p_values.axhline(chain.level, color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
    p_values.set_yscale("log")
    p_values.set_ylim(LEAST_P_VALUE / 2, 2)
    p_values.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    p_values.xaxis.set_major_formatter("{x:,.0f}")


def _largest_loss(step: TriedPolicy) -> float:
    """The mean loss of the class where it is largest."""
    return max(one.mean_loss for one in step.classes if one.p_value is not None and one.mean_loss is not None)


def _least(step: TriedPolicy) -> tuple[int, int]:
    """How many are right, and how many admitted, of the class with the lowest share."""
    tested = [(one.right, one.admitted) for one in step.classes if one.p_value is not None]
    return min(tested, key=lambda counts: counts[0] / counts[1] if counts[1] else 0.0)
