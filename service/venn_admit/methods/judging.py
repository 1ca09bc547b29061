"""What a method says of labelled points that it has decided on, and what it is given for that."""

from collections.abc import Callable
from dataclasses import dataclass

from venn_admit.core.comparison.held_out import HeldOut
from venn_admit.core.evaluation.points import OwnMethod
from venn_admit.core.types import AdmitOutcome, Float32Array, IntArray, SelectiveMethod
from venn_admit.report.evaluation.evaluated import SettingsShown
from venn_admit.store.decisions.evaluations import EvaluatedRows
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class PointsToJudge:
    """Labelled points, the decisions on them, and the held-out data that other methods are calibrated on.

    rows: n points. vectors: (n, D) float32; None if the classifier has logits only. vp_vectors: returns the vectors of
    rows of `held_out.vp`, (m, D) float32, in the order in which they are given, (m,) int64, if there are vectors. All
    of these may be memory maps.
    """

    classifier: Classifier
    rows: EvaluatedRows
    vectors: Float32Array | None
    held_out: HeldOut
    vp_vectors: Callable[[IntArray], Float32Array]

    @property
    def own_vectors(self) -> Float32Array:
        """Those of the points, if there are vectors."""
        assert self.vectors is not None, "a classifier with logits only has no vectors"
        return self.vectors


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What the method of a snapshot makes of the points.

    own: None for weighted Venn-ADMIT. admit: what ADMIT and Venn-ADMIT make of them; None if they are left out.
    localizer_predicted: (n,) int64, or None. selective: what the method itself admits, in place of the rival of the
    same name, if it has one. parameters: name and words of what was computed besides.
    """

    own: OwnMethod | None
    settings: SettingsShown
    admit: AdmitOutcome | None
    localizer_predicted: IntArray | None = None
    selective: tuple[SelectiveMethod, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
