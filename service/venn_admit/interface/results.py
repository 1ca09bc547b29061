"""What the methods of a classifier return."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType

from venn_admit.core.evaluation.measures import Admission
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.core.types import CalibratorSettings
from venn_admit.flows.decisions.score_one import PointDecision
from venn_admit.interface.advice import call
from venn_admit.interface.certificates import Certificate, certificate_of
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.what_if.settings import SettingsTried
from venn_admit.report.what_if.training import TrainingEffects
from venn_admit.store.calibrations.setting_forms import MethodSettings, method_of

if TYPE_CHECKING:
    from venn_admit.flows.calibration.calibrate import Calibrated
    from venn_admit.flows.calibration.compare import ComparedSettings
    from venn_admit.report.monitoring.report import MonitorReport

_WIDTH = 110
_LISTED = 20


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
        from venn_admit.interface.texts import calibration_text

        return calibration_text(self)


@dataclass(frozen=True, slots=True)
class ClassShare:
    """How much is right of what is admitted of a class.

    Attributes:
        label: The class.
        admitted: How many of its points are admitted.
        right: How many of these are right.
        share: The share right; None if nothing is admitted.
        interval: The 95 % interval of the share.
    """

    label: str
    admitted: int
    right: int
    share: float | None
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class SettingOutcome:
    """What a setting admits of split mc by cross-fitting, plain, and how much of it is right.

    Attributes:
        settings: The setting, as arguments of `Classifier.calibrate`.
        admitted_share: The share of mc that is admitted.
        admitted_interval: The 95 % interval of that share.
        per_true_class: The same by class, as labelled.
        per_predicted_class: The same by class, as predicted.
        every_class_reaches: Whether no class of either kind is estimated to have a share right below 1 - alpha; None if
            nothing is admitted.
    """

    settings: Mapping[str, Any]
    admitted_share: float
    admitted_interval: tuple[float, float]
    per_true_class: tuple[ClassShare, ...]
    per_predicted_class: tuple[ClassShare, ...]
    every_class_reaches: bool | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Settings to choose from before split vp is looked at. As text, a table with the proposal.

    The best of many looks better on mc than it is, so judge what you choose by data that had no part in the choice.

    Attributes:
        alpha: The error level.
        mc_points: Points of split mc.
        judged_points: Points of split mc that were decided on: all, or a random sample of about ten thousand.
        documents: Documents of these; as many as points, if each stands alone.
        outcomes: What each setting gives.
        left_out: What could not be computed, with the reason.
        proposal: The outcome that admits most, of those in which every class reaches 1 - alpha; None if there is none.
    """

    alpha: Decimal
    mc_points: int
    judged_points: int
    documents: int
    outcomes: tuple[SettingOutcome, ...]
    left_out: Mapping[str, str]
    proposal: SettingOutcome | None

    def __str__(self) -> str:
        from venn_admit.interface.texts import comparison_text

        return comparison_text(self)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A training exemplar near a point.

    Attributes:
        id: Its id.
        label: Its class.
        distance: Euclidean, in the units of the vectors.
        attributes: What was stored with it.
    """

    id: str
    label: str
    distance: float
    attributes: Mapping[str, Any]


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
        from venn_admit.interface.texts import decision_text

        return decision_text(self)


class Evaluation:
    """What each method admits of labelled data, and how often it is right. As text, it is a report in tables."""

    def __init__(self, classifier: str, data: str, found: DatasetReport) -> None:
        """Wrap what a flow found."""
        self._classifier = classifier
        self._data = data
        self._found = found

    def __str__(self) -> str:
        from venn_admit.report.evaluation.terminal import report_tables

        return text_of(report_tables(self._found))

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit evaluate --json` prints it."""
        from venn_admit.report.evaluation.payload import report_payload

        return report_payload(self._found)

    def write(self, folder: str | Path) -> Path:
        """Write a page with charts, and the figures as JSON, into a folder; return the path of the page.

        Raises:
            InvalidInputError: The folder cannot be written.
        """
        from venn_admit.flows.reports.folders import write_evaluation

        return write_evaluation(Path(folder), self._classifier, self._data, self._found)


