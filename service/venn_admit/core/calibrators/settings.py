"""The settings of each method of calibration, each declared once, with defaults and checks.

See docs/PROCEDURE.md, sections 3, 4, 6 and 9.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, ClassVar, TypeAlias

from venn_admit.core.calibrators.certification import (
    DEFAULT_CONFIDENCE,
    MOST_KINDS,
    Certification,
    ClassKind,
    DocumentTest,
    Kind,
    make_certification,
    parse_kind,
)
from venn_admit.core.calibrators.class_shares import ClassShares, checked_class_shares
from venn_admit.core.calibrators.declaration import Declared, SettingKind, declared
from venn_admit.core.calibrators.loss import LARGEST_LOSS, LossMatrix, check_loss, is_zero_one
from venn_admit.core.calibrators.promises import (
    CERTIFIED_LOSS_SENTENCE,
    CERTIFIED_SENTENCE,
    AskedPromise,
    Promised,
    promised,
)
from venn_admit.core.method_names import VENN_ABERS, VENN_ADMIT
from venn_admit.errors import InvalidInputError

METHOD_NAMES = {VENN_ADMIT: "Venn-ADMIT", VENN_ABERS: "Venn-Abers"}
"""The methods as sentences call them; the program is venn-admit."""

AUTO = "auto"
"""Leaves the kind of score to `crossfit.choose_score`."""
DEFAULT_ALPHA = Decimal("0.1")
DEFAULT_KAPPA = 1000
LARGEST_KAPPA = 2**31 - 1


class ScoreKind(StrEnum):
    """What ranks the predictions of a cell by how likely they are right."""

    NETWORK = "network"
    RELIABILITY = "reliability"


Alpha = Annotated[
    Decimal,
    Declared(
        kind=SettingKind.DECIMAL,
        about="error level in (0, 1), an exact decimal",
        usual=str(DEFAULT_ALPHA),
        example="0.1",
    ),
]
Thresholds = Annotated[
    tuple[Decimal, ...],
    Declared(
        kind=SettingKind.DECIMAL,
        many=True,
        about="least lower probability for each predicted class, in the order of the classes",
        given="each at least 1 - alpha, which is the default",
        example=["0.9", "0.95"],
        most_values=100_000,
    ),
]
QBins = Annotated[
    tuple[int, ...],
    Declared(
        kind=SettingKind.INTEGER,
        many=True,
        about="lower edges of the bins of q, the first of them 0",
        given="by default one bin for each q; for Venn-Abers, one bin",
        example=[0, 1, 6, 16, 25],
        least=0,
        most=10_000,
        most_values=10_001,
        name="bins of q",
        column="bin_edges",
    ),
]


@dataclass(frozen=True, slots=True)
class CalibratorSettings:
    """The settings of a Venn-ADMIT calibrator; the fields are in the order of stored digests.

    (C,) thresholds, each >= 1 - alpha; delta > 0, which may be inf; kappa >= 1.
    """

    method: ClassVar[str] = VENN_ADMIT
    has_policy: ClassVar[bool] = False
    uses_traffic: ClassVar[bool] = False
    certify: ClassVar[None] = None
    confidence: ClassVar[None] = None
    test: ClassVar[None] = None
    loss: ClassVar[None] = None
    standing: ClassVar[bool] = False
    family: ClassVar[bool] = False

    alpha: Alpha
    delta: Annotated[
        float,
        Declared(
            kind=SettingKind.NUMBER,
            about="band radius in standard deviations of d",
            given="1 by default; inf for bands that depend on q only",
            example=1.0,
        ),
    ]
    kappa: Annotated[
        int,
        Declared(
            kind=SettingKind.INTEGER,
            about="least number of points of each class in a band",
            given=f"{DEFAULT_KAPPA} by default, unless that leaves nearly nothing to admit; then nothing is stored, "
            "and the answer says what other settings leave",
            example=DEFAULT_KAPPA,
            least=1,
            most=LARGEST_KAPPA,
            always=True,
        ),
    ]
    q_bins: QBins
    thresholds: Thresholds
    undivided: Annotated[
        bool,
        Declared(
            kind=SettingKind.FLAG,
            about="whether all points of mc and vp calibrate sets and probabilities alike, so that nothing is owed to "
            "their division",
            given="false by default; decisions are plain then, and the width of bands comes from knn",
            example=True,
            added=True,
            default=False,
        ),
    ] = False

    @property
    def bands_part(self) -> bool:
        """Whether bands part the points, so that a set holds its label with probability 1 - alpha or more."""
        return math.isinf(self.delta)


@dataclass(frozen=True, slots=True)
class VennAbersSettings:
    """The settings of a Venn-Abers calibrator; the fields are in the order of stored digests.

    (C,) thresholds of p0, each >= 1 - alpha, in the pointwise promise; `auto` chooses by them always. If a certificate
    or the average promise is asked for, all thresholds are 1 - alpha, and decisions are made by those of the policy.
    score: None for `auto`. certify, confidence, test: None without a certificate; the strongest promise asks for both
    kinds. loss: (C, C) exact decimals; None for the 0/1 loss. standing: only with a certificate of classes.
    family: only with a certificate that is made once.
    class_shares: (C,), with class_shares_within, or both None; None if they are estimated.
    """

    method: ClassVar[str] = VENN_ABERS
    undivided: ClassVar[bool] = False

    alpha: Alpha
    q_bins: QBins
    thresholds: Thresholds
    score: Annotated[
        ScoreKind | None,
        Declared(
            kind=SettingKind.WORD,
            words=ScoreKind,
            about="what ranks predictions: network, reliability or auto",
            given="auto by default: reliability if that clearly admits more of split knn, or with the pointwise "
            "promise of mc; otherwise network",
            example=AUTO,
            none=AUTO,
            always=True,
        ),
    ]
    certify: Annotated[
        tuple[Kind, ...] | None,
        Declared(
            kind=SettingKind.WORD,
            words=parse_kind,
            many=True,
            about="what thresholds are certified for by tests on splits mc and vp: predicted or true classes, "
            "group:COLUMN for the values of an attribute, predicted*group:COLUMN, or several of these",
            given=f"promised then: {CERTIFIED_SENTENCE}; if no thresholds pass, everything is rejected",
            example=["predicted", "true"],
            most_values=MOST_KINDS,
        ),
    ] = None
    confidence: Annotated[
        Decimal | None,
        Declared(
            kind=SettingKind.DECIMAL,
            about="confidence of the certificate in (0, 1), an exact decimal",
            given=f"{DEFAULT_CONFIDENCE} by default",
            example="0.95",
        ),
    ] = None
    test: Annotated[
        DocumentTest | None,
        Declared(
            kind=SettingKind.WORD,
            words=DocumentTest,
            about="how the certificate tests documents of several points: finite-sample or asymptotic",
            given="finite-sample by default; asymptotic passes with fewer documents and is valid for very many only",
            example="finite-sample",
            column="document_test",
        ),
    ] = None
    promise: Annotated[
        AskedPromise,
        Declared(
            kind=SettingKind.WORD,
            words=AskedPromise,
            about="what is promised unless certify says it: strongest, average or pointwise",
            given="strongest by default: certified for predicted and true classes if the labels show it, otherwise for "
            "predicted classes alone; otherwise, or if that admits less than the softmax at 1 - alpha and than the "
            f"average promise, the latter: {Promised.AVERAGE.sentence}; with thresholds, pointwise by default",
            example=AskedPromise.AVERAGE,
            added=True,
            default=AskedPromise.POINTWISE,
        ),
    ] = AskedPromise.POINTWISE
    loss: Annotated[
        LossMatrix | None,
        Declared(
            kind=SettingKind.DECIMAL,
            many=True,
            rows=True,
            about="what errors cost: for each true class, a row with the loss of each predicted class, 0 for itself",
            given=f"promised then: {CERTIFIED_LOSS_SENTENCE}; by default every error costs 1, and the mean loss is the "
            "share wrong",
            example=[["0", "1"], ["5", "0"]],
            least=0,
            most=LARGEST_LOSS,
            most_values=1000,
            added=True,
        ),
    ] = None
    standing: Annotated[
        bool,
        Declared(
            kind=SettingKind.FLAG,
            about="whether the certificate stands while labels arrive, for predicted classes unless others are asked "
            "for: recalibrating advances it",
            given=f"false by default; promised then: {Promised.STANDING.sentence}; calibrating again begins another "
            "one, with a smaller part of eps",
            example=True,
            added=True,
            default=False,
        ),
    ] = False
    family: Annotated[
        bool,
        Declared(
            kind=SettingKind.FLAG,
            about="whether the confidence is that of the family: this certificate holds together with every one before "
            "it that looked at labels of the classifier, if none was tried because of what another showed",
            given="false by default; the k-th certificate then has 1 / (k + 1) of what those before it left of 1 - "
            "confidence",
            example=True,
            added=True,
            default=False,
        ),
    ] = False
    class_shares: Annotated[
        tuple[Decimal, ...] | None,
        Declared(
            kind=SettingKind.DECIMAL,
            many=True,
            about="the share of each true class in traffic, if it has the classes in other shares than the calibration "
            "data, one for each class, in their order",
            given=f"promised then: {Promised.SHARES.sentence}; by default traffic is like the calibration data",
            example=["0.3", "0.7"],
            least=0,
            most=1,
            most_values=1000,
            added=True,
        ),
    ] = None
    class_shares_within: Annotated[
        Decimal | None,
        Declared(
            kind=SettingKind.DECIMAL,
            about="by how much each of class_shares may be off; the promise holds for all shares that are as near",
            given="0 by default",
            example="0.05",
            least=0,
            added=True,
        ),
    ] = None
    class_shares_estimated: Annotated[
        bool,
        Declared(
            kind=SettingKind.FLAG,
            about="whether class_shares are estimated from recent traffic, which needs no labels, with how much each "
            "may be off",
            given="false by default; promised is the same then, for all shares that recent traffic may have; every "
            "calibration estimates them again",
            example=True,
            added=True,
            default=False,
        ),
    ] = False

    @property
    def declared_shares(self) -> ClassShares | None:
        """The class shares that are declared of traffic; None if they are estimated, or like the calibration data's."""
        if self.class_shares is None or self.class_shares_within is None:
            return None
        return ClassShares(self.class_shares, self.class_shares_within)

    @property
    def is_for_other_shares(self) -> bool:
        """Whether the certificate is for traffic with class shares of its own, declared or estimated."""
        return self.class_shares is not None or self.class_shares_estimated

    def promised(self, certified: Collection[Kind] | None, promise: AskedPromise) -> Promised:
        """Return what a calibration under these settings promises.

        Args:
            certified: The kinds of classes that its certificate is about; None without one.
            promise: What it promises then.
        """
        return promised(
            certified,
            promise,
            by_loss=self.loss is not None,
            standing=self.standing,
            by_shares=self.is_for_other_shares,
        )

    @property
    def certification(self) -> Certification | None:
        """What a certificate is asked for; None without one."""
        if self.certify is None or self.confidence is None or self.test is None:
            return None
        return Certification(self.certify, self.confidence, self.test)

    @property
    def has_policy(self) -> bool:
        """Whether a policy decides, certified or on average, and not the thresholds of these settings."""
        return self.certify is not None or self.promise is not AskedPromise.POINTWISE

    @property
    def uses_traffic(self) -> bool:
        """Whether a snapshot may rest on recent traffic: by the average promise, or by estimated class shares."""
        return self.class_shares_estimated or self.promise in {AskedPromise.AVERAGE, AskedPromise.STRONGEST}


