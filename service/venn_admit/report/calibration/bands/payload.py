"""What a report has of bands, for programs."""

from collections.abc import Iterable
from typing import Any

from venn_admit.core.calibrators.arguments import json_settings
from venn_admit.core.monitoring.bands import Shortfall
from venn_admit.report.calibration.bands.wording import BandsContents
from venn_admit.report.calibration.report import CalibrationReport


def settings_payload(part: BandsContents) -> dict[str, Any]:
    """Return how the calibration was made."""
    settings = part.settings
    return {
        **json_settings(settings, "alpha", "delta", "kappa", "thresholds", "q_bins"),
        "s_hat": part.radius.s_hat,
        "omega": part.radius.omega,
    }


def bands_payload(report: CalibrationReport, part: BandsContents) -> dict[str, Any]:
    """Return the partitions, what is admitted of vp, plainly and of a sample with weights, and the label budget."""
    budget = part.lacking
    return {
        "partitions": _partitions(report, part),
        "vp_admitted": part.admitted_of_vp,
        "weights": {
            "points": part.weighted.points,
            "admitted_plain": part.weighted.plain,
            "admitted_weighted": part.weighted.admitted,
            "right_weighted": part.weighted.right,
        },
        "label_budget": None
        if budget is None
        else {
            "kappa": budget.kappa,
            "per_bin": [
                {"q": part.bin_names[number], **_shortfall(report, found)} for number, found in budget.per_bin.items()
            ],
            "all": _shortfall(report, budget.overall),
        },
    }


def _partitions(report: CalibrationReport, part: BandsContents) -> dict[str, Any]:
    partitions = part.partitions
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
            for number, name in enumerate(part.bin_names)
            for group in range(partitions.usable.shape[1])
        ],
    }


def _shortfall(report: CalibrationReport, shortfall: Shortfall) -> dict[str, Any]:
    return {
        "points": shortfall.points,
        "lacking": _by_class(report, shortfall.lacking.tolist()),
        "labels_per_class": _by_class(report, shortfall.labels_per_class.tolist()),
        "labels": shortfall.labels,
    }


def _by_class(report: CalibrationReport, values: Iterable[Any]) -> dict[str, Any]:
    return dict(zip(report.class_names, values, strict=True))
