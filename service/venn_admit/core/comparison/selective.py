"""Methods that admit or reject the network's prediction, side by side on the same held-out data.

A plain threshold on the softmax, selective classification with guaranteed risk, Venn-Abers by either score, the
certified policy, and that of the average promise (docs/PROCEDURE.md, sections 7 and 9). All decide on argmax f.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np

from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.calibrators.average.policy import NO_TRAFFIC, select_on_average
from venn_admit.core.calibrators.certification import DEFAULT_CONFIDENCE, ClassKind, Kind, make_certification
from venn_admit.core.calibrators.certified.policies import Policy, admit
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings, make_venn_abers_settings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.certified_cells import certify_cells
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel, fit_reliability, scored_points
from venn_admit.core.checks import check_lengths
from venn_admit.core.comparison.confidence import fit_temperature, guaranteed_risk, scaled_confidence
from venn_admit.core.comparison.held_out import HeldOut, ScoredSplits, ViewedPoints
from venn_admit.core.types import BoolArray, FloatArray, IntArray, SelectiveMethod
from venn_admit_client.records.certificates import labels_needed_text

SOFTMAX = "softmax >= 1 - alpha"
GUARANTEED = "SGR"
VENN_ABERS = {kind: f"Venn-Abers {kind}" for kind in ScoreKind}
CERTIFIED = "certified"
ON_AVERAGE = "on average"
_BY_LOSS = ", by loss"
_IN_SHARES = ", in class shares"


def certified_for(kinds: Collection[Kind]) -> str:
    """Return the name of the certified policy, which promises something for some kinds of classes."""
    return CERTIFIED if set(kinds) == set(ClassKind) else f"{CERTIFIED}, {' and '.join(kinds)}"


def by_loss(name: str) -> str:
    """Return the name of a certified policy that promises the mean loss."""
    return f"{name}{_BY_LOSS}"


def is_by_loss(name: str) -> bool:
    """Return whether a name has what `by_loss` adds."""
    return _BY_LOSS in name


def in_shares(name: str) -> str:
    """Return the name of a certified policy that promises something of traffic with class shares of its own."""
    return f"{name}{_IN_SHARES}"


def is_in_shares(name: str) -> bool:
    """Return whether a name has what `in_shares` adds."""
    return _IN_SHARES in name


def by_bins(name: str) -> str:
    """Return the name of Venn-Abers with several bins of q."""
    return f"{name}, bins of q"


@dataclass(frozen=True, slots=True)
class Promise:
    """What is asked of the methods.

    Attributes:
        thresholds: (C,) the least p0 of each predicted class, for Venn-Abers.
    """

    alpha: Decimal
    thresholds: tuple[Decimal, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SelectiveMethods:
    """The methods on some points.

    Attributes:
        methods: Softmax, SGR, Venn-Abers network, Venn-Abers reliability (which rests on vectors), certified and on
            average, in this order.
        parameters: The name of each method, and in words what it took from the held-out data.
    """

    methods: tuple[SelectiveMethod, ...]
    parameters: tuple[tuple[str, str], ...]


def selective_methods(
    held_out: HeldOut,
    points: ViewedPoints,
    promise: Promise,
    *,
    temperature: float,
    neighbour_count: int | None,
    seed: int,
    on_method: Callable[[str], object] = lambda _: None,
) -> SelectiveMethods:
    """Return what each method admits of n points. Neither the order nor the batch of points changes a bit.

    - Softmax: admits if softmax(f / T) of the prediction is at least 1 - alpha, and promises nothing.
    - SGR: the softmax with T fitted on `knn` (1 if it has no points), and a threshold from `mc` and `vp` together.
    - Venn-Abers: the pointwise promise, plain, with one bin of q; the reliability score is fitted on `knn`, and `mc`
      calibrates.
    - Certified: predicted and true classes, with the score that `auto` takes on `knn`, tested on `mc` and `vp`. Nothing
      is admitted if no policy passes, or if there are fewer than two documents.
    - On average: thresholds by conformal selection, with the same score, from `mc` and `vp`. The batch is these points.

    Args:
        temperature: T > 0, fitted on all held-out points, for the softmax.
        neighbour_count: K; None if the classifier has logits only, whose one score is the network's.
    """
    predicted = network_prediction(points.network_logits)
    on_method(SOFTMAX)
    plain = scaled_confidence(points.network_logits, temperature)
    on_method(GUARANTEED)
    guaranteed, guaranteed_words = _guaranteed(held_out, points, promise)
    venn = _VennAbers(held_out, promise, neighbour_count, seed)
    lower = {}
    for kind in venn.kinds:
        on_method(VENN_ABERS[kind])
        lower[kind] = venn.lower(kind, points)
    on_method(CERTIFIED)
    certified, certified_words = venn.certified(points, predicted)
    on_method(ON_AVERAGE)
    average, average_words = venn.on_average(points, predicted)
    return SelectiveMethods(
        (
            SelectiveMethod(SOFTMAX, predicted, plain >= float(1 - promise.alpha), plain),
            SelectiveMethod(GUARANTEED, predicted, guaranteed, None),
            *(
                SelectiveMethod(
                    VENN_ABERS[kind],
                    predicted,
                    reaches_threshold(lower[kind], predicted, promise.thresholds),
                    lower[kind],
                )
                for kind in venn.kinds
            ),
            SelectiveMethod(CERTIFIED, predicted, certified, None),
            SelectiveMethod(ON_AVERAGE, predicted, average, None),
        ),
        ((GUARANTEED, guaranteed_words), (CERTIFIED, certified_words), (ON_AVERAGE, average_words)),
    )


def _guaranteed(held_out: HeldOut, points: ViewedPoints, promise: Promise) -> tuple[BoolArray, str]:
    """What SGR admits, (n,) bool, and its parameters in words."""
    knn = held_out.knn
    temperature = fit_temperature(knn.seen.network_logits, knn.label) if len(knn.label) else 1.0
    splits = (held_out.mc, held_out.vp)
    found = guaranteed_risk(
        np.concatenate([scaled_confidence(split.seen.network_logits, temperature) for split in splits]),
        np.concatenate([split.right for split in splits]),
        alpha=promise.alpha,
    )
    admitted: BoolArray = scaled_confidence(points.network_logits, temperature) >= found.threshold
    words = (
        f"threshold {found.threshold:.4g}, at confidence {DEFAULT_CONFIDENCE} at most {found.bound:.4g} wrong"
        if found.admitted
        else f"no threshold passed at confidence {DEFAULT_CONFIDENCE}"
    )
    return admitted, words


class _VennAbers:
    """Venn-Abers of held-out data by either score; kinds: the available scores."""

    def __init__(self, held_out: HeldOut, promise: Promise, neighbour_count: int | None, seed: int) -> None:
        self.kinds = (ScoreKind.NETWORK,) if neighbour_count is None else tuple(ScoreKind)
        self._held_out, self._promise, self._neighbour_count, self._seed = held_out, promise, neighbour_count, seed
        self._class_count = len(promise.thresholds)
        knn = held_out.knn
        self._model: ReliabilityModel | None = None
        if neighbour_count is not None:
            self._model = fit_reliability(
                knn.seen.network_logits, knn.seen.knn, knn.label, neighbour_count=neighbour_count
            )
        check_lengths(label=held_out.mc.label, network_logits=held_out.mc.seen.network_logits)
        self._mc = {kind: self._scored(kind, held_out.mc.seen) for kind in self.kinds}
        self._index = {
            kind: VennAbersIndex(self._mc[kind], held_out.mc.right, class_count=self._class_count)
            for kind in self.kinds
        }
        self._splits = ScoredSplits(
            knn, [held_out.mc, held_out.vp], self._model, neighbour_count=neighbour_count, seed=seed
        )

    def lower(self, kind: ScoreKind, points: ViewedPoints) -> FloatArray:
        """p0 of some points, (n,) float64."""
        return self._index[kind].bounds(self._scored(kind, points)).lower

    def certified(self, points: ViewedPoints, predicted: IntArray) -> tuple[BoolArray, str]:
        """What the certified policy admits of some points, (n,) bool, and its parameters in words."""
        asked = f"confidence {DEFAULT_CONFIDENCE}, predicted and true classes"
        proposing = self._splits.proposing
        documents = set(zip(proposing.tolist(), self._splits.keys, strict=True))
        if min(sum(proposes is of for proposes, _ in documents) for of in (True, False)) < 2:
            return np.zeros(len(predicted), dtype=np.bool_), f"{asked}, not certified: under two documents"
        kind = self._chosen
        cells = self._splits.cells(kind)
        certificate = certify_cells(
            cells, proposing, self._settings, make_certification(tuple(ClassKind), DEFAULT_CONFIDENCE)
        )
        asked = f"{asked}, score {kind}"
        if certificate.policy is None:
            needed, more = certificate.labels_needed or 0, ""
            if needed > certificate.points:
                more = f"; {labels_needed_text(needed)} would do, at the rates seen"
            return np.zeros(len(predicted), dtype=np.bool_), f"{asked}, no policy passed{more}"
        return self._admitted(points, predicted, certificate.policy, asked)

    def on_average(self, points: ViewedPoints, predicted: IntArray) -> tuple[BoolArray, str]:
        """What the policy of the average promise admits of some points, (n,) bool, and its parameters in words."""
        kind = self._chosen
        evidence = self._splits.cells(kind).take(~self._splits.proposing)
        if not evidence.keys:
            return np.zeros(len(predicted), dtype=np.bool_), "no labels beside those that choose the score"
        found = select_on_average(evidence, NO_TRAFFIC, class_count=self._class_count, alpha=self._promise.alpha)
        return self._admitted(points, predicted, found.policy, f"score {kind}, {found.points:,} labels")

    def _admitted(self, points: ViewedPoints, predicted: IntArray, policy: Policy, asked: str) -> tuple[BoolArray, str]:
        thresholds = ", ".join("never" if t is None else f"{t:.4g}" for t in policy.thresholds)
        words = f"{asked}, thresholds {thresholds}" if self._class_count <= _MOST_LISTED else asked
        return admit(self._scored(self._chosen, points).score, predicted, policy), words

    @cached_property
    def _settings(self) -> VennAbersSettings:
        return make_venn_abers_settings(
            self._class_count, self._neighbour_count, alpha=self._promise.alpha, thresholds=self._promise.thresholds
        )

    @cached_property
    def _chosen(self) -> ScoreKind:
        """The score that `auto` takes on the proposing points."""
        if self.kinds == (ScoreKind.NETWORK,):
            return ScoreKind.NETWORK
        return self._splits.choice(self._settings).kind

    def _scored(self, kind: ScoreKind, points: ViewedPoints) -> CellPoints:
        return scored_points(
            kind, self._model, points.network_logits, points.view, neighbour_count=self._neighbour_count
        )


_MOST_LISTED = 6
"""With more classes than these, the words leave the thresholds out."""
