"""The steps that errors and reports advise, as requests."""

import json
from collections.abc import Mapping

from venn_admit.advice import NO_WAY, Blank, Step, Verb, advice_on
from venn_admit.errors import VennAdmitError
from venn_admit.files.output.exports import finite_json
from venn_admit.http.paths import classifier_path
from venn_admit.results import arguments_of

REQUESTS: Mapping[Verb, str] = {
    Verb.CREATE: "POST /v1/classifiers",
    Verb.INGEST: "POST {classifier}/exemplars",
    Verb.LABEL: "POST {classifier}/labels",
    # Requests list them, too, but not in a random order.
    Verb.LIST_UNLABELLED: "export the unlabelled points of {name} on the machine that runs the service",
    Verb.FIT: "POST {classifier}/fit",
    Verb.EXPORT_PARAMETERS: "GET {classifier}/parameters",
    Verb.CALIBRATE: "POST {classifier}/calibrations",
    Verb.RECALIBRATE: "POST {classifier}/recalibrate",
    Verb.LIST_CALIBRATIONS: "GET {classifier}/calibrations",
    Verb.USE: "PUT {classifier}/calibration",
    Verb.SCORE: "POST {classifier}/jobs",
    Verb.REPORT: "GET {classifier}/report",
    Verb.MONITOR: "GET {classifier}/monitor",
    Verb.DELETE: "DELETE {classifier}",
    Verb.ADD_GENERATION: "POST {classifier}/generations",
    Verb.LIST_GENERATIONS: "GET {classifier}/generations",
    Verb.SWITCH_GENERATION: "PUT {classifier}/generations/current",
    Verb.STATE_EXTRACTOR: "PUT {classifier}/extractor",
    Verb.CREATE_INDEX: NO_WAY,
    Verb.AUDIT_INDEX: NO_WAY,
    Verb.DROP_INDEX: NO_WAY,
    Verb.LIST_JOBS: "GET {classifier}/jobs",
    Verb.CANCEL_JOB: "POST {classifier}/jobs/{job}/cancel",
    Verb.LIST_KEYS: NO_WAY,
    Verb.UPGRADE_SCHEMA: NO_WAY,
    Verb.NAME_ENCODER: NO_WAY,
    Verb.ADD_ARGUMENT: "",
}
"""The method and the path of each request; further arguments are members of its body."""


def request_for(step: Step) -> str:
    """Return the request that takes a step, or members to add to one; empty if there is none.

    >>> from venn_admit.core.calibrators.settings import make_settings
    >>> settings = make_settings(2, 5, kappa=100, q_bins=(0, 1))
    >>> request_for(Step(Verb.CALIBRATE, classifier="made", settings=settings, neighbour_count=5))
    'POST /v1/classifiers/made/calibrations {"method": "venn-admit", "kappa": 100, "q_bins": [0, 1]}'
    """
    address, members = address_of(step), ", ".join(f'"{name}": {value}' for name, value in members_of(step).items())
    if step.verb is Verb.ADD_ARGUMENT:
        return members
    return f"{address} {{{members}}}" if address and members else address


def address_of(step: Step) -> str:
    """Return the method and the path of the request that takes a step."""
    name, job = (step.arguments.get(about) for about in ("classifier", "job"))
    path = "/v1/classifiers/{classifier}" if name is None else classifier_path(name)
    return REQUESTS[step.verb].format(classifier=path, name=name, job="{job}" if job is None else job)


def members_of(step: Step) -> dict[str, str]:
    """Return the members of its body, as JSON has them."""
    given = {name: value for name, value in arguments_of(step).items() if name not in ("classifier", "job")}
    return {
        name: value if isinstance(value, Blank) else json.dumps(finite_json(value), default=str)
        for name, value in given.items()
    }


def advised(error: VennAdmitError) -> str:
    """Return the message of an error, with the request that does what it asks for if there is one.

    >>> from venn_admit.errors import Code, NotReadyError
    >>> advised(NotReadyError("calibrate first", code=Code.NOT_CALIBRATED, classifier="my reviews"))
    'calibrate first; send `POST /v1/classifiers/my%20reviews/calibrations`'
    >>> advised(NotReadyError("ingest more"))
    'ingest more'
    """
    return "; ".join(filter(None, (str(error), advice_on(error, request_for, take="send {}"))))
