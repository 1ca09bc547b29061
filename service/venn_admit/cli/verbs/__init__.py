"""The verbs of the program by name, with the function of each, under the headings of `--help`.

Modules are named, not imported, because a verb needs few of them.
"""

from collections.abc import Mapping
from typing import NamedTuple


class VerbGroup(NamedTuple):
    """Verbs that share a first word."""

    help: str
    verbs: Mapping[str, str]


VERBS: Mapping[str, Mapping[str, str | VerbGroup]] = {
    "Set up and calibrate": {
        "create": "calibrating.classifier:create",
        "ingest": "calibrating.classifier:ingest",
        "label": "calibrating.classifier:label",
        "fit": "calibrating.classifier:fit",
        "calibrate": "calibrating.calibrate:calibrate",
        "start": "running.start:start",
        "recalibrate": "calibrating.recalibrate:recalibrate",
        "audits": "calibrating.audits:audits",
        "extract": VerbGroup(
            "Make exemplars from texts, or from token states of your network, with a memory layer.",
            {
                "train": "extracting.extract:train",
                "apply": "extracting.extract:apply",
                "evaluate": "extracting.evaluate:evaluate",
                "inspect": "extracting.inspect:inspect",
                "tune": "extracting.tune:tune",
            },
        ),
        "generation": VerbGroup(
            "Create, list and switch generations of a classifier: one for each extractor that its vectors come from.",
            {
                "create": "calibrating.generation:create_generation",
                "list": "calibrating.generation:list_generations",
                "switch": "calibrating.generation:switch",
                "extractor": "calibrating.generation:extractor",
            },
        ),
    },
    "See and manage what is stored": {
        "export": "calibrating.classifier:export",
        "list": "running.catalogue:list_classifiers",
        "show": "running.catalogue:show",
        "calibrations": "running.catalogue:calibrations",
        "use": "running.catalogue:use",
        "rename": "running.catalogue:rename",
        "retire": "running.catalogue:retire",
        "forget": "running.removal:forget",
        "delete": "running.removal:delete",
        "jobs": VerbGroup(
            "List, show, cancel, resume and delete jobs.",
            {
                "list": "running.jobs:list_jobs",
                "show": "running.jobs:show",
                "cancel": "running.jobs:cancel",
                "resume": "running.jobs:resume",
                "delete": "running.jobs:delete",
                "prune": "running.jobs:prune",
            },
        ),
    },
    "Decide and report": {
        "score": "deciding.scoring:score",
        "evaluate": "deciding.scoring:evaluate",
        "replay": "deciding.scoring:replay",
        "decide": "deciding.decide:decide",
        "report": "deciding.standing:report",
        "what-if": "deciding.what_if:what_if",
        "monitor": "deciding.standing:monitor",
        "review": VerbGroup(
            "Label what was rejected: claim points of the queue, which others then do not get, and label them.",
            {
                "next": "deciding.review:next_points",
                "label": "deciding.review:label",
                "renew": "deciding.review:renew",
                "release": "deciding.review:release",
                "export": "deciding.review:export",
                "import": "deciding.review:import_labels",
                "push": "deciding.review:push",
                "pull": "deciding.review:pull",
                "status": "deciding.review:status",
                "disagreements": "deciding.review:disagreements",
            },
        ),
        "cascade": VerbGroup(
            "Ask classifiers one after the other: a point goes to the next where it is rejected, under one promise.",
            {
                "create": "deciding.cascade:create",
                "list": "deciding.cascade:list_cascades",
                "calibrate": "deciding.cascade:calibrate",
                "report": "deciding.cascade:report",
                "score": "deciding.cascade:score",
                "delete": "deciding.cascade:delete",
            },
        ),
    },
    "Run and maintain": {
        "demo": "running.demo:demo",
        "serve": "running.serve:serve",
        "worker": "running.operation:worker",
        "beat": "running.operation:beat",
        "index": VerbGroup(
            "Create, show, audit or drop the HNSW index, which `decide` can search instead of all exemplars.",
            {
                "create": "calibrating.index:create",
                "show": "calibrating.index:show",
                "audit": "calibrating.index:audit",
                "drop": "calibrating.index:drop",
            },
        ),
        "key": VerbGroup(
            "Create, list and revoke keys for the HTTP service.",
            {
                "create": "running.keys:create_key",
                "list": "running.keys:list_keys",
                "revoke": "running.keys:revoke_key",
            },
        ),
        "db": VerbGroup(
            "Upgrade the database schema, check what it holds, and let others use it.",
            {
                "upgrade": "running.operation:upgrade",
                "status": "running.operation:status",
                "check": "running.operation:check",
                "grant-reader": "running.operation:grant_reader",
                "grant-service": "running.operation:grant_service",
            },
        ),
    },
}
