"""What evaluating, reporting, monitoring and trying other training data return: each is a report in tables."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from io import StringIO
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType

from venn_admit.files.output.exports import finite_json
from venn_admit.interface.advice import call
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.what_if.shares import SharesTried
from venn_admit.report.what_if.training import TrainingEffects
from venn_admit_client import answers
from venn_admit_client.members import Told, from_json, record
from venn_admit_client.records import reports

if TYPE_CHECKING:
    from venn_admit.report.monitoring.report import MonitorReport

_WIDTH = 110
_LISTED = 20


def text_of(tables: RenderableType) -> str:
    """Return what rich shows, as text without colours, which a terminal need not wrap."""
    # In a notebook, rich would display what is captured as well, as an empty output.
    console = Console(file=StringIO(), width=_width(), force_jupyter=False)
    with console.capture() as captured:
        console.print(tables)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().split("\n"))


def _width() -> int:
    """Return the columns that text gets: no more than the terminal has, if it is written to one."""
    if sys.stdout is None or not sys.stdout.isatty():
        return _WIDTH
    return min(_WIDTH, get_terminal_size((_WIDTH, 0)).columns)


def figures_of(payload: dict[str, Any]) -> dict[str, Any]:
    """Return figures as JSON has them: arrays are lists, NaN and infinities text."""
    figures: dict[str, Any] = finite_json(payload)
    return figures


class Evaluation(Told):
    """What each method admits of labelled data, and how often it is right. As text, it is a report in tables."""

    def __init__(self, classifier: str, data: str, found: DatasetReport) -> None:
        """Wrap what a flow found."""
        self._classifier = classifier
        self._data = data
        self._found = found

    def __repr__(self) -> str:
        return f"<Evaluation of {self._classifier!r} by {self._data!r}>"

    def __str__(self) -> str:
        from venn_admit.report.evaluation.terminal import report_tables

        return text_of(report_tables(self._found))

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit evaluate --json` prints it."""
        from venn_admit.report.evaluation.payload import report_payload

        return figures_of(report_payload(self._found))

    def write(self, folder: str | Path) -> Path:
        """Write a page with charts, and the figures as JSON, into a folder; return the path of the page.

        Raises:
            InvalidInputError: The folder cannot be written.
        """
        from venn_admit.flows.reports.folders import write_evaluation

        return write_evaluation(Path(folder), self._classifier, self._data, self._found)


class Evaluations(Told):
    """Several sets of labelled data and one calibration. As text, each is a report, and then all are side by side."""

    def __init__(self, classifier: str, found: Sequence[DatasetReport]) -> None:
        """Wrap what a flow found."""
        self._classifier = classifier
        self._found = tuple(found)

    def __repr__(self) -> str:
        return f"<Evaluations of {self._classifier!r} by {', '.join(map(repr, self.sets))}>"

    @property
    def sets(self) -> Mapping[str, Evaluation]:
        """Each set alone, by its name."""
        return {one.name: Evaluation(self._classifier, one.name, one) for one in self._found}

    def __str__(self) -> str:
        from venn_admit.report.evaluation.terminal import sets_view

        return text_of(sets_view(self._found))

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit evaluate --json` prints it for several files."""
        from venn_admit.report.evaluation.sets import sets_payload

        return figures_of(sets_payload(self._found))

    def write(self, folder: str | Path) -> Path:
        """Write a page with charts, and the figures as JSON, into a folder; return the path of the page.

        Raises:
            InvalidInputError: The folder cannot be written.
        """
        from venn_admit.flows.reports.folders import write_evaluation_of_sets

        return write_evaluation_of_sets(Path(folder), self._classifier, self._found)


@record
class Report(Told, reports.Report):
    _found: Any = field(repr=False, compare=False)

    def __str__(self) -> str:
        from venn_admit.report.calibration.wording import calibration_tables

        return text_of(calibration_tables(self._found, call))

    def write(self, folder: str | Path) -> Path:
        """Write a page, and the figures as JSON, into a folder; return the path of the page.

        Raises:
            InvalidInputError: The folder cannot be written.
        """
        from venn_admit.flows.reports.folders import write_calibration_report

        return write_calibration_report(Path(folder), self._found, call)


@record
class Monitor(Told, reports.Monitor):
    _found: Any = field(repr=False, compare=False)

    def __str__(self) -> str:
        from venn_admit.report.monitoring.tables import monitor_tables

        return text_of(monitor_tables(self._found))


def report_of(found: CalibrationReport) -> Report:
    """Return a report on a calibration."""
    from venn_admit.report.calibration.payload import calibration_payload

    document = figures_of(calibration_payload(found, call))
    return from_json(Report, document, document=document, _found=found)


def monitor_of(found: "MonitorReport") -> Monitor:
    """Return what a monitor says."""
    from venn_admit.report.monitoring.payload import monitor_payload

    return answers.monitor_of(Monitor, monitor_payload(found), _found=found)


class TrainingWhatIf(Told):
    """What would change if training exemplars had other labels or were left out. As text, a report in tables."""

    def __init__(self, found: TrainingEffects) -> None:
        """Wrap what a flow found."""
        self._found = found

    def __repr__(self) -> str:
        return f"<TrainingWhatIf of {self._found.classifier!r}: {self.flipped_count:,} decisions would differ>"

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

        return figures_of(training_payload(self._found))


class SharesWhatIf(Told):
    """What the policy in use would do in traffic with other class shares. As text, a table."""

    def __init__(self, found: SharesTried) -> None:
        """Wrap what a flow found."""
        self._found = found

    def __repr__(self) -> str:
        return f"<SharesWhatIf of {self._found.classifier!r}: {len(self._found.tried)} tried>"

    def __str__(self) -> str:
        from venn_admit.report.calibration.wording import section_tables
        from venn_admit.report.what_if.shares import shares_heading, shares_sections

        return text_of(section_tables(shares_heading(self._found), shares_sections(self._found)))

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit what-if --json` prints it."""
        from venn_admit.report.what_if.shares import shares_payload

        return figures_of(shares_payload(self._found))
