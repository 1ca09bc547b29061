"""What `start` says of each thing that it finds, and how to go on."""

import shlex
from typing import Any

from venn_admit.cli.advice import command
from venn_admit.cli.output import output, print_result
from venn_admit.cli.tables.calibration_tables import outcome_lines
from venn_admit.cli.tables.summaries import encoded_lines
from venn_admit.flows.calibration.calibrate import Calibrated
from venn_admit.flows.extraction.options import Form, SourceOptions, form_of
from venn_admit.flows.extraction.states import OpenedStates
from venn_admit.flows.extraction.train import Extracted
from venn_admit.flows.start import Found, OfFile, Reported, Stage, StartFiles
from venn_admit.layer.texts.source import DEFAULT_COLUMNS
from venn_admit.layer.training import Trained
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.report.calibration.payload import calibration_payload
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.wording import calibration_tables
from venn_admit.report.evaluation.payload import report_payload
from venn_admit.report.evaluation.terminal import report_tables
from venn_admit.report.wording import counted
from venn_admit.results import calibrated_json
from venn_admit.store.exemplars.approximations import FitRecord
from venn_admit_client.members import as_json


class Told:
    """What is told of each finding: to people at once, to programs at the end."""

    def __init__(self, name: str, files: StartFiles, as_json: bool) -> None:
        self._files, self._as_json = files, as_json
        self._steps = 0
        self.result: dict[str, Any] = {"classifier": name, "folder": str(files.folder)}

    def tell(self, found: Found) -> None:
        if isinstance(found, Stage):
            self._steps += 1
            if not self._as_json:
                output.print(f"\n[bold]{self._steps}. {found.value}[/bold]")
            return
        lines = self._note(found)
        if not self._as_json:
            print_result(False, {}, *lines)

    def _note(self, found: Found) -> list[str]:
        """Add to the result, and return lines for people."""
        match found:
            case OfFile():
                return self._of_file(found)
            case Trained(model=model):
                best = found.log[found.best_epoch - 1]
                self.result |= {
                    "classes": list(model.class_names),
                    "dimension": model.vector_length,
                    "dev_accuracy": best.dev_accuracy,
                }
                return [
                    f"Trained for {counted(len(found.log), 'epoch')}; epoch {found.best_epoch} is best: accuracy "
                    f"{best.dev_accuracy:.3f} on the dev split."
                ]
            case FitRecord():
                self.result["dev_discrepancies"] = {"discrepancies": found.dev_discrepancies, "points": found.dev_count}
                return [f"KNN and network differ on {found.dev_discrepancies:,} of {found.dev_count:,} dev points."]
            case Calibrated(made=made, classifier=classifier):
                assert isinstance(made, MadeByAbers), "that is the default"
                self.result["calibration"] = calibrated_json(found)
                said = f"Calibration {found.calibration_id} is in use: alpha {found.method_settings.alpha}."
                return [said, *outcome_lines(made, classifier.class_names)]
            case Reported():
                return self._of_report(found)
        raise AssertionError("steps are headings")

    def _of_file(self, found: OfFile) -> list[str]:
        match found.done:
            case OpenedStates() as opened:
                return encoded_lines(found.path, opened)
            case Extracted() as done:
                self.result[found.part] = {
                    "rows": done.rows,
                    "left_out": done.left_out,
                    "network_accuracy": done.accuracy,
                    "exemplars": str(found.path),
                }
                accuracy = "" if done.accuracy is None else f"; the network's accuracy is {done.accuracy:.1%}"
                left_out = f"; {done.left_out:,} without a label left out" if done.left_out else ""
                return [f"{found.path}: {counted(done.rows, 'exemplar')}{accuracy}{left_out}."]
            case stored:
                self.result[found.part] |= {"ingested": as_json(stored)}
                splits = ", ".join(f"{split} {count:,}" for split, count in stored.new_per_split.items())
                return [
                    f"{found.part}: {counted(stored.rows, 'exemplar')}, {stored.new:,} new{splits and f' ({splits})'}."
                ]

    def _of_report(self, reported: Reported) -> list[str]:
        found = reported.found
        if isinstance(found, CalibrationReport):
            self.result["report"] = calibration_payload(found, command)
            if self._files.test is None and not self._as_json:
                output.print(calibration_tables(found, command))
            return [f"The state of the calibration is in {reported.page}."]
        self.result["evaluation"] = report_payload(found)
        if not self._as_json:
            output.print(report_tables(found))
        return [f"The evaluation is in {reported.page}."]


def print_next(name: str, files: StartFiles, options: SourceOptions) -> None:

    form, ending = form_of(files.held_out), files.held_out.suffix
    new, out = f"new{ending}", "new-exemplars.parquet" if ending == ".parquet" else "new.parquet"
    apply = ["extract", "apply", str(files.folder / "model"), new, "--out", out, *_reading_options(options, form)]
    print_result(
        False,
        {},
        "",
        f"Decide on new {'texts' if form.is_text else 'states'} by:",
        f"  venn-admit {shlex.join(apply)}",
        f"  venn-admit {shlex.join(['score', name, out, '--out', 'decisions.parquet'])}",
    )


def _reading_options(options: SourceOptions, form: Form) -> list[str]:
    """The options by which `extract apply` reads a file as these do, other than those that the model knows."""
    columns, usual = options.columns, DEFAULT_COLUMNS
    given = {"--encoder": None if form is Form.SHARDS else options.encoder}
    if form is Form.TABLE:
        given["--text-column"] = None if columns.text == usual.text else columns.text
        given["--label-column"] = None if columns.label == usual.label else columns.label
        given["--id-column"] = columns.id
    return [part for name, value in given.items() if value is not None for part in (name, value)]
