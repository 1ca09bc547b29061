"""The steps that errors and reports advise, as calls of this package."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any

from venn_admit.advice import NO_WAY, Blank, Step, Verb, advice_on
from venn_admit.errors import VennAdmitError
from venn_admit.results import arguments_of

CALLS: Mapping[Verb, str] = {
    Verb.CREATE: "connection.create(...)",
    Verb.INGEST: "classifier.ingest(...)",
    Verb.LABEL: "classifier.label(...)",
    Verb.LIST_UNLABELLED: 'classifier.export("unlabelled", "unlabelled.parquet")',
    Verb.FIT: "classifier.fit()",
    Verb.EXPORT_PARAMETERS: 'classifier.export("parameters", "parameters.json")',
    Verb.CALIBRATE: "classifier.calibrate()",
    Verb.RECALIBRATE: "classifier.recalibrate()",
    Verb.LIST_CALIBRATIONS: NO_WAY,
    Verb.USE: "classifier.use()",
    Verb.SCORE: "classifier.score(...)",
    Verb.REPORT: "classifier.report()",
    Verb.MONITOR: "classifier.monitor()",
    Verb.DELETE: "connection.delete({classifier})",
    Verb.ADD_GENERATION: "connection.create_generation({classifier})",
    Verb.LIST_GENERATIONS: "connection.classifiers()",
    Verb.SWITCH_GENERATION: "connection.switch()",
    Verb.STATE_EXTRACTOR: "connection.state_extractor({classifier})",
    Verb.CREATE_INDEX: NO_WAY,
    Verb.AUDIT_INDEX: NO_WAY,
    Verb.DROP_INDEX: NO_WAY,
    Verb.LIST_JOBS: NO_WAY,
    Verb.CANCEL_JOB: "venn-admit jobs cancel {job}",
    Verb.LIST_KEYS: NO_WAY,
    Verb.UPGRADE_SCHEMA: "venn_admit.connect(..., migrate=True)",
    Verb.NAME_ENCODER: NO_WAY,
    Verb.ADD_ARGUMENT: "",
}
"""Each call, which takes further arguments by their names, or the command for which there is no call."""


def call(step: Step) -> str:
    """Return the call that takes a step, or arguments to add to one; empty if there is none.

    >>> from venn_admit.core.calibrators.settings import make_settings
    >>> settings = make_settings(2, 5, kappa=100, q_bins=(0, 1))
    >>> call(Step(Verb.CALIBRATE, classifier="made", settings=settings, neighbour_count=5))
    'classifier.calibrate(method="venn-admit", kappa=100, q_bins=[0, 1])'
    """
    given, begin = arguments_of(step), CALLS[step.verb]
    named = [f"{name}={_text(value)}" for name, value in given.items() if name not in ("classifier", "job")]
    if step.verb is Verb.ADD_ARGUMENT:
        return ", ".join(named)
    begin = begin.format(classifier=_text(given.get("classifier", Blank("name"))), job=given.get("job", Blank("JOB")))
    if not begin or not named:
        return begin
    return f"{begin.removesuffix(')')}{'' if begin.endswith('()') else ', '}{', '.join(named)})"


def _text(value: Any) -> str:
    if isinstance(value, Blank | bool):
        return str(value)
    return 'float("inf")' if value == inf else json.dumps(value, default=str, ensure_ascii=False)


@contextmanager
def advising() -> Iterator[None]:
    """Note, with an error that is raised in the block, the call that does what its message asks for."""
    try:
        yield
    except VennAdmitError as error:
        if note := advice_on(error, call, take="call {}"):
            error.add_note(note)
        raise