MethodSettings: TypeAlias = CalibratorSettings | VennAbersSettings

RECORDS: Mapping[str, type[MethodSettings]] = {one.method: one for one in (CalibratorSettings, VennAbersSettings)}
"""What holds the settings of each method."""

DECLARED: Mapping[str, Mapping[str, Declared]] = {method: declared(record) for method, record in RECORDS.items()}
"""The settings of each method by name."""


def make_settings(
    class_count: int,
    neighbour_count: int,
    *,
    alpha: Decimal = DEFAULT_ALPHA,
    delta: float = 1.0,
    kappa: int = DEFAULT_KAPPA,
    q_bins: tuple[int, ...] | None = None,
    thresholds: tuple[Decimal, ...] | None = None,
    undivided: bool = False,
) -> CalibratorSettings:
    """Return checked settings. The defaults are the paper's: every q its own bin, threshold 1 - alpha for every class.

    Args:
        alpha: As in `CalibratorSettings`, as are the others.
        q_bins: None makes every q a bin of its own.
        thresholds: None makes every threshold 1 - alpha.
        undivided: Whether `mc` and `vp` calibrate alike.

    Raises:
        InvalidInputError: The settings do not fit the classifier.

    Examples:
        >>> make_settings(2, 3).q_bins
        (0, 1, 2, 3)
    """
    check_alpha(alpha)
    settings = CalibratorSettings(
        alpha=alpha,
        delta=delta,
        kappa=kappa,
        q_bins=tuple(range(neighbour_count + 1)) if q_bins is None else q_bins,
        thresholds=(1 - alpha,) * class_count if thresholds is None else thresholds,
        undivided=undivided,
    )
    check_settings(settings, class_count=class_count, neighbour_count=neighbour_count)
    return settings


