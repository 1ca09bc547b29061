"""What is stored of classifiers, as JSON has it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from venn_admit.core.calibrators.arguments import ALL_DECLARED, json_settings
from venn_admit.core.calibrators.settings import MethodSettings
from venn_admit.core.types import Split
from venn_admit.flows.data.catalogue import Listed, ListedCalibrations, Shown
from venn_admit.payloads.rows import plain
from venn_admit.store.calibrations.calibrators import Calibrator
from venn_admit.store.exemplars.classifiers import Classifier

if TYPE_CHECKING:  # a switch rests on what calibrates, and settings on files, which take long to import
    from venn_admit.flows.calibration.generations import Switch
    from venn_admit.flows.data.settings import ClassifierSettings


def classifiers_payload(found: Sequence[Listed]) -> dict[str, Any]:
    return {"classifiers": [_listed(one) for one in found]}


def generations_payload(found: list[Listed]) -> dict[str, Any]:
    return {"classifier": found[0].classifier.shared_name, "generations": [_listed(one) for one in found]}


def switch_payload(done: "Switch") -> dict[str, Any]:
    return {
        "classifier": done.after.classifier.shared_name,
        "before": _listed(done.before),
        "after": _listed(done.after),
        "changes": done.changes,
        "is_made": done.is_made,
    }


def show_payload(found: Shown) -> dict[str, Any]:
    holdings = found.holdings
    in_use = next((setting.calibration_id for setting in found.settings if setting.is_in_use), None)
    return {
        **_identity(found.classifier),
        "seed": found.classifier.seed,
        "knn_share": float(found.classifier.knn_share),
        "mc_share": float(found.classifier.mc_share),
        "data": {
            str(split): {
                "exemplars": sum(holdings.labels[split]) + holdings.unlabelled[split],
                "labels": holdings.labels[split],
                "unlabelled": holdings.unlabelled[split],
                "documents": holdings.documents[split],
            }
            for split in Split
        },
        "training_waiting": found.waiting,
        "parameters": None if found.parameters is None else plain(found.parameters),
        "calibration": in_use,
        "settings": [setting_payload(setting) for setting in found.settings],
        "jobs": [plain(row) for row in found.jobs],
        "decisions": [plain(row) for row in found.decisions],
        "outcomes": {"admitted" if reason is None else reason: rows for reason, rows in found.outcomes.items()},
    }


def calibrations_payload(name: str, found: ListedCalibrations) -> dict[str, Any]:
    return {
        "classifier": name,
        "settings": [setting_payload(setting) for setting in found.settings],
        "calibrations": [plain(row) for row in found.calibrations],
    }


def calibration_payload(row: Any, setting: Calibrator) -> dict[str, Any]:
    return {**plain(row), "asked": setting_payload(setting)}


def created_payload(created: Classifier) -> dict[str, Any]:
    return {
        "classifier": created.name,
        "classes": list(created.class_names),
        "dimension": None if created.knn is None else created.knn.dimension,
        "k": None if created.knn is None else created.knn.neighbour_count,
        "seed": created.seed,
        **_generation(created),
    }


def asked_payload(asked: MethodSettings) -> dict[str, Any]:
    """What tells settings apart: with null for what only another method has."""
    names = [name for name in ALL_DECLARED if name not in ("q_bins", "thresholds")]
    return {"method": asked.method, **dict.fromkeys(names), **json_settings(asked, *names)}


def settings_payload(found: "ClassifierSettings") -> dict[str, Any]:
    return {
        "classifier": found.classifier.name,
        "settings": [standing_payload(setting) for setting in found.settings],
    }


def standing_payload(setting: Calibrator) -> dict[str, Any]:
    """A setting without its calibrations, which change by themselves, as do the thresholds if a policy sets them."""
    asked = setting.settings
    return {
        "setting": setting.id,
        **asked_payload(asked),
        "q_bins": list(asked.q_bins),
        "thresholds": None if setting.is_certified is not None else _thresholds(setting),
        "is_in_use": setting.is_in_use,
        "retired_at": None if setting.retired_at is None else setting.retired_at.isoformat(),
    }


def _thresholds(setting: Calibrator) -> list[str | None]:
    return [None if one is None else str(one) for one in setting.thresholds]


def setting_payload(setting: Calibrator) -> dict[str, Any]:
    return {
        **standing_payload(setting),
        "thresholds": _thresholds(setting),
        "calibration": setting.calibration_id,
        "calibrated_at": setting.calibrated_at.isoformat(),
        "mc": setting.mc_count,
        "vp": setting.vp_count,
        "due_for": setting.due_for,
        "due_error": setting.due_error,
        "is_certified": setting.is_certified,
    }


def _listed(one: Listed) -> dict[str, Any]:
    counts = one.counts
    return {
        **_identity(one.classifier),
        "exemplars": {str(split): count for split, count in counts.exemplars.items()},
        "labelled": {str(split): count for split, count in counts.labelled.items()},
        "in_use": None if one.in_use is None else setting_payload(one.in_use),
        "running_jobs": counts.running_jobs,
    }


def _identity(classifier: Classifier) -> dict[str, Any]:
    return {
        "classifier": classifier.name,
        "classes": list(classifier.class_names),
        "dimension": None if classifier.knn is None else classifier.knn.dimension,
        "k": None if classifier.knn is None else classifier.knn.neighbour_count,
        **_generation(classifier),
        "created_at": classifier.created_at.isoformat(),
    }


def _generation(classifier: Classifier) -> dict[str, Any]:
    return {
        "generation": classifier.generation,
        "is_current": classifier.is_current,
        "extractor": classifier.extractor,
    }
