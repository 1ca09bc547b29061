"""What a result is for programs: the Python interface, `--json`, the HTTP service and its client say the same."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from decimal import Decimal
from typing import Any

from .members import member, record

_MOST_BINS = 6
_NEAREST = 5


@record
class Registered:
    """A classifier, or a generation of it, as it was registered.

    Attributes:
        name: Its name, or NAME@NUMBER for a generation that is not current.
        classes: The names of the classes, in the order of the logits.
        dimension: D, the length of a vector; None with logits only.
        neighbours: K, the number of neighbours of the KNN; None with logits only.
        generation: Number among the generations of the classifier.
        is_current: Whether the classifier's name stands for it.
        extractor: Version of the extractor of its vectors; None if it was not stated.
    """

    name: str = member("reviews", "classifier")
    classes: tuple[str, ...] = member(["negative", "positive"])
    dimension: int | None = member(768)
    neighbours: int | None = member(25, "k")
    generation: int = member(1)
    is_current: bool = member(True)
    extractor: str | None = member("sha256:9f2c")


@record
class Ingestion:
    """What became of exemplars that were ingested.

    Attributes:
        rows: How many there were.
        new: How many were not stored already.
        already_stored: How many were stored already.
        new_per_split: The new ones in each split: `train`, `knn`, `mc` and `vp`.
        copies: New ones that are held out, of documents with the vectors and logits of another, whose split they share.
        training_copies: New ones with those of an exemplar that trains, or for training exemplars, that is held out.
        labels_carried: Exemplars whose labels were carried over from other generations.
        recalibrations_due: How many settings should be recalibrated for it.
        training_waiting: Training exemplars, earlier ones included, that wait for jobs that are running, for ten
            minutes at most; another recalibration follows for them.
    """

    rows: int = member(2)
    new: int = member(2)
    already_stored: int = member(0, repr=False)
    new_per_split: Mapping[str, int] = member({"mc": 1, "vp": 1})
    copies: int = member(0, repr=False)
    training_copies: int = member(0, repr=False)
    labels_carried: int = member(0, repr=False)
    recalibrations_due: int = member(1, late=True)
    training_waiting: int = member(0)


@record
class Labelling:
    """What became of labels. One of several generations is reported on: the one named, or the newest with the exemplar.

    Attributes:
        rows: How many there were: the new, corrected, retracted, unchanged ones and those put to use.
        new: Labels of exemplars that had none.
        corrected: Labels other than what was stored.
        retracted: Labels taken back.
        unchanged: Labels known already, of which nothing is recorded.
        put_to_use: Labels stored before, and used from now on.
        calibrating: Exemplars that fit, calibrate or train from now on, in each split.
        left: Exemplars no longer in use.
        kept_for_evaluation: Exemplars with a label new or corrected that are not in use.
        selected_and_calibrating: Exemplars labelled as selected that still calibrate, because they were drawn at random
            earlier.
        in_other_generations: Labels recorded for the same exemplars of other generations.
        recalibrations_due: How many settings should be recalibrated for it.
        ignored: Columns of the table that were not read; over HTTP it does not say.
    """

    rows: int = member(1)
    new: int = member(1)
    corrected: int = member(0)
    retracted: int = member(0)
    unchanged: int = member(0)
    put_to_use: int = member(0, repr=False)
    calibrating: Mapping[str, int] = member({"mc": 1}, "joined")
    left: int = member(0, repr=False)
    kept_for_evaluation: int = member(0, repr=False)
    selected_and_calibrating: int = member(0, repr=False)
    in_other_generations: int = member(0, repr=False)
    recalibrations_due: int = member(1)
    ignored: tuple[str, ...] = field(default=(), repr=False)


@record
class Forgetting:
    """What was removed of exemplars that were forgotten, or would be. No id is in it.

    Attributes:
        classifier: The name that stands for all generations.
        is_done: Whether it was done, rather than only counted.
        ids: How many of the ids were found.
        exemplars: How many were removed, in all generations together.
        forgotten_before: How many of the ids were forgotten before.
        unknown: How many of the ids are unknown.
        rows: Removed, by table.
        calibrations_renewed: Calibrations that counted one of them, and are followed by one that does not.
        recalibrations_due: How many settings should be recalibrated for it.
        jobs: Jobs that search neighbours again.
    """

    classifier: str = member("reviews", repr=False)
    is_done: bool = member(True)
    ids: int = member(2)
    exemplars: int = member(2)
    forgotten_before: int = member(0)
    unknown: int = member(0)
    rows: Mapping[str, int] = member({"exemplar": 2, "label_event": 2})
    calibrations_renewed: int = member(1)
    recalibrations_due: int = member(0)
    jobs: tuple[int, ...] = member([], repr=False)


@record
class Deletion:
    """What was deleted of a classifier, or would be.

    Attributes:
        classifier: Its name, or the address of the one generation.
        is_done: Whether it was done, rather than only counted.
        generations: NAME@NUMBER of each generation.
        rows: Deleted, by table, without what a call deleted that was interrupted.
        longest_seconds: The longest transaction that deleted rows, from when it had its locks; over HTTP it does not
            say.
    """

    classifier: str = member("reviews", repr=False)
    is_done: bool = member(True)
    generations: tuple[str, ...] = member(["reviews@1"])
    rows: Mapping[str, int] = member({"classifier": 1, "exemplar": 1000})
    longest_seconds: float = field(default=0.0, repr=False, compare=False)


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
        is_current: Whether its setting is kept current by it.
        state: `current`, `retired`, or `withheld`: stored, and never put in use.
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
        origin: `http`, `command line` or `schedule`; None if it was in use before this history was begun.
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
class CertificateLook:
    """A certificate that looked at the held-out labels of a classifier.

    Attributes:
        calibration: The first calibration with it, which may be gone by now.
        setting: The number of the setting.
        classifier: The generation of the classifier.
        created_at: When it looked.
        confidence: The confidence that was asked for.
        looks: How many certificates looked at these labels, with this one and those before it.
        joint_confidence: The confidence that all of these hold together, whatever was chosen among them.
    """

    calibration: int = member(7)
    setting: int = member(1)
    classifier: str = member("reviews")
    created_at: datetime = member("2026-07-01T12:00:00+00:00")
    confidence: Decimal = member("0.95")
    looks: int = member(2)
    joint_confidence: Decimal = member("0.90")


def looks_text(looks: int, joint_confidence: Decimal) -> str:
    """Return what is said of the certificates that looked at the same labels.

    >>> looks_text(3, Decimal("0.85"))
    '3 certificates looked at the labels of mc and vp; all hold together with confidence 0.85.'
    """
    they = "1 certificate" if looks == 1 else f"{looks:,} certificates"
    if not joint_confidence:
        return f"{they} looked at the labels of mc and vp: too many for any confidence that all hold together."
    what = "it holds" if looks == 1 else "all hold together"
    return f"{they} looked at the labels of mc and vp; {what} with confidence {joint_confidence}."


@record
class PutInUse:
    """What a classifier decides with from now on.

    Attributes:
        classifier: Its name.
        calibration: The calibration in use.
        before: The one that was in use before; None if there was none.
        is_changed: Whether these are two.
    """

    classifier: str = member("reviews")
    calibration: int = member(7)
    before: int | None = member(9)
    is_changed: bool = member(True)


@record
class Withheld:
    """Why a calibration is stored and not in use: it would admit less than half of what the one in use does.

    Attributes:
        in_use: The calibration that stays in use.
        points: The calibration points that both judge; 0 if each was measured on its own.
        share: The share of them that it would admit, by plain probabilities.
        share_in_use: The share of them that the one in use would admit.
    """

    in_use: int = member(7)
    points: int = member(4500)
    share: float = member(0.031)
    share_in_use: float = member(0.41)

    def __str__(self) -> str:
        points = f"{self.points:,} calibration points" if self.points else "its calibration points, each of its own,"
        return (
            f"it would admit {self.share:.1%} of {points} and calibration {self.in_use}, which stays in use, "
            f"{self.share_in_use:.1%}"
        )


@record
class Neighbour:
    """A training exemplar near a point.

    Attributes:
        id: Its id.
        label: Its class.
        distance: Euclidean, in the units of the vectors.
        attributes: What was stored with it.
    """

    id: str = member("train-17", "external_id")
    label: str = member("positive", "label_class")
    distance: float = member(3.25)
    attributes: Mapping[str, Any] = member({"text": "A film to remember."})


@record
class CertifiedClass:
    """What a test on splits mc and vp found for one class or group under one policy.

    Attributes:
        kind: `predicted` or `true`, or `group:COLUMN` or `predicted*group:COLUMN`.
        name: The class; None for a group of all predicted classes.
        group: The value of the attribute; None if the kind is not of groups.
        is_promised: Whether something is promised for the class. If not, the rest is the policy nearest to one.
        admitted: The share of all points of mc and vp that are of this class and admitted.
        right: The share of these that is right; None if there are none.
        p_value: The smaller, the stronger the evidence; None if nothing was tested.
        documents_needed: If nothing is promised, the documents of mc and vp with which the class is likely to pass at
            the rates seen; None if it passed, or if no number would do.
        labels_needed: The labels that these documents hold.
    """

    kind: str
    name: str | None
    group: str | None
    is_promised: bool
    admitted: float
    right: float | None
    p_value: float | None
    documents_needed: int | None
    labels_needed: int | None


@record
class Certificate:
    """Whether a policy could be certified: thresholds under which enough is right in every class asked for.

    Attributes:
        is_certified: Whether a policy passed. If none did, everything is rejected.
        kinds: What it holds for: `predicted`, `true`, `group:COLUMN`, `predicted*group:COLUMN`, or several of these.
        confidence: The probability, over draws of the calibration data, with which it holds.
        test: How documents of several points were tested: `finite-sample` or `asymptotic`.
        thresholds: For each predicted class the least score at which it is admitted, None for never; None if nothing is
            certified. Those of groups, which must be reached too, are in the document.
        admitted: The share of splits mc and vp that the policy admits; None if nothing is certified.
        classes: The results of the classes that something is promised for, then, for the others, the nearest to a
            promise.
        documents_needed: The documents of mc and vp with which a policy is likely to pass at the rates seen; None if
            one did, or if no number would do.
        labels_needed: The labels that these documents hold.
        document: Everything, with each policy that was tested, as JSON holds it.
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