def make_venn_abers_settings(
    class_count: int,
    neighbour_count: int | None,
    *,
    alpha: Decimal = DEFAULT_ALPHA,
    q_bins: tuple[int, ...] = (0,),
    thresholds: tuple[Decimal, ...] | None = None,
    score: str = AUTO,
    certify: Collection[str] | None = None,
    confidence: Decimal | None = None,
    test: str | None = None,
    promise: str = AskedPromise.POINTWISE,
    loss: LossMatrix | None = None,
    standing: bool = False,
    family: bool = False,
    class_shares: tuple[Decimal, ...] | None = None,
    class_shares_within: Decimal | None = None,
    class_shares_estimated: bool = False,
) -> VennAbersSettings:
    """Return checked settings.

    Args:
        neighbour_count: K >= 1; None without vectors, where there is no q to divide into bins, and the score is the
            network's.
        alpha: As in `VennAbersSettings`, as are the others.
        thresholds: None makes every threshold 1 - alpha.
        score: `network`, `reliability` or `auto`.
        certify: None without a certificate.
        confidence: None for 0.95.
        test: None for `finite-sample`.
        promise: `strongest`, `average` or `pointwise`; with certify, only the last.
        loss: None for the 0/1 loss, which is the same; only with a certificate.
        standing: Only with a certificate of predicted classes, of true ones, or of both, and the 0/1 loss.
        family: Only with a certificate that is made once.
        class_shares: Only with a certificate of predicted classes that is made once.
        class_shares_within: None for 0; only with class_shares.
        class_shares_estimated: As class_shares, which may not stand with it.

    Raises:
        InvalidInputError: The settings do not fit the classifier.

    Examples:
        >>> make_venn_abers_settings(2, 25).thresholds
        (Decimal('0.9'), Decimal('0.9'))
    """
    check_class_count(class_count)
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
    if promise != AskedPromise.POINTWISE:
        _check_promise(promise, certify, thresholds)
    kinds = tuple(ClassKind) if promise == AskedPromise.STRONGEST else certify
    certification = _certification(kinds, confidence, test, thresholds)
    if thresholds is None:
        thresholds = (1 - alpha,) * class_count
    check_thresholds(thresholds, alpha, class_count)
    if loss is not None:
        loss = _checked_loss(loss, alpha, class_count, certification, promise)
    if standing:
        _check_standing(certification, loss)
    if family:
        _check_family(certification, promise, standing=standing)
    shares = checked_class_shares(
        class_shares,
        class_shares_within,
        class_count,
        certification if promise == AskedPromise.POINTWISE else None,
        estimated=class_shares_estimated,
        standing=standing,
    )
    if score not in {AUTO, *ScoreKind}:
        raise InvalidInputError(f"the score must be {AUTO}, {' or '.join(ScoreKind)}; got {score}")
    return VennAbersSettings(
        alpha=alpha,
        q_bins=q_bins,
        thresholds=thresholds,
        score=None if score == AUTO else ScoreKind(score),
        certify=None if certification is None else certification.kinds,
        confidence=None if certification is None else certification.confidence,
        test=None if certification is None else certification.test,
        promise=AskedPromise(promise),
        loss=loss,
        standing=standing,
        family=family,
        class_shares=None if shares is None else shares.shares,
        class_shares_within=None if shares is None else shares.within,
        class_shares_estimated=class_shares_estimated,
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


def _checked_loss(
    loss: LossMatrix, alpha: Decimal, class_count: int, certification: Certification | None, promise: str
) -> LossMatrix | None:
    """The loss, None if it is the 0/1 loss."""
    check_loss(loss, alpha, class_count)
    if is_zero_one(loss):
        return None
    if certification is None:
        raise InvalidInputError(
            f"loss: only a certificate promises a mean loss, and the {promise} promise counts right and wrong alone; "
            "ask for the strongest promise or for a certificate of the classes you name, or leave the loss out"
        )
    return loss


def _check_family(certification: Certification | None, promise: str, *, standing: bool) -> None:
    if certification is None:
        raise InvalidInputError(
            f"family: this is a setting of certificates, and the {promise} promise has no confidence; ask for the "
            "strongest promise or for a certificate of the classes you name, or leave family out"
        )
    if standing:
        raise InvalidInputError(
            "family: the chains of certificates that stand share 1 - confidence among themselves by their numbers; "
            "leave out either family or standing"
        )


def _check_standing(certification: Certification | None, loss: LossMatrix | None) -> None:
    if certification is None or not set(certification.kinds) <= set(ClassKind):
        got = "another promise" if certification is None else ", ".join(certification.kinds)
        raise InvalidInputError(
            f"standing: a certificate that stands while labels arrive is for predicted or true classes, got {got}; "
            "certify these, or leave standing out for a certificate of groups, which is made once"
        )
    if loss is not None:
        raise InvalidInputError(
            "standing: a certificate that stands while labels arrive counts right and wrong alone, got a loss; leave "
            "out either loss or standing"
        )
    if certification.test is not DocumentTest.FINITE_SAMPLE:
        raise InvalidInputError(
            "standing: a certificate that stands while labels arrive is looked at after any number of documents, got "
            f"the test {certification.test}; leave out either test or standing"
        )


def _check_promise(promise: str, certify: Collection[str] | None, thresholds: tuple[Decimal, ...] | None) -> None:
    if promise not in tuple(AskedPromise):
        raise InvalidInputError(f"the promise must be {' or '.join(AskedPromise)}; got {promise}")
    for name, given in (("certify", certify), ("thresholds", thresholds)):
        if given is not None:
            raise InvalidInputError(
                f"{name}: the promise {promise} sets thresholds of its own, and a certificate is another promise; "
                f"leave out either {name} or promise"
            )


def check_settings(settings: CalibratorSettings, *, class_count: int, neighbour_count: int) -> None:
    """Check that settings fit a classifier.

    Raises:
        InvalidInputError: They do not fit; the message says what was expected and received.
    """
    check_class_count(class_count)
    check_alpha(settings.alpha)
    if math.isnan(settings.delta) or settings.delta <= 0:
        raise InvalidInputError(f"delta must be greater than 0 (inf is allowed); got {settings.delta}")
    if not 1 <= settings.kappa <= LARGEST_KAPPA:
        raise InvalidInputError(f"kappa must be at least 1 and at most {LARGEST_KAPPA:,}; got {settings.kappa}")
    check_q_bins(settings.q_bins, neighbour_count)
    check_thresholds(settings.thresholds, settings.alpha, class_count)


def check_class_count(class_count: int) -> None:
    """Check that there are classes to tell apart."""
    if class_count < 2:
        raise InvalidInputError(f"a classifier needs at least 2 classes; got {class_count}")


def check_alpha(alpha: Decimal) -> None:
    """Check that an error level lies strictly between 0 and 1."""
    if not (alpha.is_finite() and 0 < alpha < 1):
        raise InvalidInputError(f"alpha must lie strictly between 0 and 1; got {alpha}")


def check_q_bins(q_bins: tuple[int, ...], neighbour_count: int) -> None:
    """Check that the lower edges of the bins of q ascend from 0 to K at most."""
    ascending = all(lower < upper for lower, upper in pairwise(q_bins))
    if not q_bins or q_bins[0] != 0 or not ascending or q_bins[-1] > neighbour_count:
        raise InvalidInputError(
            f"the bins of q must be given by ascending lower edges, the first of them 0 and none above "
            f"K = {neighbour_count}; got {', '.join(map(str, q_bins)) or 'none'}"
        )


def check_thresholds(thresholds: tuple[Decimal, ...], alpha: Decimal, class_count: int) -> None:
    """Check that there is a least lower probability for each of C classes, and none below 1 - alpha or above 1."""
    if len(thresholds) != class_count:
        raise InvalidInputError(
            f"expected one threshold for each of {class_count} classes, in their order, got {len(thresholds)}"
        )
    least = 1 - alpha
    for predicted, threshold in enumerate(thresholds):
        if not (threshold.is_finite() and least <= threshold <= 1):
            raise InvalidInputError(
                f"the threshold of class {predicted} must be at least 1 - alpha = {least} and at most 1; "
                f"got {threshold}"
            )
