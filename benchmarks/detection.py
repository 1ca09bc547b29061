"""`python -m benchmarks.detection`: how many labels a monitor takes to see that the promise is broken.

Two classes, equally frequent, all points admitted, alpha 0.1. The share right is 0.95 on 1,000 calibration points, and
lower in the traffic. Beside it stands the exact binomial test of a class at the same part of the level, which may be
looked at once, after a number of labels that is fixed beforehand.

With `--nannyml PYTHON` a second table has the realized performance of NannyML, looked at after every chunk, on the same
streams. It has an environment of its own, because it brings some fifty packages that nothing else here needs:

    python -m venv nannyml && nannyml/bin/pip install "nannyml==0.13.1" statsmodels
    python -m benchmarks.detection --nannyml nannyml/bin/python
"""

import json
import math
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from tests.core.monitoring.anytime.laws import ALPHA, CLASSES, Law
from venn_admit.core.calibrators.certified.hypothesis_tests import binomial_tail
from venn_admit.core.monitoring.anytime.plan import LEVEL, Lamp, plan_of
from venn_admit.core.monitoring.anytime.state import advance, initial_state
from venn_admit.core.types import BoolArray, FloatArray

CALIBRATION, LABELS = 1000, 6000
BEFORE = 0.95
AFTER = (0.92, 0.88, 0.85, 0.75)
CHANCES = (0.5, 0.9)
# What NannyML is compared at: without a change, and after two.
BESIDE = (0.95, 0.85, 0.75)


@dataclass(frozen=True)
class Watched:
    """The number of labels at which each lamp was lit in each stream; inf if it never was."""

    lit: dict[Lamp, FloatArray]

    def labels(self, lamp: Lamp, chance: float) -> str:
        """Labels within which a lamp is lit with some chance."""
        return labels_within(self.lit[lamp], chance)


def labels_within(lit: FloatArray, chance: float) -> str:
    """Labels within which some part of the streams has its alarm."""
    value = float(np.quantile(lit, chance, method="inverted_cdf"))
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
            k for k in range(1, of_class + 2) if 1 - binomial_tail(k - 1, of_class, float(ALPHA)) <= LEVEL / CLASSES
        )
        missed = binomial_tail(errors - 1, of_class, 1 - right)
        if 1 - missed**CLASSES >= chance:
            return f"{of_class * CLASSES:,}"
    return f"> {LABELS:,}"


def alerts(python: Path, before: Law, after: Law, streams: int) -> FloatArray:
    """Labels after which NannyML alerts in each of the streams that `watch` draws; inf if it never does."""
    reference: list[BoolArray] = []
    traffic: list[BoolArray] = []
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        for law, labels, found in ((before, CALIBRATION, reference), (after, LABELS, traffic)):
            points = law.draw(rng, labels)
            found.append(points.predicted == points.label)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "streams.npz"
        np.savez(path, reference=np.stack(reference), traffic=np.stack(traffic))
        command = [str(python), "-W", "ignore", str(Path(__file__).with_name("chunked_accuracy.py")), str(path)]
        quiet = {**os.environ, "NML_DISABLE_USAGE_LOGGING": "1"}
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=quiet).stdout
    return np.array([math.inf if labels is None else labels for labels in json.loads(told)])


def beside_nannyml(python: Path, streams: int) -> Table:
    """Labels to an alarm, and how many streams have one, by each; of single points."""
    table = Table(caption=f"labels to the alarm in half (nine tenths) of {streams:,} streams, and streams with one")
    for heading in ("share right", "promise", "", "partitions", "", "NannyML", ""):
        table.add_column(heading)
    before = Law(right=(BEFORE,) * 6)
    for right in BESIDE:
        after = Law(right=(right,) * 6)
        found = watch(before, after, streams)
        row = [f"{right}"]
        for lit in (found.lit[Lamp.PROMISE], found.lit[Lamp.PARTITIONS], alerts(python, before, after, streams)):
            row += [
                f"{labels_within(lit, CHANCES[0])} ({labels_within(lit, CHANCES[1])})",
                f"{np.isfinite(lit).mean():.1%}",
            ]
        table.add_row(*row)
    return table


def main(streams: int = 400, nannyml: Path | None = None) -> None:
    """Simulate, and print one table, or two.

    Args:
        streams: How many for each row.
        nannyml: A Python that has NannyML, for the second table.
    """
    table = Table(caption=f"labels within which a lamp is lit in half (nine tenths) of {streams:,} streams")
    for heading in ("documents", "share right", "promise", "early_promise", "partitions", "one look"):
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
                    for lamp in (Lamp.PROMISE, Lamp.EARLY_PROMISE, Lamp.PARTITIONS)
                ),
                f"{labels_of_one_look(right, CHANCES[0])} ({labels_of_one_look(right, CHANCES[1])})"
                if size == 1
                else "",
            )
    console = Console(width=120)
    console.print(table)
    if nannyml is not None:
        console.print(beside_nannyml(nannyml, streams))


if __name__ == "__main__":
    typer.run(main)
