"""Admit or reject each prediction of a classifier, by labelled data, so that those admitted can be acted on.

    import venn_admit

    with venn_admit.connect() as connection:
        classifier = connection.create("reviews", ["negative", "positive"], dimension=128)
        classifier.ingest(vectors=train_r, logits=train_f, labels=train_y, split="train")
        classifier.ingest(vectors=held_r, logits=held_f, labels=held_y)
        classifier.fit()
        classifier.calibrate(method="venn-admit", kappa=100)
        decisions = classifier.score(vectors=new_r, logits=new_f)  # a pyarrow.Table, a row for each of yours

Everything runs in this process, on the Postgres that comes with the package or on a server, and is the same as what the
command `venn-admit` does. What is promised of the admitted predictions is a sentence for each method, which
`venn-admit calibrate --help` shows. The modules of this package and of `venn_admit_workers` are the program itself, and
no interface.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venn_admit.errors import (
        AlarmError,
        BrokerError,
        ConflictError,
        DatabaseError,
        InvalidInputError,
        JobError,
        NotFoundError,
        NotReadyError,
        OutdatedError,
        VennAdmitError,
    )
    from venn_admit.interface.cascade import Cascade
    from venn_admit.interface.classifier import Classifier
    from venn_admit.interface.comparison import ClassShare, Comparison, ForetoldOutcome, SettingOutcome, SettingsWhatIf
    from venn_admit.interface.connection import Connection, connect
    from venn_admit.interface.examples import example_data, example_texts
    from venn_admit.interface.hooks.hook import Hook, hook
    from venn_admit.interface.hooks.outputs import HookedBatches
    from venn_admit.interface.reports import Evaluation, Evaluations, Monitor, Report, SharesWhatIf, TrainingWhatIf
    from venn_admit.interface.reviews import Reviewer
    from venn_admit_client.records.calibrations import Calibration, Fit, PutInUse, Weaker, Withheld
    from venn_admit_client.records.cascades import (
        CascadeClass,
        CascadeDecision,
        CascadeReport,
        CascadeStage,
        Served,
        ServedStage,
    )
    from venn_admit_client.records.certificates import Certificate, CertifiedClass, SetAside
    from venn_admit_client.records.data import Audits, Deletion, Forgetting, Ingestion, Labelling
    from venn_admit_client.records.decisions import Decision, Neighbour
    from venn_admit_client.records.reports import Alarm
    from venn_admit_client.records.reviews import (
        Claims,
        Disagreement,
        GivenLabel,
        Precedent,
        Pushed,
        Reviewed,
        ReviewedPoint,
        ReviewerCount,
        ReviewPoint,
        ReviewQueue,
    )

__version__ = "0.2.0"

__all__ = [
    "Alarm",
    "AlarmError",
    "Audits",
    "BrokerError",
    "Calibration",
    "Cascade",
    "CascadeClass",
    "CascadeDecision",
    "CascadeReport",
    "CascadeStage",
    "Certificate",
    "CertifiedClass",
    "Claims",
    "ClassShare",
    "Classifier",
    "Comparison",
    "ConflictError",
    "Connection",
    "DatabaseError",
    "Decision",
    "Deletion",
    "Disagreement",
    "Evaluation",
    "Evaluations",
    "Fit",
    "ForetoldOutcome",
    "Forgetting",
    "GivenLabel",
    "Hook",
    "HookedBatches",
    "Ingestion",
    "InvalidInputError",
    "JobError",
    "Labelling",
    "Monitor",
    "Neighbour",
    "NotFoundError",
    "NotReadyError",
    "OutdatedError",
    "Precedent",
    "Pushed",
    "PutInUse",
    "Report",
    "ReviewPoint",
    "ReviewQueue",
    "Reviewed",
    "ReviewedPoint",
    "Reviewer",
    "ReviewerCount",
    "Served",
    "ServedStage",
    "SetAside",
    "SettingOutcome",
    "SettingsWhatIf",
    "SharesWhatIf",
    "TrainingWhatIf",
    "VennAdmitError",
    "Weaker",
    "Withheld",
    "connect",
    "example_data",
    "example_texts",
    "hook",
]

_HOMES = {
    "Cascade": "cascade",
    "Classifier": "classifier",
    "ClassShare": "comparison",
    "Comparison": "comparison",
    "ForetoldOutcome": "comparison",
    "SettingOutcome": "comparison",
    "SettingsWhatIf": "comparison",
    "Connection": "connection",
    "connect": "connection",
    "example_data": "examples",
    "example_texts": "examples",
    "Hook": "hooks.hook",
    "hook": "hooks.hook",
    "HookedBatches": "hooks.outputs",
    "Evaluation": "reports",
    "Evaluations": "reports",
    "Monitor": "reports",
    "Report": "reports",
    "Reviewer": "reviews",
    "SharesWhatIf": "reports",
    "TrainingWhatIf": "reports",
}
"""The modules of the interface that the other names are from, which are neither errors nor records."""


if not TYPE_CHECKING:  # which would take any name for one that is there

    def __getattr__(name: str) -> Any:
        """Import a name when it is first used: the command line, which is below this package, starts faster without."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in _HOMES:
            return getattr(import_module(f"venn_admit.interface.{_HOMES[name]}"), name)
        if name.endswith("Error"):
            return getattr(import_module("venn_admit.errors"), name)
        return import_module("venn_admit_client.records").find(name)


def __dir__() -> list[str]:
    """Return the public names, which editors and prompts complete."""
    return [*__all__, "__version__"]
