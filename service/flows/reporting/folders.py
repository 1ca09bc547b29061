"""Reports as folders: a page with its charts, and the same as JSON."""

from pathlib import Path

from venn_admit.service.files.output.exports import write_json
from venn_admit.service.files.output.places import filling, make_folder
from venn_admit.service.report.calibration.cells import CellsReport, cells_payload
from venn_admit.service.report.calibration.contents import CalibrationReport
from venn_admit.service.report.calibration.payload import calibration_payload
from venn_admit.service.report.calibration.steps import NextSteps
from venn_admit.service.report.evaluation.dataset import DatasetReport
from venn_admit.service.report.evaluation.evaluated import calibration_facts
from venn_admit.service.report.evaluation.payload import report_payload
from venn_admit.service.report.pages.calibration import write_calibration_page
from venn_admit.service.report.pages.evaluation import write_report


def write_evaluation(folder: Path, name: str, data: str, evaluation: DatasetReport) -> Path:
    """Write an evaluation into a folder, all of it or nothing; the path of its page.

    Args:
        folder: Where it goes; files of the same names are replaced.
        name: The classifier's name.
        data: What it was evaluated on, in words.
        evaluation: The evaluation.

    Raises:
        InvalidInputError: The folder cannot be written.
    """
    facts = {"Classifier": name}
    if evaluation.calibration is not None:
        facts |= calibration_facts(evaluation.calibration, evaluation.neighbour_count)
    make_folder(folder)
    with filling(folder) as draft:
        page, *_ = write_report(draft, f"{name} on {data}", facts, [evaluation])
        write_json(draft / "evaluation.json", report_payload(evaluation))
    return folder / page.name


def write_calibration_report(folder: Path, report: CalibrationReport, steps: NextSteps) -> Path:
    """Write a report on a calibration, as `write_evaluation` does; steps: how users take those that it advises."""
    make_folder(folder)
    with filling(folder) as draft:
        page = write_calibration_page(report, steps, draft)
        write_json(draft / "report.json", calibration_payload(report, steps))
    return folder / page.name


def write_cells_report(folder: Path, report: CellsReport) -> Path:
    """Write a report on a calibration by Venn-Abers, as JSON; the path of the file."""
    make_folder(folder)
    with filling(folder) as draft:
        write_json(draft / "report.json", cells_payload(report))
    return folder / "report.json"
