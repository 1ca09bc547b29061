"""What a report on a calibration says, as sections of sentences and tables, for the terminal and the page."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite

import numpy as np

from venn_admit.service.core.monitoring.discrepancies import LEVEL, Discrepancies, growth_p_value
from venn_admit.service.core.monitoring.label_budget import Shortfall
from venn_admit.service.core.types import FloatArray, IntArray, Split
from venn_admit.service.report.calibration.advice import advice
from venn_admit.service.report.calibration.contents import CalibrationReport
from venn_admit.service.report.calibration.sections import Section, TextTable, ratio_text
from venn_admit.service.report.calibration.steps import NextSteps
from venn_admit.service.report.calibration.traffic_wording import traffic_section
from venn_admit.service.report.evaluation.wording import SIDE_BY_SIDE, share_text, shorten

SHOWN_CLASSES = 3
"""At most this many classes have columns: those with the fewest points in mc."""

NAME_WIDTH = 8
"""Characters of a class name over a column."""


def heading(report: CalibrationReport) -> str:
    snapshot = report.snapshot
    state = "current" if snapshot.is_current else "retired"
    return f"{report.classifier}: calibration {snapshot.id}, {state}, of {time_text(snapshot.created_at)}"


def settings_text(report: CalibrationReport) -> str:
    """Return how the calibration was made."""
    snapshot, settings = report.snapshot, report.snapshot.settings
    every = len(settings.bin_edges) == report.neighbour_count + 1
    bins = "one bin for each q" if every else f"bins of q {', '.join(report.bin_names())}"
    least, most = min(settings.thresholds), max(settings.thresholds)
    thresholds = f"{least}" if least == most else f"{least} to {most}"
    return (
        f"alpha {settings.alpha}, thresholds {thresholds}, kappa {settings.kappa:,}, delta {settings.delta:g}, {bins}; "
        f"s_hat {snapshot.radius.s_hat:.4g}, omega {snapshot.radius.omega:.4g}; {snapshot.mc_count:,} points in mc, "
        f"{snapshot.vp_count:,} in vp; reason: {snapshot.reason}."
    )


def sections(report: CalibrationReport) -> list[Section]:
    """Return all of a report except its heading and its advice."""
    return [
        _stored(report),
        _partitions(report),
        traffic_section(report),
        _discrepancies(report),
        _label_budget(report),
    ]


def advice_text(report: CalibrationReport, steps: NextSteps) -> list[str]:
    """Return what to do next, or that there is nothing to do."""
    if found := advice(report, steps):
        return found
    checked = ["no labels wait to be used"]
    if report.agreement.at_fit is not None:
        checked.append("discrepancies have not grown")
    if report.traffic is not None and report.traffic.comparison is not None:
        checked.append("recent traffic is like vp")
    return [f"Nothing: {_listed(checked)}."]


def _listed(parts: list[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def time_text(time: datetime) -> str:
    """Return a time to the minute.

    >>> time_text(datetime(2026, 3, 1, 9, 30, tzinfo=UTC))
    '2026-03-01 09:30 UTC'
    """
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _stored(report: CalibrationReport) -> Section:
    inventory, changes = report.inventory, report.changes
    rows = tuple(
        (split.value, f"{inventory.exemplars[split]:,}", f"{inventory.labelled[split]:,}")
        for split in Split
        if inventory.exemplars[split]
    )
    chosen = tuple(
        (label.selection, f"{label.exemplars:,}", time_text(label.first), time_text(label.newest))
        for label in inventory.selections
    )
    since = (
        f"Since the calibration, {changes.arrived:,} labelled points arrived in mc and vp, {changes.changed:,} changed "
        f"and {changes.left:,} left."
        if changes.total
        else "mc and vp hold exactly the points and labels of this calibration."
    )
    return Section(
        "What is stored",
        (
            TextTable(("split", "exemplars", "with a label"), rows),
            TextTable(("labels outside train", "exemplars", "first", "newest"), chosen),
            since,
        ),
    )


def _partitions(report: CalibrationReport) -> Section:
    partitions, shown = report.partitions, _shown_classes(report)
    names = [shorten(report.class_names[c], NAME_WIDTH) for c in shown]
    vp_apart = len(report.class_names) <= SIDE_BY_SIDE
    heads = (*(f"mc\n{name}" for name in names), *((f"vp\n{name}" for name in names) if vp_apart else ("vp",)))

    def row(name: str, bins: slice, groups: slice) -> tuple[str, ...]:
        def total(counts: IntArray) -> int:
            return int(counts[bins, groups].sum())

        vp, singletons = total(partitions.vp_count), total(partitions.singleton)
        return (
            name,
            *(f"{total(partitions.mc_count[:, :, c]):,}" for c in shown),
            *((f"{total(partitions.vp_count[:, :, c]):,}" for c in shown) if vp_apart else (f"{vp:,}",)),
            ratio_text(total(partitions.usable), vp),
            ratio_text(singletons, vp),
            ratio_text(total(partitions.right), singletons),
        )

    def table(kind: str, rows: Iterator[tuple[str, ...]]) -> TextTable:
        every = row("any", slice(None), slice(None))
        return TextTable((kind, *heads, "usable\nbands", "single-\ntons", "right"), (*rows, every), last_is_total=True)

    whole = slice(None)
    by_q = (row(name, slice(i, i + 1), whole) for i, name in enumerate(report.bin_names()))
    by_d = (row(name, whole, slice(i, i + 1)) for i, name in enumerate(_group_names(partitions.distance_edges)))
    return Section(
        "Partitions by q, and by d",
        (table("q", by_q), table("d", by_d)),
        (
            "Counts are points by label. usable bands: the share of vp in bands that hold at least kappa = "
            f"{report.snapshot.settings.kappa:,} points of each class in mc; singletons: the share of vp whose ADMIT "
            "set has one class; right: the share of these whose label it is. d is cut at its quartiles over mc and vp.",
            *_hidden(report, shown),
        ),
    )


def _discrepancies(report: CalibrationReport) -> Section:
    agreement = report.agreement

    def row(name: str, counted: Discrepancies) -> tuple[str, ...]:
        p_value = "" if agreement.at_fit is None else share_text(growth_p_value(agreement.at_fit, counted))
        return (*plain(name, counted), p_value if counted.points else "-")

    def plain(name: str, counted: Discrepancies) -> tuple[str, ...]:
        return (name, f"{counted.points:,}", f"{counted.differing:,}", share_text(counted.share))

    now = (row("mc and vp", agreement.held_out), row("scored", agreement.scored))
    columns = ("", "points", "differ", "share", "p")
    title = "Where the predictions of KNN and network differ"
    if agreement.at_fit is None:
        given = "The KNN's parameters were given, not fitted, so there is no fit to compare with."
        return Section(title, (TextTable(columns[:-1], tuple(cells[:-1] for cells in now)), given))
    return Section(
        title,
        (TextTable(columns, ((*plain("at the fit (dev half)", agreement.at_fit), ""), *now)),),
        (
            "p: the probability of such an increase since the fit by chance (one-sided two-proportion z-test); below "
            f"{LEVEL} it counts as an increase.",
        ),
    )


def _label_budget(report: CalibrationReport) -> Section:
    title, budget, shown = "Labels that bands below kappa lack", report.budget, _shown_classes(report)
    if budget is None:
        return Section(title, ("No point was rejected because its band is below kappa.",))
    names = [shorten(report.class_names[c], NAME_WIDTH) for c in shown]

    def row(name: str, shortfall: Shortfall) -> tuple[str, ...]:
        lacking = (f"{int(shortfall.lacking[c]):,}" for c in shown)
        return (name, f"{shortfall.points:,}", *lacking, labels_text(shortfall.labels))

    bins = report.bin_names()
    rows = [row(bins[number], shortfall) for number, shortfall in budget.per_bin.items()]
    columns = ("q", "points\nrejected", *(f"lacking\n{name}" for name in names), "random\nlabels")
    return Section(
        title,
        (TextTable(columns, (*rows, row("any", budget.overall)), last_is_total=True),),
        (
            "Medians over the rejected points. lacking: how many more points of the class the band needs in mc to hold "
            f"kappa = {budget.kappa:,}; random labels: how many it takes until this is so for every class, at the rate "
            f"at which random labels have reached the band ({report.mc_share:%} of them go to mc). Coarser bins of q, "
            "a larger delta or a smaller kappa need fewer.",
            *(
                ("unknown: at least half of the bands hold no point of some class, so there is no rate to use.",)
                if any(not isfinite(part.labels) for part in (*budget.per_bin.values(), budget.overall))
                else ()
            ),
            *_hidden(report, shown),
        ),
    )


def labels_text(labels: float) -> str:
    """Return a number of labels with two digits, because it is an estimate; "unknown" for infinity.

    >>> [labels_text(labels) for labels in (7.2, 9894.98, 214_491.0, float("inf"))]
    ['7', '9,900', '210,000', 'unknown']
    """
    return f"{float(f'{labels:.2g}'):,.0f}" if isfinite(labels) else "unknown"


def _group_names(edges: FloatArray) -> list[str]:
    """Names of the groups of d, such as "under 1.2", "1.2 to 1.5", "1.5 and over"."""
    cuts = [f"{edge:.4g}" for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(cuts)]
    return [f"under {cuts[0]}", *between, f"{cuts[-1]} and over"]


def _shown_classes(report: CalibrationReport) -> list[int]:
    per_class = report.partitions.mc_count.sum(axis=(0, 1))
    return sorted(np.argsort(per_class, kind="stable")[:SHOWN_CLASSES].tolist())


def _hidden(report: CalibrationReport, shown: list[int]) -> tuple[str, ...]:
    if len(shown) == len(report.class_names):
        return ()
    return (f"{len(shown)} of {len(report.class_names)} classes shown: those with the fewest points in mc.",)