@record
class Policy(Certificate):
    """The certificate of a stored calibration.

    Attributes:
        classifier: The name of the classifier.
        calibration: The number of the calibration that was asked for the certificate.
    """

    classifier: str
    calibration: int

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as `venn-admit export --what policy` writes it."""
        return dict(self.document)


@record
class Calibration:
    """A calibration, which decisions are made by unless it is withheld. As text, its settings and figures in lines.

    Attributes:
        id: Its number.
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
        withheld: Why it is stored and not in use; None if new decisions are made by it.
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
    withheld: Withheld | None = None

    def __str__(self) -> str:
        return "\n".join(_calibration_lines(self))


@record
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
        neighbours: The nearest training exemplars that were asked for, nearest first; none with logits only.
        calibration: The number of the calibration that it was made by.
        evidence: Everything that the decision rests on, by the names that a stored decision has it under.
        id: What the point was called; None if it had no id.
    """

    admitted: str | None = member("positive", "decided_class")
    predicted: str = member("positive", "predicted_class")
    reason: str | None = member(None)
    lower: float | None = member(0.93)
    upper: float | None = member(0.95)
    match_count: int | None = member(25)
    distance: float | None = member(3.25)
    neighbours: tuple[Neighbour, ...] = member(repr=False)
    calibration: int = member(7)
    evidence: Mapping[str, Any] = field(repr=False)
    id: str | None = member("review-1", "external_id", default=None)

    def __str__(self) -> str:
        return "\n".join(_decision_lines(self))


@record
class StoredDecision:
    """A stored decision at a glance.

    Attributes:
        number: Its number, which `replay` takes.
        id: The id of the exemplar.
        admitted: The class that is admitted; None if the prediction is rejected.
        predicted: The class predicted.
        reason: Why the prediction is rejected; None if it is admitted.
        lower: The lower bound on the probability that the prediction is right; None if it was rejected before.
        upper: The upper bound.
        calibration: The number of the calibration that it was made by.
        weighted: Whether probabilities were weighted.
        require_full_match: Whether predictions with q < K were rejected.
        created_at: When it was made.
    """

    number: int = member(4711, "decision")
    id: str = member("review-1", "external_id")
    admitted: str | None = member("positive", "decided_class")
    predicted: str = member("positive", "predicted_class")
    reason: str | None = member(None)
    lower: float | None = member(0.93)
    upper: float | None = member(0.95)
    calibration: int = member(7)
    weighted: bool = member(True)
    require_full_match: bool = member(False)
    created_at: datetime = member("2026-07-01T12:00:00+00:00")


@record
class Replay:
    """A stored decision, computed again from its snapshot.

    Attributes:
        number: The number of the decision.
        id: The id of the exemplar.
        calibration: The number of the calibration that it was made by.
        differing: The fields that are not the same, bit for bit; it should be empty.
        stored: What is stored of it.
        computed: What was computed.
        neighbours: The nearest training exemplars of that time.
        document: Everything, as JSON has it.
    """

    number: int = member(4711, "decision_id")
    id: str = member("review-1", "external_id")
    calibration: int = member(7)
    differing: tuple[str, ...] = member([])
    stored: Mapping[str, Any] = member(repr=False)
    computed: Mapping[str, Any] = member(repr=False)
    neighbours: tuple[Neighbour, ...] = member(repr=False)
    document: Mapping[str, Any] = field(repr=False)


@record
class Report:
    """How a calibration stands, and what to do next. As text, but not in the client, it is a report in tables.

    Attributes:
        classifier: The name of the classifier.
        calibration: The calibration, its setting and its size.
        advice: What to do next.
        document: Every figure, as JSON has it.
    """

    classifier: str = member("reviews")
    calibration: Mapping[str, Any] = member({"number": 7, "state": "current"})
    advice: tuple[Any, ...] = member([])
    document: Mapping[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit report --json` prints it."""
        return dict(self.document)


