"""What calibrating and deciding return."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from venn_admit.core.calibrators.certified.certificate import Certificate as FoundCertificate
from venn_admit.core.calibrators.certified.certificate import ClassResult
from venn_admit.core.calibrators.settings import CalibratorSettings, MethodSettings
from venn_admit.flows.decisions.score_one import PointDecision
from venn_admit.records import Neighbour
from venn_admit.report.calibration.cells.certified import certificate_payload
from venn_admit.report.wording import q_bins_text, thresholds_text

if TYPE_CHECKING:
    from venn_admit.flows.calibration.calibrate import Calibrated

_NEAREST = 5


@dataclass(frozen=True, slots=True)
class CertifiedClass:
    """What a test on split vp found for one class under one policy.

    Attributes:
        kind: `predicted` or `true`.
        name: The class.
        admitted: The share of all points of vp that are of this class and admitted.
        right: The share of these that is right; None if there are none.
        p_value: The smaller, the better vouched for; None for a predicted class that is never admitted, of which
            nothing is promised.
        documents_needed: If the class falls short, the documents of vp with which it is likely to pass at the rates
            seen; None if it passes, or if no number would do.
        labels_needed: The labels that these documents hold.
    """

    kind: str
    name: str
    admitted: float
    right: float | None
    p_value: float | None
    documents_needed: int | None
    labels_needed: int | None


@dataclass(frozen=True, slots=True)
class Certificate:
    """Whether a policy could be certified: thresholds under which enough is right in every class asked for.

    Attributes:
        is_certified: Whether a policy passed. If none did, everything is rejected.
        kinds: The classes for which it holds: `predicted`, `true` or both.
        confidence: Over the calibration data, with which it holds.
        test: How documents of several points were tested: `finite-sample` or `asymptotic`.
        thresholds: For each predicted class the least p0 at which it is admitted, None for never; None if nothing is
            certified.
        admitted: The share of split vp that the policy admits; None if nothing is certified.
        classes: The results of the certified policy, or of the one that came closest.
        documents_needed: The documents of vp with which a policy is likely to pass at the rates seen; None if one did,
            or if no number would do.
        labels_needed: The labels that these documents hold.
        document: Everything, with each policy that was proposed and tested, as JSON holds it.
    """

    is_certified: bool
    kinds: tuple[str, ...]
    confidence: Decimal
    test: str
    thresholds: Mapping[str, float | None] | None
    admitted: float | None
    classes: tuple[CertifiedClass, ...]
    documents_needed: int | None
    labels_needed: int | None
    document: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibration, which new decisions are made by. As text, its settings and figures in some lines.

    Attributes:
        id: Its number.
        method: `venn-admit` or `venn-abers`.
        alpha: The error level.
        thresholds: The least lower probability that admits each predicted class, that of the policy if a certificate
            was asked for; None for a class that is never admitted.
        q_bins: The lower edges of the bins of q.
        mc_points: Points of split mc.
        vp_points: Points of split vp, which Venn-Abers uses for a certificate alone.
        delta: The band radius in standard deviations of d; None for Venn-Abers.
        kappa: The least number of points of each class in a band; None for Venn-Abers.
        usable_share: The share of vp in bands with enough points; None for Venn-Abers.
        singleton_share: The share of vp whose ADMIT set is a single class; of these, fewer will be admitted. None for
            Venn-Abers.
        score: What ranks predictions, `network` or `reliability`; None for Venn-ADMIT.
        certificate: What became of the certificate; None if none was asked for.
    """

    id: int
    method: str
    alpha: Decimal
    thresholds: tuple[Decimal | None, ...]
    q_bins: tuple[int, ...]
    mc_points: int
    vp_points: int
    delta: float | None
    kappa: int | None
    usable_share: float | None
    singleton_share: float | None
    score: str | None
    certificate: Certificate | None

    def __str__(self) -> str:
        return "\n".join(_calibration_lines(self))


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on one point, and why. As text, this in some lines.

    Attributes:
        admitted: The class that is admitted; None if the prediction is rejected.
        predicted: The class predicted.
        reason: Why the prediction is rejected; None if it is admitted.
        lower: The lower bound on the probability that the prediction is right; None if it was rejected before.
        upper: The upper bound.
        match_count: q, how many of the nearest exemplars match in a row, 0 to K; None with logits only.
        distance: d, the distance to the nearest training exemplar; None with logits only.
        neighbours: The K nearest training exemplars, nearest first; none with logits only.
        calibration: The number of the calibration that it was made by.
        evidence: Everything that the decision rests on, by the names that a stored decision has it under.
    """

    admitted: str | None
    predicted: str
    reason: str | None
    lower: float | None
    upper: float | None
    match_count: int | None
    distance: float | None
    neighbours: tuple[Neighbour, ...]
    calibration: int
    evidence: Mapping[str, Any]

    def __str__(self) -> str:
        return "\n".join(_decision_lines(self))


def calibration_of(done: "Calibrated") -> Calibration:
    """Return a calibration in terms of this package."""
    from venn_admit.methods.venn_abers.make import MadeByAbers

    settings = done.method_settings
    by_abers = done.made if isinstance(done.made, MadeByAbers) else None
    bands = settings if isinstance(settings, CalibratorSettings) else None
    certificate = None
    if by_abers is not None and by_abers.certificate is not None:
        certificate = certificate_of(by_abers.certificate, done.classifier.class_names)
    return Calibration(
        id=done.calibration_id,
        method=settings.method,
        alpha=settings.alpha,
        thresholds=_deciding(settings, certificate),
        q_bins=settings.q_bins,
        mc_points=done.mc_count,
        vp_points=done.vp_count,
        delta=None if bands is None else bands.delta,
        kappa=None if bands is None else bands.kappa,
        usable_share=None if bands is None else done.by_admit.usable_count / done.vp_count,
        singleton_share=None if bands is None else done.by_admit.singleton_count / done.vp_count,
        score=None if by_abers is None else str(by_abers.choice.kind),
        certificate=certificate,
    )


def _deciding(settings: MethodSettings, certificate: Certificate | None) -> tuple[Decimal | None, ...]:
    """Return the thresholds that decide: those of the policy, if a certificate was asked for."""
    if certificate is None:
        return settings.thresholds
    if certificate.thresholds is None:
        return (None,) * len(settings.thresholds)
    return tuple(None if one is None else Decimal(repr(one)) for one in certificate.thresholds.values())


def certificate_of(found: FoundCertificate, classes: Sequence[str]) -> Certificate:
    """Return a certificate in terms of class names."""
    chosen = None if found.chosen is None else found.proposals[found.chosen]
    shown = found.closest
    return Certificate(
        is_certified=chosen is not None,
        kinds=tuple(map(str, found.kinds)),
        confidence=found.confidence,
        test=str(found.test),
        thresholds=None if chosen is None else dict(zip(classes, chosen.policy.thresholds, strict=True)),
        admitted=None if chosen is None else chosen.vp_share,
        classes=() if shown is None else tuple(_class(found, result, classes) for result in shown.classes),
        documents_needed=found.documents_needed,
        labels_needed=found.labels_needed,
        document=certificate_payload(found, classes),
    )


def _class(found: FoundCertificate, result: ClassResult, classes: Sequence[str]) -> CertifiedClass:
    falls_short = result.p_value is not None and result.p_value > found.level
    needed = result.documents_needed if falls_short else None
    return CertifiedClass(
        kind=str(result.kind),
        name=classes[result.number],
        admitted=result.vp_admitted / found.vp_points,
        right=result.vp_share,
        p_value=result.p_value,
        documents_needed=needed,
        labels_needed=None if needed is None else found.points_in(needed),
    )


def decision_of(decided: PointDecision, classes: Sequence[str]) -> Decision:
    """Return a decision in terms of class names."""
    fields = decided.fields
    neighbours = tuple(
        Neighbour(neighbour.external_id, classes[label], distance, neighbour.attributes)
        for neighbour, label, distance in decided.near
    )
    return Decision(
        admitted=None if fields["decision"] is None else classes[fields["decision"]],
        predicted=classes[fields["predicted"]],
        reason=fields["reason"],
        lower=fields["lower"],
        upper=fields["upper"],
        match_count=fields["match_count"],
        distance=fields["distance"],
        neighbours=neighbours,
        calibration=decided.calibration_id,
        evidence=fields
        | {
            "category_counts": decided.category_counts.tolist(),
            "policy": None if decided.policy is None else asdict(decided.policy),
        },
    )


def _calibration_lines(made: Calibration) -> Iterator[str]:
    own = f"score {made.score}" if made.delta is None else f"delta {made.delta:g}, kappa {made.kappa:,}"
    yield f"Calibration {made.id}: {made.method}, alpha {made.alpha}, {own}"
    certificate = made.certificate
    if certificate is None or certificate.is_certified:
        yield f"  thresholds {thresholds_text(made.thresholds)}; bins of q {q_bins_text(made.q_bins)}"
    yield f"  {made.mc_points:,} points in mc, {made.vp_points:,} in vp"
    if made.usable_share is not None and made.singleton_share is not None:
        yield (
            f"  {made.usable_share:.1%} of vp in bands with enough points; a set with a single class for "
            f"{made.singleton_share:.1%}"
        )
    if certificate is not None:
        kinds = " and ".join(certificate.kinds)
        if certificate.is_certified:
            yield (
                f"  certified for {kinds} classes with confidence {certificate.confidence}; the policy admits "
                f"{certificate.admitted or 0:.1%} of vp"
            )
        else:
            yield f"  not certified for {kinds} classes, so that everything is rejected"


def _decision_lines(made: Decision) -> Iterator[str]:
    if made.admitted is None:
        yield f"Rejected: {made.reason}; predicted is {made.predicted}"
    else:
        yield f"Admitted: {made.admitted}"
    if made.lower is not None and made.upper is not None:
        yield f"  right with a probability of {made.lower:.3f} to {made.upper:.3f}, by calibration {made.calibration}"
    else:
        yield f"  by calibration {made.calibration}"
    if made.match_count is None or made.distance is None:
        return
    yield f"  q = {made.match_count} of the nearest training exemplars match in a row; d = {made.distance:.4g}"
    for neighbour in made.neighbours[:_NEAREST]:
        yield f"    {neighbour.distance:.4g}  {neighbour.label}  {neighbour.id}"
    if len(made.neighbours) > _NEAREST:
        yield f"    and {len(made.neighbours) - _NEAREST} more, in .neighbours"
