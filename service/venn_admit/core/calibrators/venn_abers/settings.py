"""The settings of a Venn-Abers calibrator: defaults and checks (docs/PROCEDURE.md, sections 6 and 9)."""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from venn_admit.core.calibrators.certified.certification import (
    DEFAULT_CONFIDENCE,
    Certification,
    make_certification,
)
from venn_admit.core.calibrators.certified.hypothesis_tests import DocumentTest
from venn_admit.core.calibrators.settings import check_alpha, check_q_bins, check_thresholds
from venn_admit.errors import InvalidInputError


class ScoreKind(StrEnum):
    """What ranks the predictions of a cell by how likely they are right."""

    NETWORK = "network"
    RELIABILITY = "reliability"


AUTO = "auto"
"""Leaves the kind of score to `crossfit.choose_score`."""


@dataclass(frozen=True, slots=True)
class VennAbersSettings:
    """The settings of a Venn-Abers calibrator.

    Attributes:
        alpha: Error level, an exact decimal in (0, 1).
        q_bins: Ascending lower edges of the bins of q, the first of them 0; by default there is one bin.
        thresholds: (C,) least p0 for each predicted class, each >= 1 - alpha, in the pointwise promise; `auto` chooses
            by them in both.
        score: The kind of score; None for `auto`.
        certification: What is to be certified; None for the pointwise promise. If it is given, all thresholds are
            1 - alpha, and decisions are made by those of the certified policy.
    """

    alpha: Decimal
    q_bins: tuple[int, ...]
    thresholds: tuple[Decimal, ...]
    score: ScoreKind | None
    certification: Certification | None = None


def make_venn_abers_settings(
    class_count: int,
    neighbour_count: int | None,
    *,
    alpha: Decimal = Decimal("0.1"),
    q_bins: tuple[int, ...] = (0,),
    thresholds: tuple[Decimal, ...] | None = None,
    score: str = AUTO,
    certify: Collection[str] | None = None,
    confidence: Decimal | None = None,
    test: str | None = None,
) -> VennAbersSettings:
    """Return checked settings.

    Args:
        class_count: C >= 2.
        neighbour_count: K >= 1; None without vectors, where there is no q to divide into bins, and the score is the
            network's.
        alpha: As in `VennAbersSettings`.
        q_bins: As in `VennAbersSettings`.
        thresholds: As in `VennAbersSettings`; None makes every threshold 1 - alpha.
        score: `network`, `reliability` or `auto`.
        certify: `predicted`, `true` or both, the classes for which the promise is to be certified; None for the
            pointwise promise.
        confidence: The confidence of a certificate; None for 0.95.
        test: The test of a certificate: `finite-sample` or `asymptotic`; None for the first.

    Raises:
        InvalidInputError: The settings do not fit the classifier.

    Examples:
        >>> make_venn_abers_settings(2, 25).thresholds
        (Decimal('0.9'), Decimal('0.9'))
    """
    if class_count < 2:
        raise InvalidInputError(f"a classifier needs at least 2 classes; got {class_count}")
    check_alpha(alpha)
    if neighbour_count is not None:
        check_q_bins(q_bins, neighbour_count)
    elif q_bins != (0,) or score == ScoreKind.RELIABILITY:
        raise InvalidInputError(
            f"without vectors there are neither bins of q nor a reliability score; got bins {q_bins} and the score "
            f"{score}"
        )
    elif score == AUTO:
        score = ScoreKind.NETWORK
    certification = _certification(certify, confidence, test, thresholds)
    if thresholds is None:
        thresholds = (1 - alpha,) * class_count
    check_thresholds(thresholds, alpha, class_count)
    if score not in {AUTO, *ScoreKind}:
        raise InvalidInputError(f"the score must be {AUTO}, {' or '.join(ScoreKind)}; got {score}")
    return VennAbersSettings(
        alpha=alpha,
        q_bins=q_bins,
        thresholds=thresholds,
        score=None if score == AUTO else ScoreKind(score),
        certification=certification,
    )


def _certification(
    certify: Collection[str] | None,
    confidence: Decimal | None,
    test: str | None,
    thresholds: tuple[Decimal, ...] | None,
) -> Certification | None:
    if certify is None:
        for name, value in (("confidence", confidence), ("test", test)):
            if value is not None:
                raise InvalidInputError(
                    f"{name}: this is a setting of certificates, got {value}; ask for one with certify, or leave it out"
                )
        return None
    if thresholds is not None:
        raise InvalidInputError(
            "thresholds: a certificate sets the thresholds itself; leave out either thresholds or certify"
        )
    return make_certification(
        certify,
        DEFAULT_CONFIDENCE if confidence is None else confidence,
        DocumentTest.FINITE_SAMPLE if test is None else test,
    )
