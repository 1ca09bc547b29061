"""The steps that errors and reports advise, as commands."""

from collections.abc import Mapping
from shlex import quote
from typing import Any

from venn_admit.advice import Blank, Step, Verb, advice_on
from venn_admit.core.calibrators.arguments import listed
from venn_admit.errors import VennAdmitError

COMMANDS: Mapping[Verb, str] = {
    Verb.CREATE: "venn-admit create NAME --classes NAMES",
    Verb.INGEST: "venn-admit ingest {classifier} FILE",
    Verb.LABEL: "venn-admit label {classifier} labels.csv",
    Verb.LIST_UNLABELLED: "venn-admit export {classifier} --what unlabelled --out unlabelled.parquet",
    Verb.FIT: "venn-admit fit {classifier}",
    Verb.EXPORT_PARAMETERS: "venn-admit export {classifier} --what parameters --out parameters.json",
    Verb.CALIBRATE: "venn-admit calibrate {classifier}",
    Verb.RECALIBRATE: "venn-admit recalibrate {classifier}",
    Verb.LIST_CALIBRATIONS: "venn-admit calibrations {classifier}",
    Verb.USE: "venn-admit use {classifier} {calibration}",
    Verb.SCORE: "venn-admit score {classifier} FILE --out OUT",
    Verb.REPORT: "venn-admit report {classifier}",
    Verb.MONITOR: "venn-admit monitor {classifier}",
    Verb.DELETE: "venn-admit delete {classifier}",
    Verb.ADD_GENERATION: "venn-admit generation create {classifier}",
    Verb.LIST_GENERATIONS: "venn-admit generation list {classifier}",
    Verb.SWITCH_GENERATION: "venn-admit generation switch {generation}",
    Verb.STATE_EXTRACTOR: "venn-admit generation extractor {classifier} {extractor}",
    Verb.CREATE_INDEX: "venn-admit index create {classifier}",
    Verb.AUDIT_INDEX: "venn-admit index audit {classifier}",
    Verb.DROP_INDEX: "venn-admit index drop {classifier}",
    Verb.LIST_JOBS: "venn-admit jobs list",
    Verb.CANCEL_JOB: "venn-admit jobs cancel {job}",
    Verb.LIST_KEYS: "venn-admit key list",
    Verb.UPGRADE_SCHEMA: "venn-admit db upgrade",
    Verb.NAME_ENCODER: "",
    Verb.ADD_ARGUMENT: "",
}
"""The beginning of each command; further arguments follow as options."""


def command(step: Step) -> str:
    """Return the command that takes a step, or options to add to one.

    >>> from venn_admit.core.calibrators.settings import make_settings, make_venn_abers_settings
    >>> settings = make_settings(2, 5, kappa=100, q_bins=(0, 1))
    >>> command(Step(Verb.CALIBRATE, classifier="my reviews", settings=settings, neighbour_count=5))
    "venn-admit calibrate 'my reviews' --method venn-admit --kappa 100 --q-bins 0,1"
    >>> settings = make_venn_abers_settings(2, 5, score="network")
    >>> command(Step(Verb.CALIBRATE, classifier="made", settings=settings, neighbour_count=5))
    'venn-admit calibrate made --method venn-abers --score network --promise pointwise'
    """
    from venn_admit.results import arguments_of

    begin, given = COMMANDS[step.verb], {"classifier": Blank("NAME"), "job": Blank("JOB")} | arguments_of(step)
    words = [begin.format_map({name: _text(value) for name, value in given.items()})] if begin else []
    for name, value in given.items():
        if name not in ("classifier", "job") and f"{{{name}}}" not in begin:
            option = _OPTIONS.get(name, name.replace("_", "-"))
            words.append(f"--{_OPPOSITES[name] if value is False else option}")
            words += [] if isinstance(value, bool) else [_text(value)]
    return " ".join(words)


_OPTIONS = {"dimension": "dim"}
"""Options that are not named after their argument."""
_OPPOSITES = {"probabilities": "as-logits"}
"""What says that an argument is false."""


def _text(value: Any) -> str:
    return quote(listed(value) if isinstance(value, list) else str(value))


def run(verb: Verb, **arguments: Any) -> str:
    """Return the advice to take a step.

    >>> run(Verb.FIT, classifier="my reviews")
    "run `venn-admit fit 'my reviews'`"
    """
    return f"run `{command(Step(verb, **arguments))}`"


def due_lines(name: str, recalibrations: int) -> list[str]:
    """Return a line that says so if calibrations of a classifier are out of date."""
    if not recalibrations:
        return []
    return [f"A recalibration is due: {run(Verb.RECALIBRATE, classifier=name)}, or leave it to beat."]


def advised(error: VennAdmitError) -> str:
    """Return the message of an error, with the command that does what it asks for if there is one.

    >>> from venn_admit.errors import Code, NotReadyError
    >>> advised(NotReadyError("fit it first", code=Code.NOT_FITTED, classifier="my reviews"))
    "fit it first; run `venn-admit fit 'my reviews'`"
    >>> advised(NotReadyError("ingest more"))
    'ingest more'
    """
    return "; ".join(filter(None, (str(error), advice_on(error, command, take="run {}"))))