@record
class Alarm:
    """An alarm, or a notice, of a monitor that stands.

    Attributes:
        id: Its number.
        lamp: What it is about: `promise`, `true_classes`, `partitions` or `mix`.
        harmful: Whether it is an alarm: admitted predictions may be wrong more often than they should be; otherwise it
            is a notice.
        label: The class that it is about: the true one for `true_classes`, otherwise the one predicted.
        match_counts: The values of q in the partition that it is about, such as `1-24`; None if it is about no
            partition, and with logits only.
        target: The share right that is promised, 1 - alpha.
        since: When it was seen.
        document: Everything, with the figures behind it, as a webhook is sent it.
    """

    id: int = member(3, "alarm")
    lamp: str = member("true classes")
    harmful: bool = member(True)
    label: str = member("positive", "class")
    match_counts: str | None = member("1-24", "q")
    target: Decimal = member("0.9")
    since: datetime = member("2026-07-01T12:00:00+00:00")
    document: Mapping[str, Any] = field(repr=False)


@record
class Monitor:
    """Whether the promise still holds, as far as random labels tell. As text, but not in the client, it is tables.

    Attributes:
        classifier: The name of the classifier.
        alarm: Whether an alarm stands: admitted predictions may be wrong more often than they should be.
        alarms: The alarms and notices that stand.
        documents: How many documents with labels count.
        points: How many labelled points of theirs count.
        document: Every figure, as JSON has it.
    """

    classifier: str = member("reviews")
    alarm: bool = member(False)
    alarms: tuple[Alarm, ...] = member()
    documents: int = member(400)
    points: int = member(400)
    document: Mapping[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit monitor --json` prints it; an infinite e-value is `inf`."""
        return dict(self.document)


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
    if made.withheld is not None:
        yield f"  stored and not in use: {made.withheld}"


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
