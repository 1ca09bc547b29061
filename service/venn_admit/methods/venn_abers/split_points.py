"""The points of a split as Venn-Abers takes them in, and what a certificate asks of the splits."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.average.policy import NO_TRAFFIC, UnlabelledCells
from venn_admit.core.calibrators.certification import Certification, ClassKind
from venn_admit.core.calibrators.settings import ScoreKind
from venn_admit.core.calibrators.snapshot_rows import CalibrationRows, rows_of_split
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, bins_of
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells
from venn_admit.core.calibrators.venn_abers.reliability import scored_points
from venn_admit.core.comparison.held_out import HeldOutPoints, ViewedPoints
from venn_admit.core.split_names import Split
from venn_admit.core.types import (
    Approximation,
    BoolArray,
    CalibrationPoints,
    Float32Array,
    IntArray,
    join_approximations,
)
from venn_admit.errors import Code, NotReadyError
from venn_admit.report.wording import counted
from venn_admit.store.decisions import reports
from venn_admit.store.exemplars import approximations, exemplars
from venn_admit.store.exemplars.approximations import Replacements, StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class SplitPoints:
    """The labelled points of a split, in order of ingestion, under the parameters of a snapshot.

    view, parameters: None if the classifier has logits only.
    """

    split: Split
    exemplar_ids: IntArray
    label: IntArray
    view: Approximation | None
    logits: Float32Array
    classifier: Classifier
    parameters: StoredParameters | None

    def scored(self, kind: ScoreKind) -> CellPoints:
        """Return the points under a score."""
        model = None if self.parameters is None else self.parameters.reliability
        return scored_points(kind, model, self.logits, self.view, neighbour_count=self.classifier.neighbours)

    def held_out(self, connection: Connection) -> HeldOutPoints:
        """Return them with their keys, as comparisons and certificates take them."""
        keys = exemplars.keys(connection, self.exemplar_ids).document_keys
        return HeldOutPoints(keys, self.label, ViewedPoints(self.logits, self.view))

    def rows(self, points: CellPoints, q_bins: tuple[int, ...]) -> CalibrationRows:
        """Return the rows that a snapshot keeps of the points; points: under its score."""
        return rows_of_split(
            self.exemplar_ids,
            CalibrationPoints(
                label=self.label,
                predicted=points.predicted,
                match_count=points.match_count,
                distance=np.full(len(self.label), np.nan) if self.view is None else self.view.distance,
                score=points.score,
            ),
            bins_of(points, q_bins),
            None,
            class_count=self.classifier.class_count,
            in_vp=self.split is Split.VP,
        )


def read_split(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters | None,
    split: Split,
    memory_budget: int,
    instead: Replacements | None = None,
) -> SplitPoints:
    """Read a split that has points.

    memory_budget: bytes that temporary arrays may take. instead: what replaces stored approximations.
    """
    if parameters is None:
        found = exemplars.split_logits(connection, classifier, split)
        return SplitPoints(split, found.ids, found.labels, None, found.logits, classifier, None)
    blocks = list(approximations.split_blocks(connection, classifier, split, parameters.id, memory_budget, instead))
    ids = np.concatenate([block.exemplar_ids for block in blocks])
    return SplitPoints(
        split=split,
        exemplar_ids=ids,
        label=np.concatenate([block.labels for block in blocks]),
        view=join_approximations([block.approximation for block in blocks]),
        logits=exemplars.network_logits(connection, classifier, ids),
        classifier=classifier,
        parameters=parameters,
    )


def read_knn(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters | None,
    memory_budget: int,
    instead: Replacements | None = None,
) -> SplitPoints | None:
    """Read the labelled points of `knn` as `read_split` does; None if there are none, as without vectors."""
    if parameters is None or not len(exemplars.split_keys(connection, classifier, Split.KNN).ids):
        return None
    return read_split(connection, classifier, parameters, Split.KNN, memory_budget, instead)


def read_traffic(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters | None,
    kind: ScoreKind,
    held_out: Collection[str],
    *,
    other_training: bool = False,
) -> UnlabelledCells:
    """Return recent traffic under a score, without documents of the held-out data; held_out: their document keys.

    For the reliability score, those decisions count that rest on these parameters and on the training data as they are;
    other_training: whether a snapshot of other training data is made, on which none rests.
    """
    found = reports.recent_points(connection, classifier, None if parameters is None else parameters.id, None)
    usable = (found.comparable & (not other_training)) | (kind is ScoreKind.NETWORK)
    keys = exemplars.keys(connection, found.exemplar_ids).document_keys
    known = set(held_out)
    rows = np.flatnonzero(usable & np.array([key not in known for key in keys], dtype=np.bool_))
    if not rows.size:
        return NO_TRAFFIC
    points = scored_points(
        kind,
        None if parameters is None else parameters.reliability,
        exemplars.network_logits(connection, classifier, found.exemplar_ids[rows]),
        None if parameters is None else found.approximation.take(rows),
        neighbour_count=classifier.neighbours,
    )
    return UnlabelledCells(points, [keys[row] for row in rows.tolist()])


def has_documents(cells: LabelledCells) -> bool:
    """Return whether there are two documents, which each part of a certificate needs."""
    return len(set(cells.keys)) >= 2


def require_evidence(
    classifier: Classifier, certification: Certification, cells: LabelledCells, proposing: BoolArray
) -> None:
    """Raise NotReadyError if the points cannot serve a certificate, however it turns out.

    That takes two documents that propose, two as evidence, evidence of each true class if these are asked for, and some
    group of each attribute that is.
    """
    evidence = cells.take(~proposing)
    for name, of_points in cells.take(proposing).groups.items():
        if not any(value is not None for value in of_points):
            raise _not_certifiable(
                classifier,
                f"no held-out exemplar of {classifier.name!r} that proposes policies has a value of the attribute "
                f"{name!r}: certify for another attribute, or without groups",
            )
    for part, what in ((cells.take(proposing), "to propose policies"), (evidence, "as evidence")):
        documents = len(set(part.keys))
        if documents < 2:
            unit = "document" if documents < len(part.keys) else "point"
            raise _not_certifiable(
                classifier,
                f"the held-out data of {classifier.name!r} hold {counted(documents, unit)} {what}: expected "
                "at least two",
            )
    lacking = np.flatnonzero(np.bincount(evidence.label, minlength=classifier.class_count) == 0)
    if lacking.size and ClassKind.TRUE in certification.kinds:
        names = ", ".join(repr(classifier.class_names[number]) for number in lacking[:_MOST_NAMED].tolist())
        more = f" and {lacking.size - _MOST_NAMED} more" if lacking.size > _MOST_NAMED else ""
        raise _not_certifiable(
            classifier,
            f"splits mc and vp of {classifier.name!r} hold no exemplar of class {names}{more}: a certificate for true "
            "classes needs some of each; certify predicted classes alone",
        )


def require_labels(classifier: Classifier, evidence: LabelledCells) -> None:
    """Raise NotReadyError unless a point is left for the average promise, beside those that chose the score."""
    if not evidence.keys:
        raise _not_certifiable(
            classifier, f"the held-out data of {classifier.name!r} all choose the score: ask for the network's score"
        )


_MOST_NAMED = 5


def _not_certifiable(classifier: Classifier, what: str) -> NotReadyError:
    return not_certifiable(classifier, f"{what}, or ingest more held-out data")


def not_certifiable(classifier: Classifier, message: str) -> NotReadyError:
    """Return the refusal of a certificate that the data of a classifier cannot serve."""
    return NotReadyError(message, code=Code.NOT_CERTIFIABLE, classifier=classifier.name)
