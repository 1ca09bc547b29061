"""A report for programs: what the tables show, as plain dictionaries, lists and numbers."""

from typing import Any

from service.core.evaluation import PartitionCell
from service.core.tallies import SelectiveAccuracy, Tally, wilson_interval
from service.report.dataset import DatasetReport


def report_payload(report: DatasetReport) -> dict[str, Any]:
    """Everything the tables show of one evaluation set, and the intervals and verdicts behind them."""
    alpha = report.alpha

    def tally(measured: Tally) -> dict[str, Any]:
        low, high = wilson_interval(measured.correct, measured.count)
        return {
            "share_correct": measured.share,
            "interval": [float(low), float(high)],
            "n": measured.count,
            "N": measured.total,
            "verdict": str(measured.verdict(alpha)),
        }

    def selective(measured: SelectiveAccuracy) -> dict[str, Any]:
        return {
            "per_true_class": by_class([tally(one) for one in measured.per_true_class]),
            "per_predicted_class": by_class([tally(one) for one in measured.per_predicted_class]),
            "all": tally(measured.overall),
        }

    def by_class(values: list[Any]) -> dict[str, Any]:
        return dict(zip(report.class_names, values, strict=True))

    def cell(measured: PartitionCell) -> dict[str, Any]:
        return {"threshold": measured.threshold, **tally(measured.tally)}

    return {
        "name": report.name,
        "alpha": str(alpha),
        "points": report.point_count,
        "accuracy": {
            row.name: {
                "accuracy": row.accuracy.tallies.overall.share,
                "f_half_macro": row.accuracy.f_half_macro,
                "per_true_class": by_class([one.share for one in row.accuracy.tallies.per_true_class]),
            }
            for row in report.accuracy
        },
        "partitions": [
            {
                "q": row.matches,
                "d": row.distances,
                "all": cell(row.overall),
                "per_true_class": by_class([cell(one) for one in row.per_class]),
            }
            for row in report.partitions.rows
        ],
        "median_d": report.partitions.median,
        "methods": {row.name: selective(row.selective) for row in report.methods},
    }
