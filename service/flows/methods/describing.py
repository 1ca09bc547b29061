"""What a method says of a calibration of its own in a report, and what it is given for that."""

from dataclasses import dataclass

from venn_admit.service.core.documents import Documents
from venn_admit.service.core.monitoring.drift import DecidedPoints
from venn_admit.service.core.monitoring.traffic import Comparison
from venn_admit.service.report.calibration.contents import MethodPart
from venn_admit.service.store.calibrations.calibrations import Calibration
from venn_admit.service.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationToDescribe:
    """A calibration, and recent traffic. decided_documents: of its points; None if no two share one."""

    classifier: Classifier
    calibration: Calibration
    decided: DecidedPoints
    decided_documents: Documents | None

    @property
    def label_count(self) -> float:
        """The number of random labels so far, by the share of them that goes to mc."""
        return self.calibration.mc_count / float(self.classifier.mc_share)


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """What the method says. comparison: of recent traffic with its calibration data; None if nothing is comparable."""

    part: MethodPart
    comparison: Comparison | None
