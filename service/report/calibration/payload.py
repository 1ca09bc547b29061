"""A report on a calibration for programs, as plain dictionaries, lists and numbers."""

from collections.abc import Iterable
from typing import Any

from venn_admit.service.core.monitoring.discrepancies import Discrepancies, growth_p_value
from venn_admit.service.core.monitoring.drift import QUANTILES, OutcomeCounts, Shift
from venn_admit.service.core.monitoring.label_budget import Shortfall
from venn_admit.service.core.monitoring.traffic import Accuracy, SharePair, Traffic
from venn_admit.service.core.types import Reason, Split
from venn_admit.service.report.calibration.advice import advice
from venn_admit.service.report.calibration.contents import CalibrationReport
from venn_admit.service.report.calibration.steps import NextSteps


def calibration_payload(report: CalibrationReport, steps: NextSteps) -> dict[str, Any]:
    """Return everything that the tables show, for every class and every q by d partition.

    drift and label_budget are null if there is nothing to show. Numbers that do not exist, such as the share of no
    points, are NaN; labels are infinite if there is no rate to estimate them by.
    """
    inventory, budget = report.inventory, report.budget
    return {
        "classifier": report.classifier,
        "calibration": _snapshot(report),
        "stored": {
            "exemplars": {str(split): inventory.exemplars[split] for split in Split},
            "labelled": {str(split): inventory.labelled[split] for split in Split},
            "labels": {
                chosen.selection: {
                    "exemplars": chosen.exemplars,
                    "first": chosen.first.isoformat(),
                    "newest": chosen.newest.isoformat(),
                }
                for chosen in inventory.selections
            },
        },
        "since": {
            "arrived": report.changes.arrived,
            "changed": report.changes.changed,
            "left": report.changes.left,
        },
        "partitions": _partitions(report),
        "vp_admitted": report.admitted_of_vp,
        "drift": None if report.traffic is None else _traffic(report, report.traffic),
        "left_out": report.seen_count,
        "discrepancies": _discrepancies(report),
        "label_budget": None
        if budget is None
        else {
            "kappa": budget.kappa,
            "per_bin": [
                {"q": report.bin_names()[number], **_shortfall(report, part)} for number, part in budget.per_bin.items()
            ],
            "all": _shortfall(report, budget.overall),
        },
        "advice": advice(report, steps),
    }


def _snapshot(report: CalibrationReport) -> dict[str, Any]:
    snapshot, settings = report.snapshot, report.snapshot.settings
    return {
        "number": snapshot.id,
        "state": "current" if snapshot.is_current else "retired",
        "created_at": snapshot.created_at.isoformat(),
        "reason": snapshot.reason,
        "parameters_are_current": snapshot.parameters_are_current,
        "alpha": str(settings.alpha),
        "delta": settings.delta,
        "kappa": settings.kappa,
        "thresholds": [str(threshold) for threshold in settings.thresholds],
        "q_bins": list(settings.bin_edges),
        "s_hat": snapshot.radius.s_hat,
        "omega": snapshot.radius.omega,
        "mc": snapshot.mc_count,
        "vp": snapshot.vp_count,
    }


def _partitions(report: CalibrationReport) -> dict[str, Any]:
    partitions = report.partitions
    return {
        "d_edges": partitions.distance_edges,
        "cells": [
            {
                "q": name,
                "d_group": group,
                "mc": _by_class(report, partitions.mc_count[number, group].tolist()),
                "vp": _by_class(report, partitions.vp_count[number, group].tolist()),
                "vp_in_usable_bands": int(partitions.usable[number, group]),
                "vp_singletons": int(partitions.singleton[number, group]),
                "vp_singletons_right": int(partitions.right[number, group]),
            }
            for number, name in enumerate(report.bin_names())
            for group in range(partitions.usable.shape[1])
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
        "q": None if comparison is None else _shift(comparison.match_count),
        "d": None if comparison is None else _shift(comparison.distance),
        "usable": None if comparison is None else _pair(comparison.usable),
        "admitted": None if comparison is None else _pair(comparison.admitted),
        "unlike_vp": None if comparison is None else comparison.is_unlike_vp,
        "accuracy": [_accuracy(report, accuracy) for accuracy in traffic.accuracy],
    }


def _pair(pair: SharePair) -> dict[str, Any]:
    return {"vp": pair.vp.share, "recent": pair.recent.share, "lost": pair.is_lost}


def _accuracy(report: CalibrationReport, accuracy: Accuracy) -> dict[str, Any]:
    return {
        "predicted": None if accuracy.predicted is None else report.class_names[accuracy.predicted],
        "points": accuracy.points,
        "right": accuracy.right,
        "interval": [accuracy.low, accuracy.high],
    }


def _shift(shift: Shift) -> dict[str, Any]:
    return {
        "vp": shift.calibrated,
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
        "rejected": dict(zip(map(str, Reason), outcome.rejected, strict=True)),
    }


def _discrepancies(report: CalibrationReport) -> dict[str, Any]:
    agreement = report.agreement

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


def _shortfall(report: CalibrationReport, shortfall: Shortfall) -> dict[str, Any]:
    return {
        "points": shortfall.points,
        "lacking": _by_class(report, shortfall.lacking.tolist()),
        "labels_per_class": _by_class(report, shortfall.labels_per_class.tolist()),
        "labels": shortfall.labels,
    }


def _by_class(report: CalibrationReport, values: Iterable[Any]) -> dict[str, Any]:
    return dict(zip(report.class_names, values, strict=True))
