"""From labelled texts or token states to a calibrated classifier and its first report, step by step."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from pathlib import Path

from venn_admit.advice import Render
from venn_admit.core.calibrators.settings import check_alpha
from venn_admit.core.method_names import DEFAULT_METHOD
from venn_admit.core.types import TrainingEpoch
from venn_admit.errors import ConflictError, InvalidInputError, NotFoundError
from venn_admit.files.inputs import check_is_file
from venn_admit.files.output.atomic import check_output, make_folder
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.calibrate import Calibrated, calibrate, settings_for
from venn_admit.flows.calibration.fit import fit
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import check_name, create
from venn_admit.flows.data.ingest import ingest
from venn_admit.flows.extraction.options import SourceOptions, background_number, check_options, form_of
from venn_admit.flows.extraction.states import OpenedStates, Resources, check_texts, open_states
from venn_admit.flows.extraction.train import Extracted, train_layer, write_extracted
from venn_admit.flows.reports.evaluate import evaluate
from venn_admit.flows.reports.folders import write_calibration_report, write_evaluation
from venn_admit.flows.reports.report import report
from venn_admit.flows.shell import Shell
from venn_admit.layer.model import LayerModel
from venn_admit.layer.settings import LayerSettings
from venn_admit.layer.training import Trained
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.store.exemplars.approximations import FitRecord
from venn_admit.store.workspace import Workspace
from venn_admit_client.records.data import Ingestion

STORED = ("train", "held-out")
"""The files whose exemplars are stored, by what they are for; all of these need a label."""


class Stage(Enum):
    """What is done, in order."""

    READ = "Read and encode"
    TRAIN = "Train a memory layer, and extract the exemplars"
    STORE = "Create the classifier, and store its exemplars"
    CALIBRATE = "Fit and calibrate"
    REPORT = "Report"


@dataclass(frozen=True, slots=True)
class StartFiles:
    """The files that are read, and the folder that is filled. test: to compare the methods on; None without."""

    train: Path
    held_out: Path
    test: Path | None
    folder: Path

    def inputs(self) -> dict[str, Path]:
        """The files to read, by what they are for."""
        files = {"train": self.train, "held-out": self.held_out}
        return files if self.test is None else {**files, "test": self.test}

    def exemplars(self, part: str) -> Path:
        """The file for the exemplars of one of them."""
        return self.folder / f"{part}.parquet"


@dataclass(frozen=True, slots=True)
class OfFile:
    """What was read, extracted or stored of a file."""

    part: str
    path: Path
    done: OpenedStates | Extracted | Ingestion


@dataclass(frozen=True, slots=True)
class Reported:
    """A report, and its page in the folder."""

    found: CalibrationReport | DatasetReport
    page: Path


Found = Stage | OfFile | Trained | FitRecord | Calibrated | Reported


def start(
    workspace: Workspace,
    name: str,
    files: StartFiles,
    options: SourceOptions,
    settings: LayerSettings,
    alpha: Decimal,
    *,
    kept_in: Path,
    test_title: str,
    allow_training_rows: bool,
    shell: Shell,
    render: Render,
) -> Iterator[Found]:
    """Do every step, each announced before what it finds; states, layer and exemplars of an earlier run are used again.

    Args:
        options: How the files are read.
        settings: The settings of the memory layer, without a background class.
        kept_in: A folder for states.
        test_title: What the evaluation calls the test file.
        allow_training_rows: As in `ingest`.
        render: Says how users of the shell take a step.

    Raises:
        InvalidInputError: An option or a file is invalid.
        ConflictError: There is another classifier of this name.
    """
    check_name(name)
    check_alpha(alpha)
    inputs = files.inputs()
    check_options(options, *inputs.values())
    _check_files(files)
    budget = workspace.memory_budget
    used = Resources(kept_in, budget, shell)
    yield Stage.READ
    options = _of_texts(inputs, options, used)
    states: dict[str, OpenedStates] = {}
    without = frozenset[bytes]()
    for part, path in inputs.items():
        opened = open_states(path, options, used, without=without)
        options = replace(options, class_names=opened.shards.class_names)
        if opened.summary is not None:
            without |= opened.summary.text_digests
        states[part] = opened
        yield OfFile(part, path, opened)
        if part in STORED:
            opened.require_labels(part)
        _check_one_label(path, opened.shards.several_labels)
    yield Stage.TRAIN
    class_names = states["train"].shards.class_names
    if options.background is not None:
        settings = replace(settings, background=background_number(options.background, class_names))
    trained = train_layer(states["train"], settings, files.folder / "model", used)
    yield trained
    for part, opened in states.items():
        path = files.exemplars(part)
        yield OfFile(part, path, write_extracted(trained.model, opened, path, used, labelled_only=part in STORED))
    yield Stage.STORE
    _make(workspace, name, trained.model)
    for part in STORED:
        source = FileSource(files.exemplars(part), budget)
        shell.show(f"Ingesting {source.name}", source.count_rows())
        stored = ingest(
            workspace.engine, name, source, part, allow_training_rows=allow_training_rows, on_rows=shell.advance
        )
        yield OfFile(part, source.path, stored)
    yield Stage.CALIBRATE
    yield from _calibrated(workspace, name, alpha, shell)
    yield Stage.REPORT
    state = report(workspace, name, calibration_id=None)
    if files.test is not None:
        source = FileSource(files.exemplars("test"), budget)
        evaluation = evaluate(workspace, name, source, title=test_title, calibration_id=None, shell=shell)
        shell.show("Drawing the evaluation")
        yield Reported(evaluation, write_evaluation(files.folder / "evaluation", name, test_title, evaluation))
    yield Reported(state, write_calibration_report(files.folder / "report", state, render))


def _of_texts(inputs: Mapping[str, Path], options: SourceOptions, used: Resources) -> SourceOptions:
    """Read all texts with their labels, before hours of encoding; return the options with the classes of the first."""
    without = frozenset[bytes]()
    for part, path in inputs.items():
        if form_of(path).is_text:
            checked = check_texts(path, options, used, without=without)
            if part in STORED:
                checked.require_labels(part)
            _check_one_label(path, checked.several_labels)
            options = replace(options, class_names=checked.class_names)
            without |= checked.summary.text_digests
    return options


def _check_one_label(path: Path, are_several: bool) -> None:
    if are_several:
        raise InvalidInputError(
            f"{path}: expected one label of each document, got lists of labels; make a classifier of each label, "
            "step by step"
        )


def _check_files(files: StartFiles) -> None:
    """Raise InvalidInputError if one to read does not exist, or one to write cannot be written."""
    inputs = files.inputs()
    for path in inputs.values():
        if not path.is_dir():
            check_is_file(path)
    make_folder(files.folder, *inputs.values())
    for part in inputs:
        check_output(files.exemplars(part), (".parquet",), *inputs.values())


def _make(workspace: Workspace, name: str, model: LayerModel) -> None:
    """Create the classifier, unless an earlier run did."""
    try:
        known = find(workspace.engine, name)
    except NotFoundError:
        create(workspace.engine, name, model.class_names, dimension=model.vector_length, seed=model.settings.seed)
        return
    if (known.class_names, known.knn and known.knn.dimension) != (model.class_names, model.vector_length):
        raise ConflictError(
            f"classifier {name!r} exists, with other classes or vectors of another length than the memory layer has; "
            "choose another name"
        )


def _calibrated(workspace: Workspace, name: str, alpha: Decimal, shell: Shell) -> Iterator[Found]:
    """Fit, and calibrate with the strongest promise that the labels show."""

    def show(model: str, line: TrainingEpoch) -> None:
        shell.show(f"Fitting the {model}: epoch {line.epoch}")

    yield fit(workspace, name, shell=shell, on_epoch=show).record
    classifier = find(workspace.engine, name)
    done = calibrate(
        workspace,
        classifier,
        settings_for(classifier, DEFAULT_METHOD, {"alpha": alpha}),
        shell=shell,
        reason="asked for by start",
        even_if_nearly_nothing_is_usable=True,
    )
    assert isinstance(done, Calibrated), "nothing was to stop it"
    yield done
