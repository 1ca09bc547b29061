"""What the methods of a classifier return."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType

from venn_admit.advice import CALLS
from venn_admit.service.core.types import CalibratorSettings
from venn_admit.service.flows.decisions.decide_row import DecidedVector
from venn_admit.service.report.calibration.cells import CellsReport, cells_lines, cells_payload
from venn_admit.service.report.calibration.contents import CalibrationReport
from venn_admit.service.report.evaluation.dataset import DatasetReport
from venn_admit.service.store.calibrations.setting_forms import method_of

if TYPE_CHECKING:
    from venn_admit.service.flows.calibration.calibrate import Calibrated

_WIDTH = 110


@dataclass(frozen=True, slots=True)
class Ingestion:
    """What became of exemplars that were ingested.

    Attributes:
        rows: How many there were.
        new: How many were not stored already.
        new_per_split: The new ones in each split: `train`, `knn`, `mc` and `vp`.
        recalibrations_due: How many settings should be recalibrated for it.
    """

    rows: int
    new: int
    new_per_split: Mapping[str, int]
    recalibrations_due: int


@dataclass(frozen=True, slots=True)
class Labelling:
    """What became of labels.

    Attributes:
        rows: How many there were.
        new: Of exemplars that had none.
        corrected: Other than what was stored.
        retracted: Taken back.
        unchanged: Known already.
        calibrating: Exemplars that fit, calibrate or train from now on, in each split.
        recalibrations_due: How many settings should be recalibrated for it.
    """

    rows: int
    new: int
    corrected: int
    retracted: int
    unchanged: int
    calibrating: Mapping[str, int]
    recalibrations_due: int


@dataclass(frozen=True, slots=True)
class Fit:
    """The approximation of the network by its nearest training exemplars.

    Attributes:
        discrepancies: Points of the development half on which KNN and network predict different classes.
        points: How many points that half has.
        temperature: Eta, the temperature of the neighbour weights, in units of distance.
        localizer_temperature: That of the localizer.
    """

    discrepancies: int
    points: int
    temperature: float
    localizer_temperature: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibration, which new decisions are made by.

    Attributes:
        id: Its number.
        method: `venn-admit` or `venn-abers`.
        alpha: The error level.
        thresholds: The least lower probability for each predicted class.
        q_bins: The lower edges of the bins of q.
        mc_points: Points of split mc.
        vp_points: Points of split vp, which venn-abers does not use.
        delta: The band radius in standard deviations of d; None for venn-abers.
        kappa: The least number of points of each class in a band; None for venn-abers.
        usable_share: The share of vp in bands with enough points; None for venn-abers.
        singleton_share: The share of vp whose ADMIT set is a single class; of these, fewer will be admitted. None for
            venn-abers.
        score: What ranks predictions, `network` or `reliability`; None for venn-admit.
    """

    id: int
    method: str
    alpha: Decimal
    thresholds: tuple[Decimal, ...]
    q_bins: tuple[int, ...]
    mc_points: int
    vp_points: int
    delta: float | None
    kappa: int | None
    usable_share: float | None
    singleton_share: float | None
    score: str | None


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
    """The decision on one point, and why.

    Attributes:
        admitted: The class that is admitted; None if the prediction is rejected.
        predicted: The class predicted.
        reason: Why the prediction is rejected; None if it is admitted.
        lower: The lower bound on the probability that the prediction is right; None if it was rejected before.
        upper: The upper bound likewise.
        match_count: q, how many of the nearest exemplars match in a row, 0 to K.
        distance: d, the distance to the nearest training exemplar.
        neighbours: The K nearest training exemplars, nearest first.
        calibration: The number of the calibration that it was made by.
        evidence: Everything that the decision rests on, by the names that a stored decision has it under.
    """

    admitted: str | None
    predicted: str
    reason: str | None
    lower: float | None
    upper: float | None
    match_count: int
    distance: float
    neighbours: tuple[Neighbour, ...]
    calibration: int
    evidence: Mapping[str, Any]


class Evaluation:
    """What each method admits of labelled data, and how often it is right. As text, it is a report in tables."""

    def __init__(self, classifier: str, data: str, found: DatasetReport) -> None:
        """Wrap what a flow found."""
        self._classifier = classifier
        self._data = data
        self._found = found

    def __str__(self) -> str:
        from venn_admit.service.report.evaluation.terminal import report_tables

        return _text(report_tables(self._found))

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit evaluate --json` prints it."""
        from venn_admit.service.report.evaluation.payload import report_payload

        return report_payload(self._found)

    def write(self, folder: str | Path) -> Path:
        """Write a page with charts, and the figures as JSON, into a folder; return the path of the page.

        Raises:
            InvalidInputError: The folder cannot be written.
        """
        from venn_admit.service.flows.reporting.folders import write_evaluation

        return write_evaluation(Path(folder), self._classifier, self._data, self._found)


class Report:
    """How a calibration stands; by venn-admit, also what to do next. As text, it is a report in lines and tables."""

    def __init__(self, found: CalibrationReport | CellsReport) -> None:
        """Wrap what a flow found."""
        self._found = found

    def __str__(self) -> str:
        from venn_admit.service.report.calibration.tables import calibration_tables

        if isinstance(self._found, CellsReport):
            return "\n".join(cells_lines(self._found))
        return _text(calibration_tables(self._found, CALLS))

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit report --json` prints it."""
        from venn_admit.service.report.calibration.payload import calibration_payload

        if isinstance(self._found, CellsReport):
            return cells_payload(self._found)
        return calibration_payload(self._found, CALLS)

    def write(self, folder: str | Path) -> Path:
        """Write a page, and the figures as JSON, into a folder; return its path, of the JSON if there is no page.

        Raises:
            InvalidInputError: The folder cannot be written.
        """
        from venn_admit.service.flows.reporting.folders import write_calibration_report, write_cells_report

        if isinstance(self._found, CellsReport):
            return write_cells_report(Path(folder), self._found)
        return write_calibration_report(Path(folder), self._found, CALLS)


def calibration_of(done: "Calibrated") -> Calibration:
    """Return a calibration in terms of this package."""
    from venn_admit.service.flows.methods.venn_abers.make import MadeByAbers

    settings = done.method_settings
    bands = settings if isinstance(settings, CalibratorSettings) else None
    return Calibration(
        id=done.calibration_id,
        method=method_of(settings),
        alpha=settings.alpha,
        thresholds=settings.thresholds,
        q_bins=settings.bin_edges,
        mc_points=done.mc_count,
        vp_points=done.vp_count,
        delta=None if bands is None else bands.delta,
        kappa=None if bands is None else bands.kappa,
        usable_share=None if bands is None else done.by_admit.usable_count / done.vp_count,
        singleton_share=None if bands is None else done.by_admit.singleton_count / done.vp_count,
        score=str(done.made.choice.kind) if isinstance(done.made, MadeByAbers) else None,
    )


def decision_of(found: DecidedVector, classes: Sequence[str]) -> Decision:
    """Return a decision in terms of class names."""
    decided = found.decision
    fields, near = decided.fields, decided.nearest
    neighbours = tuple(
        Neighbour(neighbour.external_id, classes[label], distance, neighbour.attributes)
        for neighbour, label, distance in zip(
            found.neighbours, near.labels.tolist(), near.distances.tolist(), strict=True
        )
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
        evidence=fields | {"category_counts": decided.category_counts.tolist()},
    )


def _text(tables: RenderableType) -> str:
    console = Console(file=StringIO(), width=_WIDTH)
    with console.capture() as captured:
        console.print(tables)
    return captured.get()
