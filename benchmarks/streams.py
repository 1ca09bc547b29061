"""`python -m benchmarks.streams FOLDER --task NAME`: labels until something is certified, on streams of real data.

FOLDER has a folder a task, whose `valid.npz` has logits, labels and documents. A stream draws documents from these with
replacement, so that what a threshold admits, and how much of it is right, is known exactly. The first documents
propose, a tenth of the number that there are. With the later ones, in their order,

- a certificate that stands, the first chain, takes one document after the other;
- another one begins when all documents so far have labels, which are there at its start;
- the fixed certificate is made once with all documents so far, and looks at them a single time;
- with audits, the points that count are drawn: of what stands so far, some of what it admits, and more of the rest.

The best thresholds are the most liberal ones of which at least 1 - alpha is right; with `--certify predicted,true`
those that admit most while that holds of every class of both kinds. What is admitted is compared with what they admit.
Labels are those within which some part of the streams has come so far.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.policies import Policy, admit
from venn_admit.core.calibrators.settings import ScoreKind
from venn_admit.core.calibrators.venn_abers.reliability import scored_points
from venn_admit.core.standing.chains import StandingChain, level_of_chain, standing_chain
from venn_admit.core.standing.state import admitting, advance, certified_counts, initial_state, start
from venn_admit.core.types import FloatArray, IntArray

ALPHA, CONFIDENCE = Decimal("0.1"), Decimal("0.95")
AIMS = {"anything": 0.0, ".9 of the best": 0.9}
CHANCES = (0.5, 0.9)
AUDITED = {"drawn, .1 of admitted, all rejected": (0.1, 1.0), "drawn, .1 of admitted, .2 of rejected": (0.1, 0.2)}
AUDITED_TIMES = 4
"""As many times the points come if those that count are drawn."""
PROPOSING, LEAST_POINTS = 10, 40
GRID = 250_000
"""Thresholds that must hold together are chosen among about this many combinations."""
STEPS = 4
"""Looks in each doubling of the documents."""
Thresholds = tuple[float | None, ...]


@dataclass(frozen=True, eq=False)
class Task:
    """All points of a task under the network's score.

    points: by documents. starts: (documents + 1,) the first point of each, and their end. kinds: what is certified.
    """

    points: CertificatePoints
    starts: IntArray
    class_count: int
    kinds: tuple[ClassKind, ...]

    def stream(self, rng: np.random.Generator, documents: int) -> CertificatePoints:
        """Return documents drawn with replacement, numbered in their order."""
        chosen = rng.integers(len(self.starts) - 1, size=documents)
        sizes = np.diff(self.starts)[chosen]
        ends = np.cumsum(sizes)
        rows = np.arange(ends[-1]) + np.repeat(self.starts[chosen] - (ends - sizes), sizes)
        return replace(self.points.take(rows), document=np.repeat(np.arange(documents), sizes))

    def looks(self, points: int) -> list[int]:
        """Return the numbers of documents at which is looked, up to about a number of points."""
        size = len(self.points.score) / (len(self.starts) - 1)
        least = max(LEAST_POINTS / size, 2)
        doublings = np.log2(points / size / least)
        found = np.rint(least * 2 ** np.arange(0, doublings + 1 / STEPS, 1 / STEPS))
        return sorted({int(one) for one in found.tolist()})

    @cached_property
    def best(self) -> float:
        """The share that the best thresholds admit."""
        if ClassKind.TRUE in self.kinds:
            return self._best_together
        admitted = 0
        for number in range(self.class_count):
            rows = np.flatnonzero(self.points.predicted == number)
            rows = rows[np.argsort(-self.points.score[rows], kind="stable")]
            score, right = self.points.score[rows], self.points.label[rows] == number
            good = np.append(score[1:] < score[:-1], True) & (
                right.cumsum() >= float(1 - ALPHA) * np.arange(1, len(rows) + 1)
            )
            admitted += int(np.flatnonzero(good)[-1]) + 1 if good.any() else 0
        return admitted / len(self.points.score)

    @cached_property
    def _best_together(self) -> float:
        """The same, if every class of every kind limits all thresholds: the best of a grid of them."""
        size, share = round(GRID ** (1 / self.class_count)), float(1 - ALPHA)
        counts = []
        for number in range(self.class_count):
            rows = np.flatnonzero(self.points.predicted == number)
            rows = rows[np.argsort(-self.points.score[rows], kind="stable")]
            labels = np.cumsum(self.points.label[rows][:, np.newaxis] == np.arange(self.class_count), axis=0)
            counts.append(labels[np.linspace(0, len(rows) - 1, size, dtype=np.int64)])  # (size, C) by label
        choices = np.stack(np.meshgrid(*[np.arange(size)] * self.class_count, indexing="ij"), axis=-1)
        admitted = np.stack([of[choices[..., number]] for number, of in enumerate(counts)], axis=-2)  # predicted, label
        right = np.diagonal(admitted, axis1=-2, axis2=-1)
        limits = {ClassKind.PREDICTED: admitted.sum(axis=-1), ClassKind.TRUE: admitted.sum(axis=-2)}
        good = np.all([(right >= share * limits[kind]).all(axis=-1) for kind in self.kinds], axis=0)
        return float(admitted.sum(axis=(-2, -1))[good].max(initial=0) / len(self.points.score))

    def admitted(self, thresholds: Thresholds) -> tuple[float, bool]:
        """Return the share that thresholds admit, and whether too little of it is right in some class."""
        chosen = admit(self.points.score, self.points.predicted, Policy(thresholds), {})
        right = chosen & (self.points.predicted == self.points.label)
        short = False
        for kind in self.kinds:
            of_class, of_right = (
                np.bincount(self.points.classes(kind)[rows], minlength=self.class_count) for rows in (chosen, right)
            )
            short |= bool((of_right < float(1 - ALPHA) * of_class).any())
        return float(chosen.mean()), short


def read_task(folder: Path, kinds: tuple[ClassKind, ...]) -> Task:
    with np.load(folder / "valid.npz") as arrays:
        logits, label, document = arrays["f"], arrays["y"].astype(np.int64), arrays["doc"]
    number = np.unique(document, return_inverse=True)[1]
    cells = scored_points(ScoreKind.NETWORK, None, logits, None, neighbour_count=None)
    points = CertificatePoints(cells.score, cells.predicted, label, number).take(np.argsort(number, kind="stable"))
    return Task(points, np.searchsorted(points.document, np.arange(number.max() + 2)), logits.shape[1], kinds)


Look = tuple[int, int, Thresholds]
"""How many labels had counted, how many points had come, and what was certified by then."""


def fixed(task: Task, proposing: CertificatePoints, stream: CertificatePoints, looks: list[int]) -> Iterator[Look]:
    for documents in looks:
        evidence = stream.take(stream.document < documents)
        made = certify(
            proposing,
            evidence,
            class_count=task.class_count,
            alpha=ALPHA,
            kinds=task.kinds,
            confidence=CONFIDENCE,
        )
        none = (None,) * task.class_count
        yield len(evidence.score), len(evidence.score), none if made.policy is None else made.policy.thresholds


def begun_with(task: Task, proposing: CertificatePoints, stream: CertificatePoints, looks: list[int]) -> Iterator[Look]:
    """What a chain certifies that begins with all labels so far."""
    chain = begin(task, proposing)
    for documents in looks:
        points, begun = stream.take(stream.document < documents), replace(chain, at_start=documents)
        counts = certified_counts(begun, start(begun, initial_state(begun), points))
        yield len(points.score), len(points.score), admitting(begun, counts)


def begin(task: Task, proposing: CertificatePoints) -> StandingChain:
    level = level_of_chain(float(1 - CONFIDENCE), 1)
    return standing_chain(proposing, class_count=task.class_count, alpha=float(ALPHA), level=level, kinds=task.kinds)


def standing(
    task: Task,
    proposing: CertificatePoints,
    stream: CertificatePoints,
    looks: list[int],
    rates: tuple[float, float] | None = None,
) -> Iterator[Look]:
    """What a chain certifies; rates: with which admitted and rejected points are drawn, None if all have labels."""
    chain = begin(task, proposing)
    state, labels, rng = initial_state(chain), 0, np.random.default_rng(1)
    thresholds: Thresholds = (None,) * task.class_count
    for first, end in pairwise([0, *looks]):
        points = stream.take((stream.document >= first) & (stream.document < end))
        if rates is not None:
            points = drawn(points, thresholds, rates, rng, among_all=ClassKind.TRUE in task.kinds)
        state = advance(chain, state, points)
        labels += len(points.score)
        thresholds = admitting(chain, certified_counts(chain, state))
        yield labels, int(np.searchsorted(stream.document, end)), thresholds


def drawn(
    points: CertificatePoints,
    thresholds: Thresholds,
    rates: tuple[float, float],
    rng: np.random.Generator,
    *,
    among_all: bool,
) -> CertificatePoints:
    """Draw points by what is admitted so far, and weigh them as audits do, among all points or by predicted class."""
    of_admitted, of_rejected = rates
    least = np.array([np.inf if one is None else one for one in thresholds])[points.predicted]
    probability = np.where(points.score >= least, of_admitted, of_rejected)
    smallest = np.where(np.isinf(least) & (not among_all), of_rejected, min(rates))
    return replace(points, weight=smallest / probability).take(rng.random(len(probability)) < probability)


def within(reached: FloatArray, labels: FloatArray, chance: float) -> float:
    """Return the labels by which some part of the streams has come so far; inf if the longest do not suffice.

    reached: (looks,) the part that has by each look. labels: (looks,) their mean number by then.
    """
    place = int(np.argmax(reached >= chance))
    if reached[place] < chance:
        return np.inf
    if place == 0:
        return float(labels[0])
    return float(np.exp(np.interp(chance, reached[place - 1 : place + 1], np.log(labels[place - 1 : place + 1]))))


def measure(
    folder: Annotated[Path, typer.Argument(help="A folder with a folder a task.")],
    task: Annotated[list[str], typer.Option(help="Tasks, by the names of their folders.")],
    orders: Annotated[int, typer.Option(min=2, help="Streams of each task.")] = 40,
    points: Annotated[int, typer.Option(help="The points of a stream, about.")] = 20_000,
    certify: Annotated[str, typer.Option(help="predicted, true, or both with a comma.")] = "predicted",
) -> None:
    """Print a table for each task: for each way, the labels to each aim, medians and nine tenths of the streams."""
    ways = {"one after the other": standing, "there at the start": begun_with, "fixed": fixed}
    kinds = tuple(map(ClassKind, certify.split(",")))
    for name in task:
        known = read_task(folder / name, kinds)
        looks, more = known.looks(points), known.looks(AUDITED_TIMES * points)
        found: dict[str, list[list[Look]]] = {way: [] for way in (*ways, *AUDITED)}
        for order in range(orders):
            rng = np.random.default_rng(order)
            proposing = known.stream(rng, (len(known.starts) - 1) // PROPOSING)
            stream = known.stream(rng, more[-1])
            for way, run in ways.items():
                found[way].append(list(run(known, proposing, stream, looks)))
            for way, rates in AUDITED.items():
                found[way].append(list(standing(known, proposing, stream, more, rates)))
        title = f"{name}, {orders} streams; the best thresholds admit {known.best:.3f}"
        Console(width=140).print(_table(known, found, title))


def _table(task: Task, found: dict[str, list[list[Look]]], title: str) -> Table:
    table = Table(
        "certified", *(f"{aim}, {chance:.0%}" for aim in AIMS for chance in CHANCES), "ever short", title=title
    )
    for way, streams in found.items():
        labels = np.array([[look[:2] for look in looks] for looks in streams], dtype=np.float64).mean(axis=0)
        judged = [[task.admitted(look[2]) for look in looks] for looks in streams]
        share = np.array([[admitted for admitted, _ in looks] for looks in judged]) / task.best
        short = np.mean([any(one for _, one in looks) for looks in judged])
        cells = []
        for aim in AIMS.values():
            reached = (share > aim).mean(axis=0)
            for chance in CHANCES:
                each = [within(reached, labels[:, column], chance) for column in range(2 if way in AUDITED else 1)]
                cells.append(" of ".join(f"{one:,.0f}" if np.isfinite(one) else "-" for one in each))
        table.add_row(way, *cells, f"{short:.2f}")
    return table


if __name__ == "__main__":
    typer.run(measure)
