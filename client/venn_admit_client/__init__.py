"""The client of the HTTP service, in the shape of the Python interface.

    from venn_admit_client import connect

    with connect("http://127.0.0.1:8470", key) as connection:
        classifier = connection.classifier("reviews")
        decisions = classifier.decide_many(vectors, logits=logits)
        certain = decisions.is_admitted  # (n,) bool

It needs neither torch nor a database. A request that gets no answer is sent again, and what it stores is stored once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cascade import Cascade
    from .classifier import Classifier
    from .connection import Connection, connect
    from .errors import (
        AccessError,
        AlarmError,
        BrokerError,
        ConflictError,
        DatabaseError,
        InvalidInputError,
        JobError,
        NotFoundError,
        NotReadyError,
        OutdatedError,
        UnavailableError,
        VennAdmitError,
    )
    from .records.calibrations import Calibration, CalibrationUse, Fit, ListedCalibration, PutInUse, Weaker, Withheld
    from .records.cascades import CascadeClass, CascadeDecision, CascadeReport, CascadeStage, Served, ServedStage
    from .records.certificates import Certificate, CertificateLook, CertifiedClass, Policy, SetAside
    from .records.data import Audits, Deletion, Forgetting, Ingestion, Labelling
    from .records.decisions import Decision, Neighbour, Replay, StoredDecision
    from .records.reports import Alarm, Monitor, Report
    from .records.reviews import (
        Claims,
        Disagreement,
        GivenLabel,
        Precedent,
        Reviewed,
        ReviewedPoint,
        ReviewerCount,
        ReviewPoint,
        ReviewQueue,
    )
    from .results import Decisions
    from .retries import Retries
    from .reviews import Reviewer

__version__ = "0.2.0"

__all__ = [
    "AccessError",
    "Alarm",
    "AlarmError",
    "Audits",
    "BrokerError",
    "Calibration",
    "CalibrationUse",
    "Cascade",
    "CascadeClass",
    "CascadeDecision",
    "CascadeReport",
    "CascadeStage",
    "Certificate",
    "CertificateLook",
    "CertifiedClass",
    "Claims",
    "Classifier",
    "ConflictError",
    "Connection",
    "DatabaseError",
    "Decision",
    "Decisions",
    "Deletion",
    "Disagreement",
    "Fit",
    "Forgetting",
    "GivenLabel",
    "Ingestion",
    "InvalidInputError",
    "JobError",
    "Labelling",
    "ListedCalibration",
    "Monitor",
    "Neighbour",
    "NotFoundError",
    "NotReadyError",
    "OutdatedError",
    "Policy",
    "Precedent",
    "PutInUse",
    "Replay",
    "Report",
    "Retries",
    "ReviewPoint",
    "ReviewQueue",
    "Reviewed",
    "ReviewedPoint",
    "Reviewer",
    "ReviewerCount",
    "Served",
    "ServedStage",
    "SetAside",
    "StoredDecision",
    "UnavailableError",
    "VennAdmitError",
    "Weaker",
    "Withheld",
    "connect",
]

_HOMES = {
    "Cascade": "cascade",
    "Classifier": "classifier",
    "Connection": "connection",
    "connect": "connection",
    "Decisions": "results",
    "Retries": "retries",
    "Reviewer": "reviews",
}


if not TYPE_CHECKING:  # which would take any name for one that is there

    def __getattr__(name: str) -> Any:
        """Import a name when it is first used: the service, which has its records from here, sends no requests."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in _HOMES or name.endswith("Error"):
            return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
        return import_module(f"{__name__}.records").find(name)


def __dir__() -> list[str]:
    """Return the public names, which editors and prompts complete."""
    return [*__all__, "__version__"]
