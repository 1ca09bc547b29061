"""What fits and calibrations made, as JSON has it."""

from typing import Any

from venn_admit.core.calibrators.arguments import json_settings
from venn_admit.flows.calibration.calibrate import Calibrated
from venn_admit.flows.calibration.recalibrate import RecalibrationStep
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.methods.venn_admit.make import MadeByAdmit
from venn_admit.payloads.catalogue import asked_payload
from venn_admit.report.calibration.cells.certified import certificate_payload
from venn_admit.store.work.recalibrations import RecalibrationRequest


def recalibrated_payload(request: RecalibrationRequest, step: RecalibrationStep | None) -> dict[str, Any]:
    """Return what became of a recalibration that was due; step: None if another process made it."""
    done = None if step is None else step.calibrated
    return {
        "classifier": request.classifier.name,
        **asked_payload(request.settings),
        "reason": request.reason,
        "calibration": None if done is None else done.calibration_id,
        "mc": None if done is None else done.mc_count,
        "vp": None if done is None else done.vp_count,
        "rows_closed": None if done is None else done.changed.closed,
        "rows_opened": None if done is None else done.changed.opened,
        "error": None if step is None else step.error,
        "is_certified": None if done is None else done.is_certified,
    }


def calibrated_payload(done: Calibrated) -> dict[str, Any]:
    """Return what either method says of a calibration that it made."""
    if isinstance(done.made, MadeByAdmit):
        return _by_admit(done, done.made)
    assert isinstance(done.made, MadeByAbers), "there are two methods"
    return _by_abers(done, done.made)


def _by_admit(done: Calibrated, made: MadeByAdmit) -> dict[str, Any]:
    return {
        "calibration": done.calibration_id,
        **json_settings(done.settings, "alpha", "delta", "kappa"),
        "s_hat": made.radius.s_hat,
        "omega": made.radius.omega,
        "mc": done.mc_count,
        "vp": done.vp_count,
        "vp_in_usable_bands": made.usable_count,
        "vp_singletons": made.singleton_count,
        "largest_usable_kappa": made.largest_kappa,
        "rows_closed": done.changed.closed,
        "rows_opened": done.changed.opened,
    }


def _by_abers(done: Calibrated, made: MadeByAbers) -> dict[str, Any]:
    choice, certificate = made.choice, made.certificate
    return {
        "calibration": done.calibration_id,
        **asked_payload(done.method_settings),
        "chosen_score": str(choice.kind),
        "network_share": choice.network_share,
        "reliability_share": choice.reliability_share,
        "standard_error": choice.standard_error,
        "mc": done.mc_count,
        "vp": done.vp_count,
        "steps": len(made.steps.cell),
        "rows_closed": done.changed.closed,
        "rows_opened": done.changed.opened,
        "certificate": None if certificate is None else certificate_payload(certificate, done.classifier.class_names),
    }
