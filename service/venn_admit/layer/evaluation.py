"""How well a memory layer does, by document and by token, as the sources report it, and the KNN beside it.

Sources: Schmaltz (2021): F0.5 of the positive class at the token level, where precision counts more than recall, and
accuracy of documents; Schmaltz & Rasooly (2022): the KNN approximation, and partitions by q and d.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from venn_admit.core.checks import check_classes, check_rows
from venn_admit.core.documents import Documents, document_codes
from venn_admit.core.evaluation.curves import AccuracyGrid, accuracy_grid, default_match_bins
from venn_admit.core.evaluation.measures import PointAccuracy, point_accuracy
from venn_admit.core.evaluation.tallies import Grouping, Tally, tally_groupings
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.errors import NotReadyError
from venn_admit.files.records import ExemplarBatch
from venn_admit.layer.apply import extract
from venn_admit.layer.approximation import FittedKnn
from venn_admit.layer.model import LayerModel
from venn_admit.layer.outputs import level_of
from venn_admit.layer.states.index import Kind
from venn_admit.layer.states.reader import StateShards

DISTANCE_BINS = 4
"""Partitions by d are cut at its quartiles over the points that are evaluated."""


@dataclass(frozen=True, slots=True)
class Detection:
    """How well the tokens of one class are found.

    Attributes:
        found: Tokens of this label that are detected.
        present: Tokens of this label.
        tokens: All tokens that are labelled.
    """

    label: int
    found: int
    detected: int
    present: int
    tokens: int

    @property
    def precision(self) -> float:
        """The share of the detected that have the label, in [0, 1]; NaN if none is detected."""
        return self.found / self.detected if self.detected else float("nan")

    @property
    def recall(self) -> float:
        """The share of those of the label that are detected, in [0, 1]; NaN if there are none."""
        return self.found / self.present if self.present else float("nan")

    @property
    def f_half(self) -> float:
        """F0.5 = 1.25 P R / (0.25 P + R), in [0, 1]; NaN if no token has the label or is detected."""
        weight = 0.25 * self.present + self.detected
        return 1.25 * self.found / weight if weight else float("nan")

    @property
    def f_half_of_all(self) -> float:
        """F0.5 of detecting every token, which takes no model, in [0, 1]; NaN if no token has the label."""
        return 1.25 * self.present / (0.25 * self.present + self.tokens) if self.present else float("nan")

    @property
    def f_half_at_random(self) -> float:
        """F0.5 of as many tokens as are detected, drawn at random, in [0, 1]; NaN if there are no tokens."""
        expected = self.detected * self.present / self.tokens if self.tokens else float("nan")
        weight = 0.25 * self.present + self.detected
        return 1.25 * expected / weight if weight else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class PredictionMeasures:
    """How well predictions fit labels: of all points, and as detections of each class."""

    accuracy: PointAccuracy
    detections: tuple[Detection, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """The same points in bins of q by quartiles of d, and how many are right in each.

    Attributes:
        network: Points that the network predicts right; None without labels.
    """

    network: AccuracyGrid | None
    knn: AccuracyGrid | None
    agreement: AccuracyGrid


@dataclass(frozen=True, slots=True, eq=False)
class LevelEvaluation:
    """How well a memory layer does at one level.

    Attributes:
        points: How many were evaluated: those with a label, or all if none has one.
        network: The predictions argmax f; None without labels.
        evidence: Tokens of a layer for documents whose local score, less the background's, exceeds 0, which
            may be evidence for several classes, or for none; empty otherwise.
        knn: The KNN's predictions; None without labels, or without a KNN.
        agreement: The share of points for which KNN and network predict the same; None without a KNN.
    """

    level: Kind
    points: int
    documents: int
    network: PredictionMeasures | None
    evidence: tuple[Detection, ...]
    knn: PredictionMeasures | None
    agreement: Tally | None
    partitions: Partitions | None


def count_detections(label: IntArray, detected: BoolArray) -> tuple[Detection, ...]:
    """Count how well the tokens of each of C classes are found.

    Args:
        label: (n,) int64 in [0, C), or -1 for a token of no class that can be detected.
        detected: (n, C) bool, whether the token is detected as one of the class; several classes may be.

    Examples:
        >>> one, two = count_detections(np.array([0, 1, 1]), np.array([[True, False], [True, True], [False, False]]))
        >>> one.precision, one.recall, round(two.f_half, 3)
        (0.5, 1.0, 0.833)
    """
    check_rows(len(label), {"detected": detected})
    class_count = detected.shape[1]
    check_classes(class_count + 1, {"label": label + 1})
    known = np.flatnonzero(label >= 0)
    hit = label[known[detected[known, label[known]]]]
    return _detections(label, np.bincount(hit, minlength=class_count), detected.sum(axis=0))


def _detections(label: IntArray, found: IntArray, detected: IntArray) -> tuple[Detection, ...]:
    """Detections of each class, from labels (n,), and counts by class (C,) of those found and detected."""
    present = np.bincount(label[label >= 0], minlength=len(found)).tolist()
    return tuple(
        Detection(label=number, found=hits, detected=shown, present=there, tokens=len(label))
        for number, (hits, shown, there) in enumerate(zip(found.tolist(), detected.tolist(), present, strict=True))
    )


def _predicted_detections(label: IntArray, predicted: IntArray, class_count: int) -> tuple[Detection, ...]:
    """Detections of each class, of which every point is detected as one: its predicted class."""
    found = np.bincount(label[label == predicted], minlength=class_count)
    return _detections(label, found, np.bincount(predicted, minlength=class_count))


def _together(one: tuple[Detection, ...], other: tuple[Detection, ...]) -> tuple[Detection, ...]:
    """Detections of two batches of points as those of all."""
    counts = ("found", "detected", "present", "tokens")
    return tuple(
        Detection(first.label, *(getattr(first, name) + getattr(second, name) for name in counts))
        for first, second in zip(one, other, strict=True)
    )


def evaluate_layer(
    model: LayerModel,
    shards: StateShards,
    *,
    level: Kind | None = None,
    rows: IntArray | None = None,
    knn: FittedKnn | None = None,
    memory_budget: int,
) -> LevelEvaluation:
    """Evaluate a memory layer on token states, and the KNN beside it if there is one.

    Points without a label are left out. If no point has one, there is still the agreement of KNN and network, over all
    points. A word that has several tokens counts as its first one (settled here; the source takes their mean). Memory:
    some tens of bytes a point.

    Args:
        level: What a point is; None: what an exemplar is for the layer.
        rows: (m,) int64, the documents that are evaluated; None: all.
        knn: Over training exemplars of the same level.

    Raises:
        NotReadyError: There are no points, or neither labels nor a KNN.
    """
    level = level_of(model, level)
    points = _Points(model, level)
    for batch in extract(model, shards, level=level, order=rows, memory_budget=memory_budget):
        points.add(batch, knn, memory_budget)
    return points.evaluation(shards, knn)


@dataclass(slots=True)
class _Points:
    """Columns of the points, batch after batch; evidence counts tokens with a label, which takes C numbers for each."""

    model: LayerModel
    level: Kind
    labels: list[IntArray] = field(default_factory=list)
    network: list[IntArray] = field(default_factory=list)
    knn: list[IntArray] = field(default_factory=list)
    match_count: list[IntArray] = field(default_factory=list)
    distance: list[FloatArray] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    evidence: tuple[Detection, ...] = ()

    def add(self, batch: ExemplarBatch, knn: FittedKnn | None, memory_budget: int) -> None:
        assert batch.vectors is not None, "a memory layer gives vectors"
        self.labels.append(batch.labels)
        self.network.append(batch.logits.argmax(axis=1))
        if self.level == "token" and self.model.settings.form.kind == "document":
            self._count_evidence(batch)
        self.documents += [key or own for key, own in zip(batch.document_ids, batch.external_ids, strict=True)]
        if knn is not None:
            view = knn.view(batch.vectors, memory_budget=memory_budget)
            self.knn.append(view.predicted)
            self.match_count.append(view.match_count)
            self.distance.append(view.distance)

    def _count_evidence(self, batch: ExemplarBatch) -> None:
        known = batch.labels >= 0
        if known.any():
            counts = count_detections(batch.labels[known], _is_evidence(self.model, batch.logits[known]))
            self.evidence = _together(self.evidence, counts) if self.evidence else counts

    def evaluation(self, shards: StateShards, knn: FittedKnn | None) -> LevelEvaluation:
        level, label = self.level, _joined(self.labels)
        labelled = label >= 0
        has_labels = bool(labelled.any())
        if not has_labels and (knn is None or not len(label)):
            raise NotReadyError(
                f"{shards.called}: expected {level}s with labels to evaluate by, got none among {len(label):,}; "
                "label some. Documents of labelled words have labels if the layer has a background class. If all "
                "documents serve the fit, give others for it"
            )
        chosen = np.flatnonzero(labelled) if has_labels else np.arange(len(label))
        label, network = label[chosen], _joined(self.network)[chosen]
        code = document_codes([self.documents[row] for row in chosen.tolist()])
        count = int(code.max()) + 1
        documents = Documents(code, count) if count < len(code) else None
        class_count = len(self.model.class_names)

        def measured(predicted: IntArray) -> PredictionMeasures | None:
            if not has_labels:
                return None
            return PredictionMeasures(
                point_accuracy(label, predicted, class_count, documents),
                _predicted_detections(label, predicted, class_count),
            )

        if knn is None:
            return LevelEvaluation(level, len(chosen), count, measured(network), self.evidence, None, None, None)
        predicted, q = _joined(self.knn)[chosen], _joined(self.match_count)[chosen]
        d = np.concatenate(self.distance)[chosen]
        (agreement,) = tally_groupings([Grouping(np.zeros_like(label), predicted == network, 1)], documents)

        def grid(right: BoolArray) -> AccuracyGrid:
            bins = default_match_bins(knn.neighbour_count)
            return accuracy_grid(q, d, right, knn.neighbour_count, bins, DISTANCE_BINS)

        return LevelEvaluation(
            level,
            len(chosen),
            count,
            measured(network),
            self.evidence,
            measured(predicted),
            agreement[0],
            Partitions(
                grid(network == label) if has_labels else None,
                grid(predicted == label) if has_labels else None,
                grid(predicted == network),
            ),
        )


def _is_evidence(model: LayerModel, logits: Float32Array) -> BoolArray:
    """Whether local scores (n, C) exceed 0, or the background's, (n, C); never for the background."""
    background = model.settings.background
    if background is None:
        return np.asarray(logits > 0)
    detected = logits > logits[:, [background]]
    detected[:, background] = False
    return np.asarray(detected)


def _joined(parts: Sequence[IntArray]) -> IntArray:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
