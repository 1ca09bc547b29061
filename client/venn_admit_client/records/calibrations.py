"""Fits, and calibrations: made, listed, put in use, or withheld."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby

from venn_admit_client.members import Told, member, record

from .certificates import Certificate, CertifiedClass, labels_needed_text

_MOST_BINS = 6
_MOST_LACKING = 5
_CLASS_KINDS = ("predicted", "true")


@record
class Fit:
    """The approximation of the network by its nearest training exemplars.

    Attributes:
        knn_parameters: The number of its parameters.
        fit_points: Points of split knn that were fitted on.
        discrepancies: Points of the development half on which KNN and network predict different classes.
        points: Points of the development half, by which the epochs of training were compared.
        temperature: Eta, the temperature of the neighbour weights, in units of distance.
        localizer_temperature: The temperature of the localizer.
        full_matches: The share of split knn with q = K, between which q does not tell; None for earlier fits.
    """

    knn_parameters: int = member(3, repr=False)
    fit_points: int = member(500, "fit", repr=False)
    discrepancies: int = member(12, "dev_discrepancies", late=True)
    points: int = member(500, "dev")
    temperature: float = member(4.7, "eta", late=True)
    localizer_temperature: float = member(0.6, "eta_loc", late=True)
    full_matches: float | None = member(0.31, late=True)


@record
class ListedCalibration:
    """A stored calibration at a glance.

    Attributes:
        id: Its number.
        setting: The number of the setting that it was made under.
        number: Ascending within the setting.
        created_at: When it was made.
        reason: Why it was made.
        mc_points: Points of split mc.
        vp_points: Points of split vp.
        is_current: Whether `state` is `current`.
        state: `current`: the one of its setting that the next follows; `retired`: one before it; or `withheld`:
            stored, and never put in use. The one in use is the current one of the setting in use.
    """

    id: int = member(7, "calibration")
    setting: int = member(1)
    number: int = member(3)
    created_at: datetime = member("2026-07-01T12:00:00+00:00")
    reason: str = member("labels")
    mc_points: int = member(4500, "mc")
    vp_points: int = member(4500, "vp")
    is_current: bool = member(True)
    state: str = member("current")


@record
class CalibrationUse:
    """A calibration that was in use.

    Attributes:
        calibration: Its number; it may be gone by now.
        setting: The number of the setting that it was made under.
        since: When it was put in use.
        until: When another one was; None while it is in use.
        origin: `http`, `command line`, `python` or `schedule`; None if it was in use before this history was begun.
        key_name: What the key that was shown is for; None without one.
        subject: The subject of the token that was shown; None without.
        reason: Why it was put in use.
    """

    calibration: int = member(7)
    setting: int = member(1)
    since: datetime = member("2026-07-01T12:00:00+00:00")
    until: datetime | None = member(None)
    origin: str | None = member("schedule")
    key_name: str | None = member(None)
    subject: str | None = member(None)
    reason: str = member("labels")

    @property
    def by(self) -> str:
        """Who put it in use."""
        return self.key_name or self.subject or self.origin or "unknown"


@record
class PutInUse:
    """What a classifier decides with from now on.

    Attributes:
        classifier: Its name.
        calibration: The calibration in use.
        before: The one that was in use before; None if there was none.
        is_changed: Whether these are two.
        admits_nothing: Whether it admits none of its calibration points.
    """

    classifier: str = member("reviews")
    calibration: int = member(7)
    before: int | None = member(9)
    is_changed: bool = member(True)
    admits_nothing: bool = member(False)


@record
class Withheld(Told):
    """Why a calibration is stored and not in use: it would admit less than half of what the one before it does.

    Attributes:
        in_use: The calibration that it would have replaced: the one in use or, after a recalibration, the one of its
            setting.
        points: The calibration points that both judge; 0 if each was measured on its own.
        share: The share of them that it would admit, by its policy or by plain probabilities.
        share_in_use: The share of them that the other one would admit.
    """

    in_use: int = member(7)
    points: int = member(4500)
    share: float = member(0.031)
    share_in_use: float = member(0.41)

    def __str__(self) -> str:
        return (
            f"it would admit {self.share:.1%} of {_judged(self.points)} and calibration {self.in_use}, which it would "
            f"have replaced, {self.share_in_use:.1%}"
        )


@record
class Weaker(Told):
    """What a calibration admits that is in use because its setting was asked for: less than half of what was before.

    Attributes:
        before: The calibration that was in use before.
        points: The calibration points that both judge; 0 if each was measured on its own.
        share: The share of them that it would admit, by its policy or by plain probabilities.
        share_before: The share of them that the one before would admit.
    """

    before: int = member(7)
    points: int = member(4500)
    share: float = member(0.17)
    share_before: float = member(0.41)

    def __str__(self) -> str:
        return (
            f"it would admit {self.share:.1%} of {_judged(self.points)} and calibration {self.before}, in use before, "
            f"{self.share_before:.1%}"
        )


def _judged(points: int) -> str:
    return f"{points:,} calibration points" if points else "its calibration points, each of its own,"


@record
class Calibration(Told):
    """A calibration, which decisions are made by unless it is withheld. As text, its settings and figures in lines.

    Attributes:
        id: Its number; None if nothing was stored, in a dry run.
        method: `venn-admit` or `venn-abers`.
        alpha: The error level.
        thresholds: The least lower probability that admits each predicted class or, if a certificate or the average
            promise was asked for, the least score; None for a class that is never admitted.
        q_bins: The lower edges of the bins of q.
        mc_points: Points of split mc.
        vp_points: Points of split vp, which Venn-Abers uses for a certificate or the average promise alone.
        delta: The band radius in standard deviations of d; None for Venn-Abers.
        kappa: The least number of points of each class in a band; None for Venn-Abers.
        usable_share: The share of vp in bands with enough points; None for Venn-Abers.
        singleton_share: The share of vp whose ADMIT set is a single class; of these, fewer will be admitted. None for
            Venn-Abers.
        score: What ranks predictions, `network` or `reliability`; None for Venn-ADMIT.
        certificate: What became of the certificate; None if none was asked for.
        on_average: Whether its promise is the average one, as it was asked for or nothing is certified.
        withheld: Why it is not in use; None if new decisions are made by it.
        weaker: What it admits, if far less than the one in use before; None otherwise.
    """

    id: int | None
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
    on_average: bool = False
    withheld: Withheld | None = None
    weaker: Weaker | None = None

    def __str__(self) -> str:
        return "\n".join(_calibration_lines(self))


def thresholds_text(thresholds: Sequence[Decimal | None]) -> str:
    """Return the least and the greatest threshold, or the one that all are; None stands for never.

    >>> thresholds_text([Decimal("0.6123456"), None, Decimal("0.9")])
    '0.612346 to 0.9, never'
    """
    used = [one for one in thresholds if one is not None]
    never = ["never"] if len(used) < len(thresholds) else []
    if not used:
        return "never"
    least, most = (f"{one:.6g}" for one in (min(used), max(used)))
    return ", ".join([least if least == most else f"{least} to {most}", *never])


def q_bins_text(q_bins: Sequence[int]) -> str:
    """Return the lower edges of the bins of q as `calibrate --q-bins` takes them; a long run from 0 is abbreviated.

    >>> q_bins_text([0, 1, 25]), q_bins_text(range(26))
    ('0,1,25', '0,1,...,25')
    """
    if len(q_bins) > _MOST_BINS and tuple(q_bins) == tuple(range(len(q_bins))):
        return f"0,1,...,{q_bins[-1]}"
    return ",".join(map(str, q_bins))


def _calibration_lines(made: Calibration) -> Iterator[str]:
    own = f"score {made.score}" if made.delta is None else f"delta {made.delta:g}, kappa {made.kappa:,}"
    yield f"{'Dry run' if made.id is None else f'Calibration {made.id}'}: {made.method}, alpha {made.alpha}, {own}"
    certificate = made.certificate
    if certificate is None or certificate.is_certified or made.on_average:
        yield f"  thresholds {thresholds_text(made.thresholds)}; bins of q {q_bins_text(made.q_bins)}"
    if made.mc_points:
        yield f"  {made.mc_points:,} points in mc, {made.vp_points:,} in vp"
    else:
        yield f"  {made.vp_points:,} points of mc and vp, undivided"
    if made.usable_share is not None and made.singleton_share is not None:
        yield (
            f"  {made.usable_share:.1%} of vp in bands with enough points; a set with a single class for "
            f"{made.singleton_share:.1%}"
        )
    if certificate is not None:
        yield from _certificate_lines(certificate, on_average=made.on_average)
    if made.on_average:
        yield f"  promised on average: at most {made.alpha} wrong among the admitted of each predicted class"
    would_be = "would be " if made.id is None else ""
    if made.withheld is not None:
        yield f"  {would_be}stored and not in use: {made.withheld}"
    if made.weaker is not None:
        yield f"  {would_be}in use, as its setting was asked for: {made.weaker}"


def _certificate_lines(certificate: Certificate, *, on_average: bool) -> Iterator[str]:
    kinds = _kinds_text(certificate)
    if (aside := certificate.set_aside) is not None:
        passed = [_class_name(one) for one in aside.classes if one.p_value is not None]
        more = f" and {len(passed) - _MOST_LACKING} more" if len(passed) > _MOST_LACKING else ""
        yield (
            f"  certified for {', '.join(passed[:_MOST_LACKING])}{more} and not in use: it would admit "
            f"{aside.admitted:.1%} of mc and vp, and the softmax at 1 - alpha {aside.by_softmax:.1%}"
        )
        return
    if not certificate.is_certified:
        yield f"  not certified for {kinds}{'' if on_average else ', so that everything is rejected'}"
        return
    admits = f"the policy admits {certificate.admitted or 0:.1%} of mc and vp"
    of_test = "asymptotic " if certificate.test == "asymptotic" else ""
    yield f"  certified for {kinds} with {of_test}confidence {certificate.confidence}; {admits}"
    lacking = [one for one in certificate.classes if not one.is_promised]
    if lacking:
        more = f" and {len(lacking) - _MOST_LACKING} more" if len(lacking) > _MOST_LACKING else ""
        text = _lacking_text(lacking[:_MOST_LACKING], known=certificate.document.get("points", 0))
        yield f"  nothing is promised for {text}{more}"


def _kinds_text(certificate: Certificate) -> str:
    classes = [kind for kind in certificate.kinds if kind in _CLASS_KINDS]
    groups = [kind for kind in certificate.kinds if kind not in _CLASS_KINDS]
    return " and ".join([f"{' and '.join(classes)} classes", *groups] if classes else groups)


def _lacking_text(lacking: Sequence[CertifiedClass], *, known: int) -> str:
    """Return the classes by the labels that they need; those that must pass together need the same."""
    by_needed = groupby(lacking, key=lambda one: labels_needed_text(one.labels_needed, known))
    return "; ".join(f"{', '.join(map(_class_name, group))} ({needed})" for needed, group in by_needed)


def _class_name(one: CertifiedClass) -> str:
    return " ".join(filter(None, (one.kind, one.group, one.name)))
