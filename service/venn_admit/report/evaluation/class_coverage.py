"""How much is right of what is admitted, class by class, as more is admitted."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.coverage_bands import CoverageBand, coverage_bands
from venn_admit.core.evaluation.curves import CoverageCurve, coverage_curve, coverage_curves
from venn_admit.core.evaluation.measures import ClassTallies
from venn_admit.core.evaluation.tallies import Tally, Verdict
from venn_admit.core.types import FloatArray, IntArray

MOST_CLASSES = 6
"""At most this many classes are shown one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassCoverage:
    """Coverage against the admitted share, by true and by predicted class, C of each, and over all.

    admitted: the share right among what is admitted. curves_by_true_class, curves_by_predicted_class, curve_overall: as
    the least lower probability that admits falls. bands_by_true_class, bands_by_predicted_class, band_overall:
    intervals along them, of the shown classes by number. shown: the classes that are shown one by one, ascending.
    """

    admitted: ClassTallies
    curves_by_true_class: tuple[CoverageCurve, ...]
    curves_by_predicted_class: tuple[CoverageCurve, ...]
    curve_overall: CoverageCurve
    bands_by_true_class: dict[int, CoverageBand]
    bands_by_predicted_class: dict[int, CoverageBand]
    band_overall: CoverageBand
    shown: tuple[int, ...]


def class_coverage(
    label: IntArray,
    predicted: IntArray,
    confidence: FloatArray,
    documents: Documents | None,
    *,
    admitted: ClassTallies,
    shown: tuple[int, ...],
) -> ClassCoverage:
    """Measure n points, n >= 1.

    confidence: (n,) float64, the lower probability of each prediction; NaN for one that can never be admitted.
    documents: of the points; None if no two share one. admitted: the share right among what is admitted. shown:
    the classes whose curves get intervals.
    """
    correct, class_count = predicted == label, len(admitted.per_true_class)
    members = [*(label == c for c in shown), *(predicted == c for c in shown), np.ones(label.size, np.bool_)]
    *bands, band_overall = coverage_bands(confidence, correct, members, documents)
    return ClassCoverage(
        admitted=admitted,
        curves_by_true_class=coverage_curves(confidence, correct, label, class_count),
        curves_by_predicted_class=coverage_curves(confidence, correct, predicted, class_count),
        curve_overall=coverage_curve(confidence, correct),
        bands_by_true_class=dict(zip(shown, bands[: len(shown)], strict=True)),
        bands_by_predicted_class=dict(zip(shown, bands[len(shown) :], strict=True)),
        band_overall=band_overall,
        shown=shown,
    )


def worst_classes(
    admitted: ClassTallies, everything: ClassTallies, alpha: Decimal, most: int = MOST_CLASSES
) -> tuple[int, ...]:
    """Return all classes, ascending; of more than `most` those of which the worst is admitted.

    Those that miss the target, by true or by predicted class, come first, then those with the lowest share right.
    Classes of which too few points are admitted to judge come after the judged ones, in the order of the share
    correct of everything.
    """
    classes = range(len(admitted.per_true_class))

    def judged(measured: ClassTallies, c: int) -> list[Tally]:
        tallies = (measured.per_true_class[c], measured.per_predicted_class[c])
        return [tally for tally in tallies if not tally.is_few]

    def rank(c: int) -> tuple[bool, bool, float]:
        tallies = judged(admitted, c)
        missed = any(tally.verdict(alpha) is Verdict.MISSED for tally in tallies)
        shares = [tally.share for tally in tallies or judged(everything, c)]
        return (not missed, not tallies, min(shares, default=1.0))

    return tuple(classes) if len(classes) <= most else tuple(sorted(sorted(classes, key=rank)[:most]))
