"""A report for programs, as plain dictionaries, lists and numbers."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from venn_admit.core.evaluation.curves import Reliability, RiskCurve
from venn_admit.core.evaluation.losses import MeanLoss
from venn_admit.core.evaluation.measures import ClassTallies, MethodMeasures, PointAccuracy
from venn_admit.core.evaluation.partitions import PartitionCell, PartitionTable
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.report.evaluation.dataset import AccuracyRow, DatasetReport
from venn_admit.report.evaluation.evaluated import calibration_payload
from venn_admit.report.evaluation.glance import every_class, promise_of
from venn_admit.report.evaluation.verdicts import answer, class_gap, class_verdicts, headline, overall_verdict
from venn_admit.report.evaluation.wording import reservations

CORRECT, COVERED = "share_correct", "share_covered"
"""The names of the share of a tally: of correct points, or of covered labels."""


def report_payload(report: DatasetReport) -> dict[str, Any]:
    """Return everything that the tables show of one evaluation set, with all intervals and verdicts.

    document_count, and documents in each tally, are null if points are independent. Numbers that do not exist, such as
    the share of no points, are NaN.
    """

    def tally(measured: Tally, share: str = CORRECT) -> dict[str, Any]:
        return {
            share: measured.share,
            "interval": list(measured.interval),
            "n": measured.count,
            "N": measured.total,
            "documents": measured.documents,
            "verdict": str(measured.verdict(report.alpha)),
        }

    def classes(measured: ClassTallies, share: str = CORRECT) -> dict[str, Any]:
        return {
            "per_true_class": by_class(tally(one, share) for one in measured.per_true_class),
            "per_predicted_class": by_class(tally(one, share) for one in measured.per_predicted_class),
            "all": tally(measured.overall, share),
        }

    def by_class(values: Iterable[Any]) -> dict[str, Any]:
        return dict(zip(report.class_names, values, strict=True))

    def loss(measured: MeanLoss) -> dict[str, Any]:
        return {
            "mean": measured.mean if measured.count else None,
            "interval": list(measured.interval),
            "n": measured.count,
            "documents": measured.documents,
            "verdict": str(measured.verdict(report.alpha)),
        }

    def method(measured: MethodMeasures) -> dict[str, Any]:
        every = every_class(measured.singletons, report)
        return {
            **classes(measured.singletons),
            "promise": str(promise_of(measured.name, report)),
            "promise_sentence": promise_of(measured.name, report).sentence,
            "every_class": {"verdict": str(every.verdict), "classes_met": every.met, "of": every.admitted},
            "coverage": classes(measured.coverage, COVERED),
            "by_size": [
                {"least": size.least, "most": size.most, **tally(size.covered, COVERED)} for size in measured.by_size
            ],
            "mean_size": measured.mean_size,
        }

    def accuracy(measured: PointAccuracy) -> dict[str, Any]:
        return {
            "accuracy": measured.tallies.overall.share,
            "f_half_macro": measured.f_half_macro,
            "f_half_macro_interval": list(measured.f_half_interval),
            "f_half": by_class(measured.f_half.tolist()),
            "per_true_class": by_class(one.share for one in measured.tallies.per_true_class),
            "tallies": classes(measured.tallies),
        }

    def cell(measured: PartitionCell) -> dict[str, Any]:
        return {"threshold": measured.threshold, **tally(measured.tally)}

    def measured_of(accuracy_rows: Iterable[AccuracyRow], partitions: PartitionTable | None) -> dict[str, Any]:
        return {
            "accuracy": {row.name: accuracy(row.accuracy) for row in accuracy_rows},
            "partitions": None
            if partitions is None
            else [
                {
                    "q": row.matches,
                    "d": row.distances,
                    "all": cell(row.overall),
                    "per_true_class": by_class(cell(one) for one in row.per_class),
                }
                for row in partitions.rows
            ],
            "median_d": None if partitions is None else partitions.median,
        }

    calibrated = report.calibration_data
    return {
        "name": report.name,
        "class_names": list(report.class_names),
        "calibration": None if report.calibration is None else calibration_payload(report.calibration),
        "alpha": str(report.alpha),
        "own_method": report.own,
        "verdict": _verdict(report),
        "points": report.point_count,
        "document_count": report.document_count,
        "left_out": report.left_out,
        "chosen": report.chosen,
        "notes": [note for note in _notes(report) if note],
        **measured_of(report.accuracy, report.partitions),
        # The points of mc and vp, which neither network nor KNN was fitted on.
        "calibration_data": None
        if calibrated is None
        else {
            "points": calibrated.point_count,
            "document_count": calibrated.document_count,
            **measured_of(calibrated.accuracy, calibrated.partitions),
        },
        "methods": {row.name: method(row) for row in report.methods},
        # What is promised if errors cost differently.
        "mean_loss": None
        if report.losses is None
        else {
            "per_true_class": by_class(map(loss, report.losses.per_true_class)),
            "per_predicted_class": by_class(map(loss, report.losses.per_predicted_class)),
            "all": loss(report.losses.overall),
        },
        "groups": [
            {
                "attribute": group.attribute,
                "group": group.value,
                "points": group.points,
                "share_admitted": group.admitted,
                **tally(group.right),
                **({} if group.loss is None else {"mean_loss": loss(group.loss)}),
            }
            for group in report.groups
        ],
        "parameters": dict(report.parameters),
        "risk_coverage": {one.name: _risk(one) for one in report.risk_curves},
        "reliability": {
            "lower": {name: _bins(bins) for name, bins in report.reliability_lower.items()},
            "upper": {name: _bins(bins) for name, bins in report.reliability_upper.items()},
        },
    }


def _notes(report: DatasetReport) -> tuple[str, ...]:
    return (*reservations(report), answer(report), headline(report), class_gap(report))


def _verdict(report: DatasetReport) -> dict[str, Any]:
    """Return whether the target is met: the share right among the points admitted as each class.

    more_to_settle counts points, or documents if points are not independent; null if no number would settle it.
    """
    return {
        "target": str(report.target),
        "all_predicted_classes": str(overall_verdict(report)),
        "per_predicted_class": {
            one.name: {"verdict": str(one.verdict), "n": one.tally.count, "more_to_settle": one.more_to_settle}
            for one in class_verdicts(report)
        },
    }


def _risk(measured: RiskCurve) -> dict[str, Any]:
    """The area, and of the curve the first point at or after each hundredth of the coverage."""
    coverage = measured.coverage
    first = np.unique(np.searchsorted(coverage, np.arange(1, 101) / 100))
    first = first[first < coverage.size]
    risk = measured.risk[first].tolist()
    return {
        "area": measured.area,
        "curve": [
            {"coverage": share, "share_wrong": wrong}
            for share, wrong in zip(coverage[first].tolist(), risk, strict=True)
        ],
    }


def _bins(bins: Reliability) -> list[dict[str, Any]]:
    """The bins that hold points, from the least probability up."""
    return [
        {
            "from": float(bins.edges[i]),
            "to": float(bins.edges[i + 1]),
            "n": int(bins.count[i]),
            "mean_probability": float(bins.mean_probability[i]),
            CORRECT: float(bins.frequency[i]),
            "interval": [float(bins.interval_low[i]), float(bins.interval_high[i])],
            "few": bool(bins.few[i]),
        }
        for i in range(bins.count.size)
        if bins.count[i]
    ]