class Report:
    """How a calibration stands, and what to do next. As text, it is a report in tables."""

    def __init__(self, found: CalibrationReport) -> None:
        """Wrap what a flow found."""
        self._found = found

    def __str__(self) -> str:
        from venn_admit.report.calibration.wording import calibration_tables

        return text_of(calibration_tables(self._found, call))

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit report --json` prints it."""
        from venn_admit.report.calibration.payload import calibration_payload

        return calibration_payload(self._found, call)

    def write(self, folder: str | Path) -> Path:
        """Write a page, and the figures as JSON, into a folder; return the path of the page.

        Raises:
            InvalidInputError: The folder cannot be written.
        """
        from venn_admit.flows.reports.folders import write_calibration_report

        return write_calibration_report(Path(folder), self._found, call)


class Monitor:
    """Whether the promise still holds, as far as random labels tell. As text, it is tables and a verdict."""

    def __init__(self, found: "MonitorReport") -> None:
        """Wrap what a flow found."""
        self._found = found

    def __str__(self) -> str:
        from venn_admit.report.monitoring.tables import monitor_tables

        return text_of(monitor_tables(self._found))

    @property
    def alarm(self) -> bool:
        """Whether an alarm stands: admitted predictions may be wrong more often than they should be."""
        return bool(self._found.harmful)

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit monitor --json` prints it; an infinite e-value is `inf`."""
        from venn_admit.report.monitoring.payload import monitor_payload

        return monitor_payload(self._found)


class TrainingWhatIf:
    """What would change if training exemplars had other labels or were left out. As text, a report in tables."""

    def __init__(self, found: TrainingEffects) -> None:
        """Wrap what a flow found."""
        self._found = found

    def __str__(self) -> str:
        from venn_admit.report.calibration.wording import section_tables
        from venn_admit.report.what_if.training import training_heading, training_sections

        return text_of(section_tables(training_heading(self._found), training_sections(self._found, limit=_LISTED)))

    @property
    def flipped(self) -> Mapping[str, tuple[str | None, str | None]]:
        """The decisions that would differ: by id the class admitted now and then, None if rejected; 10,000 at most.

        `flipped_count` says how many there are.
        """
        return {flip.external_id: (flip.before, flip.after) for flip in self._found.flipped}

    @property
    def flipped_count(self) -> int:
        """How many decisions would differ."""
        return self._found.flips.total

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit what-if --json` prints it."""
        from venn_admit.report.what_if.training import training_payload

        return training_payload(self._found)


class SettingsWhatIf:
    """What the setting in use would admit with one part of it varied. As text, a table."""

    def __init__(self, found: SettingsTried) -> None:
        """Wrap what a flow found."""
        self._found = found

    def __str__(self) -> str:
        from venn_admit.report.evaluation.terminal import table_view
        from venn_admit.report.what_if.settings import settings_table

        return text_of(table_view(settings_table(self._found)))

    @property
    def outcomes(self) -> tuple[SettingOutcome, ...]:
        """What each value admits of split mc by cross-fitting, and how much of it is right, in the order of values."""
        return tuple(
            _outcome(one.settings, one.admission, one.every_class_reaches, self._found.class_names)
            for one in self._found.tried
        )

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit what-if --json` prints it."""
        from venn_admit.report.what_if.settings import settings_payload

        return settings_payload(self._found)

    def write(self, folder: str | Path) -> Path:
        """Write a picture, and the figures as JSON, into a folder; return the path of the picture.

        Raises:
            InvalidInputError: The folder cannot be written.
        """
        from venn_admit.flows.reports.folders import write_settings_tried

        return write_settings_tried(Path(folder), self._found)


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
        method=method_of(settings),
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


def comparison_of(found: "ComparedSettings") -> Comparison:
    """Return a comparison in terms of class names and of the arguments of `Classifier.calibrate`."""
    names, proposed = found.classifier.class_names, found.proposal()
    outcomes = [
        _outcome(one.settings, one.admission, one.every_class_reaches(found.alpha), names) for one in found.compared
    ]
    return Comparison(
        alpha=found.alpha,
        mc_points=found.point_count,
        judged_points=found.judged_count,
        documents=found.document_count,
        outcomes=tuple(outcomes),
        left_out=dict(found.left_out),
        proposal=None if proposed is None else outcomes[found.compared.index(proposed)],
    )


def _outcome(
    settings: MethodSettings, admission: Admission, every_class_reaches: bool | None, names: Sequence[str]
) -> SettingOutcome:
    return SettingOutcome(
        settings=_arguments(settings),
        admitted_share=admission.admitted.share,
        admitted_interval=admission.admitted.interval,
        per_true_class=_class_shares(admission.right.per_true_class, names),
        per_predicted_class=_class_shares(admission.right.per_predicted_class, names),
        every_class_reaches=every_class_reaches,
    )


def _arguments(settings: MethodSettings) -> dict[str, Any]:
    shared = {"method": method_of(settings), "alpha": str(settings.alpha), "q_bins": settings.q_bins}
    if isinstance(settings, CalibratorSettings):
        return {**shared, "delta": settings.delta, "kappa": settings.kappa}
    return {**shared, "score": None if settings.score is None else str(settings.score)}


def _class_shares(tallies: Sequence[Tally], names: Sequence[str]) -> tuple[ClassShare, ...]:
    return tuple(
        ClassShare(name, tally.count, tally.correct, tally.share if tally.count else None, tally.interval)
        for name, tally in zip(names, tallies, strict=True)
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


def text_of(tables: RenderableType) -> str:
    """Return what rich shows, as text without colours."""
    console = Console(file=StringIO(), width=_WIDTH)
    with console.capture() as captured:
        console.print(tables)
    return captured.get()
