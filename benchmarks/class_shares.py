"""`python -m benchmarks.class_shares [FOLDER]`: what a certificate admits where traffic has other class shares.

FOLDER has `valid.npz` with logits and labels, such as the bundled reviews. For each division, as many labels of each
class are drawn, of which a fifth propose. All other points, weighed to the shares of traffic, say what is admitted
there, and whether less than 1 - alpha of it is right in some predicted class. With `--documents`, documents are drawn
with replacement, so that all points say it.
"""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.streams import ALPHA, CONFIDENCE, Task, read_task
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.policies import Policy, admit
from venn_admit.core.calibrators.class_shares import ClassShares
from venn_admit.core.types import FloatArray

REVIEWS = Path(__file__).parents[1] / "examples" / "sentiment_small"
SHARES = ["0.5,0.5", "0.7,0.3", "0.85,0.15"]
WAYS: dict[str, Decimal | None] = {"without a declaration": None, "declared": Decimal(0), "within .05": Decimal("0.05")}


def certified(
    proposing: CertificatePoints, evidence: CertificatePoints, declared: ClassShares | None, alpha: Decimal
) -> Policy | None:
    return certify(
        proposing,
        evidence,
        class_count=1 + int(evidence.label.max()),
        alpha=alpha,
        confidence=CONFIDENCE,
        kinds=(ClassKind.PREDICTED,),
        class_shares=declared,
    ).policy


def shown(policy: Policy | None, traffic: CertificatePoints, weight: FloatArray, alpha: float) -> tuple[float, bool]:
    """Return the share of traffic that a policy admits, and whether too little of some predicted class is right."""
    if policy is None:
        return 0.0, False
    admitted = weight * admit(traffic.score, traffic.predicted, policy, {})
    of_class = np.bincount(traffic.predicted, admitted, minlength=len(policy.thresholds))
    right = np.bincount(
        traffic.predicted, admitted * (traffic.predicted == traffic.label), minlength=len(policy.thresholds)
    )
    return float(admitted.sum() / weight.sum()), bool((right < (1 - alpha) * of_class).any())


def divided(task: Task, rng: np.random.Generator, labels: int) -> tuple[CertificatePoints, ...]:
    """Return proposing points, evidence and traffic; of the labels, as many are of each class."""
    points = task.points
    order = rng.permutation(len(points.score))
    each = labels // task.class_count
    known = np.concatenate([order[points.label[order] == number][:each] for number in range(task.class_count)])
    proposes = rng.permutation(len(known)) < len(known) // 5
    labelled = (
        replace(points.take(rows), document=np.arange(len(rows))) for rows in (known[proposes], known[~proposes])
    )
    return (*labelled, points.take(np.setdiff1d(order, known)))


def drawn(task: Task, rng: np.random.Generator, documents: int) -> tuple[CertificatePoints, ...]:
    """Return documents drawn with replacement, of which a tenth propose; traffic is all points."""
    return task.stream(rng, documents // 10), task.stream(rng, documents - documents // 10), task.points


def measure(
    folder: Annotated[Path, typer.Argument(help="A folder with `valid.npz`.")] = REVIEWS,
    labels: Annotated[int, typer.Option(min=20, help="Labels of all classes together.")] = 2000,
    documents: Annotated[int, typer.Option(min=0, help="Documents with labels, instead of points.")] = 0,
    shares: Annotated[list[str], typer.Option(help="The share of each class in traffic.")] = SHARES,
    alpha: Annotated[str, typer.Option(help="The largest share wrong.")] = str(ALPHA),
    divisions: Annotated[int, typer.Option(min=1, help="Divisions of the points.")] = 20,
) -> None:
    """Print what is admitted, and how often it falls short, by the shares of the classes in traffic."""
    task = read_task(folder, (ClassKind.PREDICTED,))
    of = f"{documents:,} documents" if documents else f"{labels:,} labels, as many of each class"
    table = Table(title=f"{of}; {divisions} divisions")
    for heading in ("shares of the classes", *WAYS):
        table.add_column(heading)
    found: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    for seed in range(divisions):
        rng = np.random.default_rng(seed)
        proposing, evidence, traffic = drawn(task, rng, documents) if documents else divided(task, rng, labels)
        own = np.bincount(traffic.label, minlength=task.class_count)
        for text in shares:
            of_traffic = tuple(map(Decimal, text.split(",")))
            weight = (np.array(of_traffic, dtype=np.float64) / own)[traffic.label]
            for way, within in WAYS.items():
                declared = None if within is None else ClassShares(of_traffic, within)
                policy = certified(proposing, evidence, declared, Decimal(alpha))
                found.setdefault((text, way), []).append(shown(policy, traffic, weight, float(alpha)))
    for text in shares:
        cells = []
        for way in WAYS:
            admitted, short = np.array(found[text, way]).T
            cells.append(f"{admitted.mean():.3f}, {int(short.sum())} of {divisions}")
        table.add_row(text, *cells)
    Console().print(table)


if __name__ == "__main__":
    typer.run(measure)
