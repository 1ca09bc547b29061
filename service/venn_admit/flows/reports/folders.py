"""Reports as folders: a page with its charts, and the same as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from venn_admit.advice import Render
from venn_admit.files.output.atomic import filling, make_folder
from venn_admit.files.output.exports import write_json
from venn_admit.report.calibration.payload import calibration_payload
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.evaluated import calibration_facts
from venn_admit.report.evaluation.payload import report_payload
from venn_admit.report.evaluation.sets import sets_payload
from venn_admit.report.pages.calibration import write_calibration_page
from venn_admit.report.pages.evaluation import write_report
from venn_admit.report.what_if.picture import save_settings_picture
from venn_admit.report.what_if.settings import SettingsTried, settings_payload


def write_evaluation(folder: Path, name: str, data: str, evaluation: DatasetReport) -> Path:
    """Write an evaluation into a folder, all of it or nothing; the path of its page.

    Args:
        folder: Where it goes; files of the same names are replaced.
        data: What it was evaluated on, in words.
    """
    return _write_evaluation(folder, name, data, [evaluation], report_payload(evaluation))


def write_evaluation_of_sets(folder: Path, name: str, evaluations: Sequence[DatasetReport]) -> Path:
    """Write evaluations of several sets by one calibration on one page, as `write_evaluation` does."""
    return _write_evaluation(folder, name, "several sets", evaluations, sets_payload(evaluations))


def _write_evaluation(
    folder: Path, name: str, data: str, evaluations: Sequence[DatasetReport], payload: dict[str, Any]
) -> Path:
    make_folder(folder)
    with filling(folder) as draft:
        page, *_ = write_report(draft, f"{name} on {data}", _facts(name, evaluations[0]), evaluations)
        write_json(draft / "evaluation.json", payload)
    return folder / page.name


def write_evaluations(
    folder: Path, title: str, about: str, evaluations: Sequence[DatasetReport], next_steps: Sequence[str]
) -> list[Path]:
    """Write evaluations of one classifier on one page, as `write_evaluation` does; return the page and the charts.

    Args:
        about: What the classifier is.
        evaluations: At least one.
        next_steps: Commands to go on with.
    """
    with filling(folder) as draft:
        written = write_report(draft, title, _facts(about, evaluations[0]), evaluations, next_steps)
    return [folder / path.name for path in written]


def _facts(classifier: str, evaluation: DatasetReport) -> dict[str, str]:
    made = evaluation.calibration
    return {"Classifier": classifier} | ({} if made is None else calibration_facts(made))


def write_calibration_report(folder: Path, report: CalibrationReport, render: Render) -> Path:
    """Write a report on a calibration, as `write_evaluation` does; render: says how users take a step."""
    make_folder(folder)
    with filling(folder) as draft:
        page = write_calibration_page(report, render, draft)
        write_json(draft / "report.json", calibration_payload(report, render))
    return folder / page.name


def write_settings_tried(folder: Path, found: SettingsTried) -> Path:
    """Write what settings admit as a picture and as JSON, as `write_evaluation` does; the path of the picture."""
    make_folder(folder)
    with filling(folder) as draft:
        picture = save_settings_picture(found, draft)
        write_json(draft / "what-if.json", settings_payload(found))
    return folder / picture.name
