"""What the setting in use would admit with one part of it varied: a table, and JSON."""

from dataclasses import dataclass
from typing import Any

from venn_admit.core.calibrators.arguments import called, json_settings
from venn_admit.core.calibrators.settings import CalibratorSettings, VennAbersSettings
from venn_admit.core.evaluation.measures import Admission
from venn_admit.report.evaluation.glance import admission_cells, admission_columns, admission_payload, intervals_text
from venn_admit.report.evaluation.table import EvaluationTable, Row


@dataclass(frozen=True, slots=True)
class SettingTried:
    """A setting, and what it admits of mc by cross-fitting; value: of what is varied, in words."""

    value: str
    settings: CalibratorSettings | VennAbersSettings
    admission: Admission
    is_current: bool

    @property
    def every_class_reaches(self) -> bool | None:
        """Whether no class is estimated to have a share right below 1 - alpha; None if nothing is admitted."""
        return self.admission.every_class_reaches(self.settings.alpha) if self.admission.admitted.correct else None


@dataclass(frozen=True, slots=True)
class SettingsTried:
    """The setting of the calibration in use with one part of it varied, in the order of the values asked for.

    varied: what is varied. is_weighted: whether probabilities are, as is the default of the method. point_count: of mc.
    judged_count, document_count: points that are decided on, and their documents.
    """

    classifier: str
    class_names: tuple[str, ...]
    calibration: int
    method: str
    varied: str
    is_weighted: bool
    point_count: int
    judged_count: int
    document_count: int
    tried: tuple[SettingTried, ...]


def settings_title(found: SettingsTried) -> str:
    """Return what the table and the picture show, in a line."""
    return (
        f"{found.classifier}, calibration {found.calibration} by the method {found.method}: what other values of "
        f"{called(found.varied)} would admit"
    )


def settings_table(found: SettingsTried) -> EvaluationTable:
    """Return a row for each value, with the share admitted and the share right by class."""
    return EvaluationTable(
        settings_title(found),
        (called(found.varied),),
        admission_columns(found.class_names),
        tuple(
            Row(
                (f"{one.value} (in use)" if one.is_current else one.value,),
                admission_cells(one.admission, found.class_names, one.settings.alpha),
                is_own=one.is_current,
            )
            for one in found.tried
        ),
        (
            (
                f"{intervals_text(found.point_count, found.judged_count, found.document_count)}. Shares right are "
                "judged by 1 - alpha of their row. Each document is decided on by the other ones (cross-fitting), with "
                f"{'weighted' if found.is_weighted else 'plain'} probabilities, as the method decides by default; "
                "everything else is as in the setting in use. Nothing of vp was read, and nothing is stored: choose by "
                "this table, and then judge the choice by data that had no part in it.",
            ),
        ),
    )


def settings_payload(found: SettingsTried) -> dict[str, Any]:
    """Return the same as JSON has it, with every class."""
    return {
        "classifier": found.classifier,
        "calibration": found.calibration,
        "varied": found.varied,
        "mc": found.point_count,
        "judged": found.judged_count,
        "weighted": found.is_weighted,
        "documents": found.document_count,
        "settings": [
            {
                "method": found.method,
                **_setting(one),
                "in_use": one.is_current,
                **admission_payload(one.admission, found.class_names),
                "every_class_reaches": one.every_class_reaches,
            }
            for one in found.tried
        ],
    }


def _setting(one: SettingTried) -> dict[str, Any]:
    names = ("alpha", "delta", "kappa", "score", "q_bins", "thresholds")
    return dict.fromkeys(names) | json_settings(one.settings, *names)
