"""What to do next, as data: which step an error or a report advises. Each shell renders a step as its users take it.

A step is a verb with arguments. The command line renders it as a command, HTTP as a request, the page in words, and the
Python interface as a call; a shell that has no way to take a step says so in its table of verbs.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from math import inf
from typing import Any

from venn_admit.errors import Code, VennAdmitError


class Verb(Enum):
    """What a step does."""

    CREATE = auto()
    INGEST = auto()
    LABEL = auto()
    LIST_UNLABELLED = auto()
    FIT = auto()
    EXPORT_PARAMETERS = auto()
    CALIBRATE = auto()
    RECALIBRATE = auto()
    LIST_CALIBRATIONS = auto()
    USE = auto()
    SCORE = auto()
    REPORT = auto()
    MONITOR = auto()
    DELETE = auto()
    ADD_GENERATION = auto()
    LIST_GENERATIONS = auto()
    SWITCH_GENERATION = auto()
    STATE_EXTRACTOR = auto()
    CREATE_INDEX = auto()
    AUDIT_INDEX = auto()
    DROP_INDEX = auto()
    LIST_JOBS = auto()
    CANCEL_JOB = auto()
    LIST_KEYS = auto()
    UPGRADE_SCHEMA = auto()
    NAME_ENCODER = auto()
    ADD_ARGUMENT = auto()
    """Take the same step again with these arguments too."""


class Blank(str):
    """What the user fills in, as it stands in a command, request or call."""

    __slots__ = ()


class Step:
    """A step, and what it is taken with.

    Attributes:
        verb: What it does.
        arguments: Arguments by name. `classifier` and `job` say what it is about, and are left out if they are unknown.
            Settings of a calibration come as `settings`, with K as `neighbour_count`, which is None with logits only.
    """

    def __init__(self, verb: Verb, **arguments: Any) -> None:
        """Make a step."""
        self.verb, self.arguments = verb, arguments


Render = Callable[[Step], str]
"""Says how users of a shell take a step; an empty text if they have no way to."""

NO_WAY = ""
"""Stands in a shell's table beside a verb that its users cannot do."""

ADVICE: Mapping[Code, tuple[tuple[str, Step], ...]] = {
    Code.LABEL_MISSING: (("{} retracts them", Step(Verb.LABEL, retract=True)),),
    Code.UNLABELLED: (("{} takes rows without labels", Step(Verb.SCORE)),),
    Code.NO_VECTORS: (("{} needs none", Step(Verb.CALIBRATE, method="venn-abers")),),
    Code.VECTORS_UNWANTED: (("{} makes a classifier that takes them", Step(Verb.CREATE, dimension=Blank("D"))),),
    Code.PROBABILITIES: (
        ("{} states that", Step(Verb.ADD_ARGUMENT, probabilities=True)),
        ("{} states that they are logits all the same", Step(Verb.ADD_ARGUMENT, probabilities=False)),
    ),
    Code.ENCODER_UNNAMED: (("{} names it", Step(Verb.NAME_ENCODER, encoder=Blank("FOLDER"))),),
    Code.PARAMETERS_UNREADABLE: (("", Step(Verb.EXPORT_PARAMETERS)),),
    Code.SETTING_IN_USE: (("{} puts it in use", Step(Verb.USE, calibration=Blank("CALIBRATION"))),),
    Code.INDEX_EXISTS: (("", Step(Verb.DROP_INDEX)),),
    Code.BEING_DELETED: (("", Step(Verb.DELETE)),),
    Code.GENERATION_IN_USE: (("{} switches to another", Step(Verb.SWITCH_GENERATION, generation=Blank("GENERATION"))),),
    Code.JOBS_RUNNING: (("{} cancels the first", Step(Verb.CANCEL_JOB)),),
    Code.TRAINING_ROWS: (("{} takes them all the same", Step(Verb.ADD_ARGUMENT, allow_training_rows=True)),),
    Code.NOTHING_TO_FORGET: (("{} leaves such ids out", Step(Verb.ADD_ARGUMENT, missing_ok=True)),),
    Code.EXTRACTOR_DIFFERS: (
        ("{} lists the generations with theirs", Step(Verb.LIST_GENERATIONS)),
        ("{} adds one", Step(Verb.ADD_GENERATION, extractor=Blank("VERSION"))),
        ("without exemplars, {} corrects it", Step(Verb.STATE_EXTRACTOR, extractor=Blank("VERSION"))),
    ),
    Code.EXTRACTOR_MISSING: (("{} states it", Step(Verb.ADD_ARGUMENT, extractor=Blank("VERSION"))),),
    Code.EXTRACTOR_UNSTATED: (("{} states it", Step(Verb.STATE_EXTRACTOR, extractor=Blank("VERSION"))),),
    Code.NO_CLASSIFIER: (("", Step(Verb.CREATE)),),
    Code.NO_SETTING: (("", Step(Verb.CALIBRATE)),),
    Code.UNKNOWN_CALIBRATION: (("{} lists the newest", Step(Verb.LIST_CALIBRATIONS)),),
    Code.UNKNOWN_JOB: (("{} lists the jobs", Step(Verb.LIST_JOBS)),),
    Code.UNKNOWN_KEY: (("{} lists the keys", Step(Verb.LIST_KEYS)),),
    Code.SCHEMA_OUTDATED: (("", Step(Verb.UPGRADE_SCHEMA)),),
    Code.TOO_FEW_TRAINING_EXEMPLARS: (("", Step(Verb.INGEST, split="train")),),
    Code.NO_HELD_OUT_DATA: (("", Step(Verb.INGEST, split="held-out")),),
    Code.NOT_FITTED: (("", Step(Verb.FIT)),),
    Code.CHAIN_ENDED: (("{} begins the next", Step(Verb.CALIBRATE, standing=True)),),
    Code.CHANGED_DURING_FIT: (("", Step(Verb.FIT)),),
    Code.EQUAL_DISTANCES: (("{} does the latter", Step(Verb.CALIBRATE, delta=inf)),),
    Code.NOT_CALIBRATED: (("", Step(Verb.CALIBRATE)),),
    Code.INDEX_MISSING: (("", Step(Verb.CREATE_INDEX)),),
    Code.POINTS_FORGOTTEN: (("", Step(Verb.RECALIBRATE)),),
    Code.RECALIBRATION_DUE: (("", Step(Verb.RECALIBRATE)),),
    Code.SCHEMA_MISMATCH: (("", Step(Verb.UPGRADE_SCHEMA)),),
    Code.JOB_RUNNING: (("", Step(Verb.CANCEL_JOB)),),
}
"""The steps that errors of a code advise, and what is said of each; an empty text: the shell's word for taking it.

Messages of the other codes say all that there is to do.
"""


ABOUT = ("classifier", "job", "alpha", "confidence", "score")
"""The parameters of errors that steps are taken with."""


def advice_on(error: VennAdmitError, render: Render, *, take: str) -> str:
    """Return what users of a shell can do about an error; empty if that is nothing. take: such as `run {}`."""
    about = {name: error.parameters[name] for name in ABOUT if name in error.parameters}
    said = []
    for words, step in ADVICE.get(error.code, ()):
        if how := render(Step(step.verb, **about, **step.arguments)):
            said.append((words or take).format(f"`{how}`"))
    return "; ".join(said)
