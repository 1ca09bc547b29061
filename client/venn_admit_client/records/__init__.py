"""What a result is for programs: the Python interface, `--json`, the HTTP service and its client say the same."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .calibrations import (
        Calibration,
        CalibrationUse,
        Fit,
        ListedCalibration,
        PutInUse,
        Weaker,
        Withheld,
        q_bins_text,
        thresholds_text,
    )
    from .cascades import CascadeClass, CascadeDecision, CascadeReport, CascadeStage, Served, ServedStage, cost_text
    from .certificates import (
        Certificate,
        CertificateLook,
        CertifiedClass,
        Policy,
        SetAside,
        count_text,
        labels_needed_text,
        looks_text,
    )
    from .data import Audits, Deletion, Forgetting, Ingestion, Labelling, Registered
    from .decisions import Decision, Neighbour, Replay, StoredDecision
    from .reports import Alarm, Monitor, Report
    from .reviews import (
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

__all__ = [
    "Alarm",
    "Audits",
    "Calibration",
    "CalibrationUse",
    "CascadeClass",
    "CascadeDecision",
    "CascadeReport",
    "CascadeStage",
    "Certificate",
    "CertificateLook",
    "CertifiedClass",
    "Claims",
    "Decision",
    "Deletion",
    "Disagreement",
    "Fit",
    "Forgetting",
    "GivenLabel",
    "Ingestion",
    "Labelling",
    "ListedCalibration",
    "Monitor",
    "Neighbour",
    "Policy",
    "Precedent",
    "Pushed",
    "PutInUse",
    "Registered",
    "Replay",
    "Report",
    "ReviewPoint",
    "ReviewQueue",
    "Reviewed",
    "ReviewedPoint",
    "ReviewerCount",
    "Served",
    "ServedStage",
    "SetAside",
    "StoredDecision",
    "Weaker",
    "Withheld",
    "cost_text",
    "count_text",
    "labels_needed_text",
    "looks_text",
    "q_bins_text",
    "thresholds_text",
]

_MODULES = ("data", "certificates", "calibrations", "decisions", "cascades", "reports", "reviews")


if not TYPE_CHECKING:  # which would take any name for one that is there

    def __getattr__(name: str) -> Any:
        """Import the modules up to the one that a name is from: records take long to make, and a command needs few."""
        if name in __all__:
            modules = (import_module(f"{__name__}.{module}") for module in _MODULES)
            return next(getattr(module, name) for module in modules if hasattr(module, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
