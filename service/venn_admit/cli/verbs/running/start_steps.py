"""`venn-admit start`: from labelled texts to a calibrated classifier and its first report, step by step."""

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from venn_admit.cli.advice import command
from venn_admit.cli.output import counted, make_report_folder, output, print_result, shown
from venn_admit.cli.session import Session, open_session
from venn_admit.cli.tables.compared_settings import next_lines
from venn_admit.cli.verbs.extracting.options import (
    encoded_line,
    left_out_line,
    states_folder,
    with_background,
)
from venn_admit.cli.waiting import Waiting
from venn_admit.core.calibrators.declaration import parse_decimal
from venn_admit.core.calibrators.settings import check_alpha
from venn_admit.core.method_names import VENN_ABERS
from venn_admit.errors import ConflictError, NotFoundError
from venn_admit.files.output.atomic import check_output
from venn_admit.flows.calibration.calibrate import Calibrated, calibrate, settings_for
from venn_admit.flows.calibration.compare import compare
from venn_admit.flows.calibration.fit import fit
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import check_name, create
from venn_admit.flows.data.ingest import ingest
from venn_admit.flows.extraction.options import Form, SourceOptions, check_options, form_of
from venn_admit.flows.extraction.states import OpenedStates, open_states
from venn_admit.flows.extraction.train import Extracted, train_layer, write_extracted
from venn_admit.flows.reports.evaluate import evaluate
from venn_admit.flows.reports.folders import write_calibration_report, write_evaluation
from venn_admit.flows.reports.report import report
from venn_admit.layer.model import MemoryModel
from venn_admit.layer.settings import MemorySettings
from venn_admit.layer.texts.source import DEFAULT_COLUMNS
from venn_admit.records import as_json
from venn_admit.report.calibration.payload import calibration_payload
from venn_admit.report.calibration.wording import calibration_tables
from venn_admit.report.evaluation.payload import report_payload
from venn_admit.report.evaluation.terminal import report_tables
from venn_admit.results import calibrated_json

_STORED = ("train", "held-out")
"""The files whose exemplars are stored, by what they are for; all of these need a label."""


@dataclass(frozen=True, slots=True)
class StartFiles:
    """The files that `start` reads, and the folder that it fills. test: None without one. out: None for the default."""

    train: Path
    held_out: Path
    test: Path | None
    out: Path | None

    def inputs(self) -> dict[str, Path]:
        """The files to read, by what they are for."""
        files = {"train": self.train, "held-out": self.held_out}
        return files if self.test is None else {**files, "test": self.test}


class _Run:
    """One run: what it is given, and what it prints."""

    def __init__(self, name: str, files: StartFiles, options: SourceOptions, alpha: str, *, as_json: bool) -> None:
        self.name, self.files, self.options, self.as_json = name, files, options, as_json
        self.alpha = parse_decimal("alpha", alpha)
        check_alpha(self.alpha)
        self.folder = files.out or Path(re.sub(r"[^\w.-]+", "-", name))
        self.session: Session = open_session()
        self.shell = Waiting(self.session)
        self.found: dict[str, Any] = {"classifier": name, "folder": str(self.folder)}

    def exemplars(self, part: str) -> Path:
        return self.folder / f"{part}.parquet"

    def step(self, title: str) -> None:
        if not self.as_json:
            output.print(f"\n[bold]{title}[/bold]")

    def say(self, *lines: str) -> None:
        if not self.as_json:
            print_result(False, {}, *lines)


def run(
    name: str,
    files: StartFiles,
    options: SourceOptions,
    settings: MemorySettings,
    alpha: str,
    *,
    as_json: bool,
) -> None:
    """Do every step, and print the result; an earlier run's states, memory layer and exemplars are used again."""
    check_name(name)
    this = _Run(name, files, options, alpha, as_json=as_json)
    inputs = files.inputs()
    check_options(options, *inputs.values())
    make_report_folder(this.folder, *inputs.values())
    for part in inputs:
        check_output(this.exemplars(part), (".parquet",), *inputs.values())
    this.session.require_worker()
    with this.shell:
        model = _extract(this, settings)
        with this.session.workers():
            _store(this, model)
            _calibrate(this)
            _report(this)
    _say_next(this)


def _extract(this: _Run, settings: MemorySettings) -> MemoryModel:
    """Steps 1 and 2: the states of every file, the memory layer, and the exemplars."""
    budget = this.session.memory_budget
    this.step("1. Read and encode")
    states: dict[str, OpenedStates] = {}
    options, without = this.options, frozenset[bytes]()
    for part, path in this.files.inputs().items():
        states[part] = open_states(
            path, options, kept_in=states_folder(), display=this.shell, memory_budget=budget, without=without
        )
        options = replace(options, class_names=states[part].shards.class_names)
        summary = states[part].summary
        if summary is not None:
            without |= summary.text_digests
        this.say(*left_out_line(path, states[part]), encoded_line(path, states[part]))
        if part in _STORED:
            states[part].require_labels(part)
    this.step("2. Train a memory layer, and extract the exemplars")
    settings = with_background(settings, options.background, states["train"].shards.class_names)
    trained = train_layer(states["train"], settings, this.folder / "model", display=this.shell, memory_budget=budget)
    best = trained.log[trained.best_epoch - 1]
    this.say(
        f"Trained for {counted(len(trained.log), 'epoch')}; epoch {trained.best_epoch} is best: accuracy "
        f"{best.dev_accuracy:.3f} on the dev split."
    )
    this.found |= {"classes": list(trained.model.class_names), "dimension": trained.model.vector_length}
    this.found["dev_accuracy"] = best.dev_accuracy
    for part, opened in states.items():
        done = write_extracted(
            trained.model,
            opened,
            this.exemplars(part),
            labelled_only=part in _STORED,
            display=this.shell,
            memory_budget=budget,
        )
        this.say(_extracted_line(this.exemplars(part), done))
        this.found[part] = {
            "rows": done.rows,
            "left_out": done.left_out,
            "network_accuracy": done.accuracy,
            "exemplars": str(this.exemplars(part)),
        }
    return trained.model


