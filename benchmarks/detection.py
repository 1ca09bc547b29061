"""`python -m benchmarks.detection`: how many labels a monitor takes to see that the promise is broken.

Two classes, equally frequent, all points admitted, alpha 0.1. The share right is 0.95 on 1,000 calibration points, and
lower in the traffic. Beside it stands the exact binomial test of a class at the same part of the level, which may be
looked at once, after a number of labels that is fixed beforehand.
"""

import math
from dataclasses import dataclass

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from tests.core.monitoring.anytime.laws import ALPHA, CLASSES, Law
from venn_admit.service.core.calibrators.certified.hypothesis_tests import binomial_tail
from venn_admit.service.core.monitoring.anytime.plan import LEVEL, Lamp, plan_of
from venn_admit.service.core.monitoring.anytime.state import advance, initial_state
from venn_admit.service.core.types import FloatArray

CALIBRATION, LABELS = 1000, 6000
BEFORE = 0.95
AFTER = (0.92, 0.88, 0.85, 0.75)
CHANCES = (0.5, 0.9)


@dataclass(frozen=True)
class Watched:
    """The number of labels at which each lamp was lit in each stream; inf if it never was."""

    lit: dict[Lamp, FloatArray]

    def labels(self, lamp: Lamp, chance: float) -> str:
        """Labels within which a lamp is lit with some chance."""
        value = float(np.quantile(self.lit[lamp], chance, method="inverted_cdf"))
        return f"{value:,.0f}" if math.isfinite(value) else f"> {LABELS:,}"


def watch(before: Law, after: Law, streams: int) -> Watched:
    lit: dict[Lamp, list[float]] = {lamp: [] for lamp in Lamp}
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        plan = plan_of(before.draw(rng, CALIBRATION // before.size), class_count=CLASSES, alpha=ALPHA)
        state = initial_state(plan)
        advance(plan, state, after.draw(rng, LABELS // after.size), LEVEL)
        for lamp, games in state.games.items():
            crossed = games.crossed[games.crossed > 0]
            lit[lamp].append(float(crossed.min()) * after.size if len(crossed) else math.inf)
    return Watched({lamp: np.array(values) for lamp, values in lit.items()})


def labels_of_one_look(right: float, chance: float) -> str:
    """Labels of both classes with which the binomial test of one of them rejects with some chance."""
    if right >= 1 - float(ALPHA):
        return "never"
    for of_class in range(5, LABELS // CLASSES, 5):
        # The least number of errors that is rare enough if alpha of the points are wrong.
        errors = next(
            k for k in range(of_class + 2) if 1 - binomial_tail(k - 1, of_class, float(ALPHA)) <= LEVEL / CLASSES
        )
        missed = binomial_tail(errors - 1, of_class, 1 - right)
        if 1 - missed**CLASSES >= chance:
            return f"{of_class * CLASSES:,}"
    return f"> {LABELS:,}"


def main(streams: int = 400) -> None:
    """Simulate, and print one table.

    Args:
        streams: How many for each row.
    """
    table = Table(caption=f"labels within which a lamp is lit in half (nine tenths) of {streams:,} streams")
    for heading in ("documents", "share right", "promise", "partitions", "one look"):
        table.add_column(heading)
    for size, together in ((1, 0.0), (8, 0.3)):
        before = Law(right=(BEFORE,) * 6, size=size, together=together)
        for right in AFTER:
            found = watch(before, Law(right=(right,) * 6, size=size, together=together), streams)
            table.add_row(
                "one point" if size == 1 else f"{size} points, {together:.0%} alike",
                f"{right}",
                *(
                    f"{found.labels(lamp, CHANCES[0])} ({found.labels(lamp, CHANCES[1])})"
                    for lamp in (Lamp.PROMISE, Lamp.PARTITIONS)
                ),
                f"{labels_of_one_look(right, CHANCES[0])} ({labels_of_one_look(right, CHANCES[1])})"
                if size == 1
                else "",
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    typer.run(main)
