"""`python -m benchmarks.class_shares [FOLDER]`: what a certificate admits where traffic has other class shares.

FOLDER has `valid.npz` with logits and labels of two classes, such as the bundled reviews. For each division, as many
labels of either class are drawn, of which a fifth propose. All other points, weighed to the shares of traffic, say what
is admitted there, and whether less than 1 - alpha of it is right in some predicted class.
"""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.streams import ALPHA, CONFIDENCE, read_task
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.policies import Policy, admit
from venn_admit.core.calibrators.class_shares import ClassShares
from venn_admit.core.types import FloatArray

REVIEWS = Path(__file__).parents[1] / "examples" / "sentiment_small"
POSITIVE = ("0.5", "0.3", "0.15")
WAYS: dict[str, Decimal | None] = {"without a declaration": None, "declared": Decimal(0), "within .05": Decimal("0.05")}


def certified(proposing: CertificatePoints, evidence: CertificatePoints, declared: ClassShares | None) -> Policy | None:
    return certify(
        proposing,
        evidence,
        class_count=2,
        alpha=ALPHA,
        confidence=CONFIDENCE,
        kinds=(ClassKind.PREDICTED,),
        class_shares=declared,
    ).policy


def shown(policy: Policy | None, traffic: CertificatePoints, weight: FloatArray) -> tuple[float, bool]:
    """Return the share of traffic that a policy admits, and whether too little of some predicted class is right."""
    if policy is None:
        return 0.0, False
    admitted = weight * admit(traffic.score, traffic.predicted, policy, {})
    of_class = np.bincount(traffic.predicted, admitted, minlength=2)
    right = np.bincount(traffic.predicted, admitted * (traffic.predicted == traffic.label), minlength=2)
    return float(admitted.sum() / weight.sum()), bool((right < float(1 - ALPHA) * of_class).any())


def measure(
    folder: Annotated[Path, typer.Argument(help="A folder with `valid.npz`.")] = REVIEWS,
    labels: Annotated[int, typer.Option(min=20, help="Labels of both classes together.")] = 2000,
    divisions: Annotated[int, typer.Option(min=1, help="Divisions of the points.")] = 20,
) -> None:
    """Print what is admitted, and how often it falls short, by the share of the second class in traffic."""
    points = read_task(folder).points
    table = Table(title=f"{labels:,} labels, as many of either class; {divisions} divisions")
    for heading in ("share of the second class", *WAYS):
        table.add_column(heading)
    found: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    for seed in range(divisions):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(points.score))
        known = np.concatenate([order[points.label[order] == number][: labels // 2] for number in range(2)])
        proposes = rng.permutation(len(known)) < len(known) // 5
        proposing, evidence = (
            replace(points.take(rows), document=np.arange(len(rows))) for rows in (known[proposes], known[~proposes])
        )
        traffic = points.take(np.setdiff1d(order, known))
        own = np.bincount(traffic.label, minlength=2)
        for positive in POSITIVE:
            shares = (1 - Decimal(positive), Decimal(positive))
            weight = (np.array(shares, dtype=np.float64) / own)[traffic.label]
            for way, within in WAYS.items():
                declared = None if within is None else ClassShares(shares, within)
                policy = certified(proposing, evidence, declared)
                found.setdefault((positive, way), []).append(shown(policy, traffic, weight))
    for positive in POSITIVE:
        cells = []
        for way in WAYS:
            admitted, short = np.array(found[positive, way]).T
            cells.append(f"{admitted.mean():.3f}, {int(short.sum())} of {divisions}")
        table.add_row(positive, *cells)
    Console().print(table)


if __name__ == "__main__":
    typer.run(measure)
