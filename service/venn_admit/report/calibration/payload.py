"""A report on a calibration for programs, as plain dictionaries, lists and numbers."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from venn_admit.advice import Render
from venn_admit.core.monitoring.drift import QUANTILES, Discrepancies, OutcomeCounts, Shift, growth_p_value
from venn_admit.core.monitoring.history import LabelSelection
from venn_admit.core.monitoring.traffic import Accuracy, Comparison, SharePair, Traffic
from venn_admit.core.reasons import Reason
from venn_admit.core.split_names import Split
from venn_admit.report.calibration.advice import advice
from venn_admit.report.calibration.common.coverage import coverage_payload
from venn_admit.report.calibration.common.history import chains_payload, days_payload, history_payload
from venn_admit.report.calibration.common.partition_map import map_payload
from venn_admit.report.calibration.common.watch import watch_payload
from venn_admit.report.calibration.report import Agreement, CalibrationReport
from venn_admit.report.calibration.wording import queries_of_tables
from venn_admit_client.members import as_json


def calibration_payload(report: CalibrationReport, render: Render) -> dict[str, Any]:
    """Return everything that the tables show; what the method adds stands beside what all have.

    drift and label_budget are null if there is nothing to show. Numbers that do not exist, such as the share of no
    points, are NaN; labels are infinite if there is no rate to estimate them by. queries: the SQL behind the tables, by
    name. If the classifier has logits only, discrepancies, parameters_are_current, map, monitor, the q of cells, and q
    and d of drift are null, and its parts are by score alone.
    """
    inventory = report.inventory
    return {
        "classifier": report.classifier,
        "calibration": _snapshot(report),
        "stored": {
            "exemplars": {str(split): inventory.exemplars[split] for split in Split},
            "labelled": {str(split): inventory.labelled[split] for split in Split},
            "training_waiting": inventory.training_waiting,
            "copies": inventory.copies,
            "copies_apart": inventory.copies_apart,
            "training_copies": inventory.training_copies,
            "unlikely_logits": inventory.unlikely_logits,
            "labels": {
                selection: _labels(list(chosen))
                for selection, chosen in groupby(inventory.selections, lambda one: one.selection)
            },
        },
        "since": {"arrived": report.changes.arrived, "changed": report.changes.changed, "left": report.changes.left},
        "map": None if report.map is None else map_payload(report.map),
        "coverage": coverage_payload(report),
        "history": history_payload(report),
        "days": days_payload(report.days),
        "chains": None if report.chains is None else chains_payload(report.chains),
        "monitor": watch_payload(report.watch),
        **report.part.payload(report),
        "drift": None if report.traffic is None else _traffic(report, report.traffic),
        "withheld": [{"number": number, **as_json(why)} for number, why in report.withheld.items()],
        "certificates": [as_json(look) for look in report.looks],
        "left_out": report.seen_count,
        "discrepancies": None if report.agreement is None else _discrepancies(report.agreement),
        "queries": dict(queries_of_tables(report, render)),
        "advice": advice(report, render),
    }


def _snapshot(report: CalibrationReport) -> dict[str, Any]:
    snapshot, settings = report.snapshot, report.part.settings_payload()
    # What was asked for, such as the strongest, is not what the calibration promises.
    asked = settings.pop("promise", None)
    return {
        "number": snapshot.id,
        "promise": str(report.promised),
        "promise_sentence": report.promise_sentence,
        "asked_promise": asked,
        "state": snapshot.state,
        "in_use": snapshot.id == report.in_use,
        "created_at": snapshot.created_at.isoformat(),
        "reason": snapshot.reason,
        "parameters_are_current": snapshot.parameters_are_current,
        "method": snapshot.method,
        **settings,
        "mc": snapshot.mc_count,
        "vp": snapshot.vp_count,
        "forgotten": snapshot.forgotten,
    }


def _labels(chosen: Sequence[LabelSelection]) -> dict[str, Any]:
    """Labels of one selection, and by the rules that drew them."""
    return {
        "exemplars": sum(one.exemplars for one in chosen),
        "calibrating": sum(one.calibrating for one in chosen),
        "first": min(one.first for one in chosen).isoformat(),
        "newest": max(one.newest for one in chosen).isoformat(),
        "rules": [
            {
                "rule": one.rule,
                "least_probability": one.least_probability,
                "largest_probability": one.largest_probability,
                "exemplars": one.exemplars,
                "calibrating": one.calibrating,
            }
            for one in chosen
            if one.rule is not None
        ],
    }


def _traffic(report: CalibrationReport, traffic: Traffic) -> dict[str, Any]:
    comparison = traffic.comparison
    return {
        "points": traffic.points,
        "unlabelled": traffic.unlabelled,
        "decided_by": {str(calibration): points for calibration, points in traffic.decided_by.items()},
        "outcomes": [_outcome(outcome) for outcome in traffic.outcomes],
        "compared": 0 if comparison is None else comparison.points,
        "quantiles": list(QUANTILES),
        "reference": str(report.part.reference),
        **dict.fromkeys(report.part.compared),
        **({} if comparison is None else _comparison(comparison)),
        f"unlike_{report.part.reference}": None if comparison is None else comparison.is_unlike,
        **report.part.drift_payload(report),
        "accuracy": [_accuracy(report, accuracy) for accuracy in traffic.accuracy],
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    name = str(comparison.reference)
    return {
        **{quantity: _shift(found, name) for quantity, found in comparison.shifts.items()},
        **{what: _pair(found, name) for what, found in comparison.shares.items()},
    }


def _pair(pair: SharePair, reference: str) -> dict[str, Any]:
    return {reference: pair.calibrated.share, "recent": pair.recent.share, "lost": pair.is_lost}


def _accuracy(report: CalibrationReport, accuracy: Accuracy) -> dict[str, Any]:
    return {
        "predicted": None if accuracy.predicted is None else report.class_names[accuracy.predicted],
        "points": accuracy.points,
        "right": accuracy.right,
        "interval": [accuracy.low, accuracy.high],
    }


def _shift(shift: Shift, reference: str) -> dict[str, Any]:
    return {
        reference: shift.calibrated,
        "decided": shift.decided,
        "statistic": shift.test.statistic,
        "p_value": shift.test.p_value,
        "at_least": shift.test.least,
        "shifted": shift.is_large,
    }


def _outcome(outcome: OutcomeCounts) -> dict[str, Any]:
    return {
        "weighted": outcome.weighted,
        "q_equals_k": outcome.require_full_match,
        "points": outcome.points,
        "admitted": outcome.admitted,
        "rejected": {str(reason): outcome.rejected[reason] for reason in Reason},
    }


def _discrepancies(agreement: Agreement) -> dict[str, Any]:
    def since(counted: Discrepancies) -> dict[str, Any]:
        if agreement.at_fit is None:
            return _counted(counted)
        return {
            **_counted(counted),
            "p_value": growth_p_value(agreement.at_fit, counted),
            "grown": agreement.grown(counted),
        }

    return {
        "at_fit": None if agreement.at_fit is None else _counted(agreement.at_fit),
        "mc_and_vp": since(agreement.held_out),
        "scored": since(agreement.scored),
    }


def _counted(counted: Discrepancies) -> dict[str, Any]:
    return {"points": counted.points, "differing": counted.differing, "share": counted.share}