def _extracted_line(path: Path, done: Extracted) -> str:
    accuracy = "" if done.accuracy is None else f"; the network's accuracy is {done.accuracy:.1%}"
    left_out = f"; {done.left_out:,} without a label left out" if done.left_out else ""
    return f"{path}: {counted(done.rows, 'exemplar')}{accuracy}{left_out}."


def _store(this: _Run, model: MemoryModel) -> None:
    """Step 3: the classifier with its exemplars."""
    this.step("3. Create the classifier, and store its exemplars")
    engine = this.session.engine
    try:
        known = find(engine, this.name)
    except NotFoundError:
        create(engine, this.name, model.class_names, dimension=model.vector_length, seed=model.settings.seed)
    else:
        wanted = (model.class_names, model.vector_length)
        if (known.class_names, known.knn and known.knn.dimension) != wanted:
            raise ConflictError(
                f"classifier {this.name!r} exists, with other classes or vectors of another length than the memory "
                "layer has; choose another name"
            )
    for part in _STORED:
        source = this.session.exemplars_in(this.exemplars(part))
        this.shell.show(f"Ingesting {source.name}", source.count_rows())
        done = ingest(engine, this.name, source, part, on_rows=this.shell.advance)
        this.found[part] |= {"ingested": as_json(done)}
        splits = ", ".join(f"{split} {count:,}" for split, count in done.new_per_split.items())
        this.say(f"{part}: {counted(done.rows, 'exemplar')}, {done.new:,} new{splits and f' ({splits})'}.")


def _calibrate(this: _Run) -> None:
    """Step 4: the fit, and a calibration under the setting that admits most of mc."""
    this.step("4. Fit and calibrate")
    session, shell = this.session, this.shell
    fitted = fit(
        session,
        this.name,
        shell=shell,
        on_epoch=lambda model, line: shell.show(f"Fitting the {model}: epoch {line.epoch}"),
    )
    record = fitted.record
    this.found["dev_discrepancies"] = {"discrepancies": record.dev_discrepancies, "points": record.dev_count}
    this.say(f"KNN and network differ on {record.dev_discrepancies:,} of {record.dev_count:,} dev points.")
    compared = compare(session, this.name, this.alpha, shell=shell)
    this.say(*next_lines(compared))
    proposed = compared.proposal()
    # Without a proposal, the method that needs the fewest points.
    done = calibrate(
        session,
        compared.classifier,
        settings_for(compared.classifier, VENN_ABERS, {"alpha": this.alpha}) if proposed is None else proposed.settings,
        shell=shell,
        reason="asked for by start",
        even_if_nearly_nothing_is_usable=True,
    )
    assert isinstance(done, Calibrated), "nothing was to stop it"
    this.found["calibration"] = calibrated_json(done)
    this.say(f"Calibration {done.calibration_id} is current: alpha {this.alpha}.")


def _report(this: _Run) -> None:
    """Step 5: the state of the calibration, and what it does on the test file."""
    this.step("5. Report")
    session = this.session
    state = report(session, this.name, calibration_id=None)
    this.found["report"] = calibration_payload(state, command)
    if this.files.test is not None:
        evaluation = evaluate(
            session,
            this.name,
            session.exemplars_in(this.exemplars("test")),
            title=shown(this.files.test.stem),
            calibration_id=None,
            shell=this.shell,
        )
        this.found["evaluation"] = report_payload(evaluation)
        this.shell.show("Drawing the evaluation")
        page = write_evaluation(this.folder / "evaluation", this.name, shown(this.files.test.name), evaluation)
        if not this.as_json:
            output.print(report_tables(evaluation))
        this.say(f"The evaluation is in {page}.")
    elif not this.as_json:
        output.print(calibration_tables(state, command))
    page = write_calibration_report(this.folder / "report", state, command)
    this.say(f"The state of the calibration is in {page}.")


def _say_next(this: _Run) -> None:
    if this.as_json:
        print_result(True, this.found)
        return
    form, ending = form_of(this.files.held_out), this.files.held_out.suffix
    new, out = f"new{ending}", "new-exemplars.parquet" if ending == ".parquet" else "new.parquet"
    apply = ["extract", "apply", str(this.folder / "model"), new, "--out", out, *_reading_options(this.options, form)]
    this.say(
        "",
        f"Decide on new {'texts' if form.is_text else 'states'} by:",
        f"  venn-admit {shlex.join(apply)}",
        f"  venn-admit {shlex.join(['score', this.name, out, '--out', 'decisions.parquet'])}",
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
