"""What a report holds of bands, and says of them as sections of sentences and tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite

import numpy as np

from venn_admit.core.calibrators.bands import BandRadius
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.usable_bands import UsableShares
from venn_admit.core.comparison.divisions import mean_and_range
from venn_admit.core.monitoring.bands import LabelBudget, Shortfall, WeightedShare
from venn_admit.core.monitoring.partitions import CalibrationPartitions
from venn_admit.core.types import IntArray
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import (
    NAME_WIDTH,
    Section,
    TextTable,
    Unlock,
    group_names,
    labels_text,
    ratio_text,
)
from venn_admit.report.evaluation.evaluated import edge_names
from venn_admit.report.evaluation.wording import SIDE_BY_SIDE, short_names
from venn_admit.report.wording import share_text

SHOWN_CLASSES = 3
"""At most this many classes have columns: those with the fewest points in mc."""


@dataclass(frozen=True, slots=True, eq=False)
class BandsContents:
    """The bands of a snapshot.

    neighbour_count: K. mc_share: of random labels that go to mc. admitted_of_vp: points of vp that plain Venn-ADMIT
    would admit, each left out of its category. divisions: the share that each of ten other divisions of the same points
    would admit; none if unknown. weighted: what weighted Venn-ADMIT would admit of a sample of them; None if it is
    undivided, when divisions is what such divisions would admit, and all points count as vp.
    other_settings: what other settings leave usable, if these leave nearly nothing. lacking: the labels that bands
    lack; None if no point of the traffic has a band below kappa.
    """

    settings: CalibratorSettings
    neighbour_count: int
    radius: BandRadius
    mc_share: Decimal
    partitions: CalibrationPartitions
    admitted_of_vp: int
    divisions: tuple[float, ...]
    weighted: WeightedShare | None
    other_settings: UsableShares | None
    lacking: LabelBudget | None

    @property
    def bin_names(self) -> list[str]:
        """The names of the bins of q, such as "0", "1-5" and "25"."""
        return edge_names([*self.settings.q_bins, self.neighbour_count + 1])

    @property
    def where_bands_hold(self) -> str:
        """The split that bands hold points of, if there is more than one."""
        return "" if self.settings.undivided else " in mc"

    def _reaching(self) -> str:
        return "" if self.settings.undivided else f" ({self.mc_share:%} of them go to mc)"

    def unlocks(self, report: CalibrationReport) -> list[Unlock]:
        if self.lacking is None:
            return []
        edges = [*self.settings.q_bins, self.neighbour_count + 1]

        def lacking(shortfall: Shortfall) -> str:
            most = np.argsort(-shortfall.lacking, kind="stable")[:SHOWN_CLASSES].tolist()
            return ", ".join(
                f"{shortfall.lacking[c]:,} of {report.class_names[c]}" for c in most if shortfall.lacking[c]
            )

        found = [
            Unlock(
                where=f"q {self.bin_names[number]}",
                match_counts=range(edges[number], edges[number + 1]),
                predicted=None,
                points=shortfall.points,
                lacking=lacking(shortfall),
                labels=shortfall.labels,
            )
            for number, shortfall in self.lacking.per_bin.items()
        ]
        return sorted(found, key=lambda unlock: (unlock.labels, -unlock.points))

    def budget(self, report: CalibrationReport) -> Section:
        title, budget, shown = "Labels that small bands lack", self.lacking, _shown_classes(self)
        if budget is None:
            return Section(title, ("No point was rejected because its band is below kappa.",))
        short = short_names(report.class_names, NAME_WIDTH)
        names = [short[report.class_names[c]] for c in shown]

        def row(name: str, shortfall: Shortfall) -> tuple[str, ...]:
            lacking = (f"{int(shortfall.lacking[c]):,}" for c in shown)
            return (name, f"{shortfall.points:,}", *lacking, labels_text(shortfall.labels))

        bins = self.bin_names
        rows = [row(bins[number], shortfall) for number, shortfall in budget.per_bin.items()]
        columns = ("q", "points\nrejected", *(f"lacking\n{name}" for name in names), "random\nlabels")
        return Section(
            title,
            (TextTable(columns, (*rows, row("any", budget.overall)), last_is_total=True, query="band_budget"),),
            (
                "Medians over the rejected points. lacking: how many more points of the class the band needs"
                f"{self.where_bands_hold} to hold kappa = {budget.kappa:,}; random labels: how many it takes until "
                "this is so for every class, at the rate at which random labels have reached the "
                f"band{self._reaching()}. "
                "Coarser bins of q, a larger delta or a smaller kappa need fewer.",
                *(
                    ("unknown: at least half of the bands hold no point of some class, so there is no rate to use.",)
                    if any(not isfinite(one.labels) for one in (*budget.per_bin.values(), budget.overall))
                    else ()
                ),
                *_hidden(report, shown),
            ),
        )


def partitions_section(report: CalibrationReport, part: BandsContents) -> Section:
    """Return the points by q, and by d."""
    partitions, shown = part.partitions, _shown_classes(part)
    short = short_names(report.class_names, NAME_WIDTH)
    names = [short[report.class_names[c]] for c in shown]
    vp_apart, mc_shown = len(report.class_names) <= SIDE_BY_SIDE, () if part.settings.undivided else shown
    heads = (
        *(f"mc\n{name}" for name in names[: len(mc_shown)]),
        *((f"vp\n{name}" for name in names) if vp_apart else ("vp",)),
    )

    def row(name: str, bins: slice, groups: slice) -> tuple[str, ...]:
        def total(counts: IntArray) -> int:
            return int(counts[bins, groups].sum())

        vp, singletons = total(partitions.vp_count), total(partitions.singleton)
        return (
            name,
            *(f"{total(partitions.mc_count[:, :, c]):,}" for c in mc_shown),
            *((f"{total(partitions.vp_count[:, :, c]):,}" for c in shown) if vp_apart else (f"{vp:,}",)),
            ratio_text(total(partitions.usable), vp),
            ratio_text(singletons, vp),
            ratio_text(total(partitions.right), singletons),
        )

    def table(kind: str, rows: Iterator[tuple[str, ...]]) -> TextTable:
        every = row("any", slice(None), slice(None))
        return TextTable(
            (kind, *heads, "usable\nbands", "single-\ntons", "right"),
            (*rows, every),
            last_is_total=True,
            query=f"partitions_by_{kind}",
        )

    whole = slice(None)
    by_q = (row(name, slice(i, i + 1), whole) for i, name in enumerate(part.bin_names))
    by_d = (row(name, whole, slice(i, i + 1)) for i, name in enumerate(group_names(partitions.distance_edges.tolist())))
    return Section(
        "What the partitions hold",
        (table("q", by_q), table("d", by_d)),
        (
            "Counts are points by label. usable bands: the share of vp in bands that hold at least kappa = "
            f"{part.settings.kappa:,} points of each class{part.where_bands_hold}; singletons: the share of vp whose "
            "ADMIT set has one class; right: the share of these whose label it is. d is cut at its quartiles over mc "
            "and vp.",
            *_hidden(report, shown),
        ),
    )


def divisions_section(report: CalibrationReport, part: BandsContents) -> Section:
    """Return how much of the admitted share is owed to the division of the labelled points."""
    which = "" if part.settings.undivided else "other "
    title, snapshot = f"What {which}divisions of the points would admit", report.snapshot
    points = snapshot.mc_count + snapshot.vp_count
    admitted = f"Plain probabilities would admit {ratio_text(part.admitted_of_vp, snapshot.vp_count)} of vp."
    if not part.divisions:
        return Section(
            title,
            (
                f"{admitted} What {which}divisions of the same points into mc and vp admit is unknown: they leave too "
                "few points, or neighbours of the points have changed since.",
            ),
        )
    mean, least, most = mean_and_range(part.divisions)
    if part.settings.undivided:
        return Section(
            title,
            (
                f"{admitted} Divided into mc and vp in {len(part.divisions)} ways, the same {points:,} points would "
                f"admit {share_text(mean)} on average, from {share_text(least)} to {share_text(most)}.",
            ),
            (
                "The calibration is undivided: all points of mc and vp calibrate sets and probabilities, and are shown "
                "as vp, so that nothing is owed to a division.",
            ),
        )
    return Section(
        title,
        (
            f"{admitted} {len(part.divisions)} other divisions of the same {points:,} points into mc and vp admit "
            f"{share_text(mean)} on average, from {share_text(least)} to {share_text(most)}.",
        ),
        (
            "Venn-ADMIT admits a category as a whole, so that chance decides on one whose share right is near the "
            "threshold. Narrower bands owe less to the division, and admit less.",
        ),
    )


def weights_text(found: WeightedShare) -> str:
    """Return that weights reject most of what plain probabilities would admit, and what to do."""
    return (
        f"Weights reject most of what plain probabilities would admit: of {found.points:,} points of vp, weighted "
        f"probabilities, by which decisions are made by default, would admit {found.admitted:,} "
        f"({found.share:.1%}), plain ones {found.plain:,} ({found.plain / found.points:.1%}). "
        "Ask for unweighted decisions when you score, although they reject fewer inputs that are unlike the points of "
        "their category; or calibrate with coarser bins of q or a larger delta, whose categories hold more points, or "
        "by the method venn-abers, whose decisions are plain by default."
    )


def _shown_classes(part: BandsContents) -> list[int]:
    partitions = part.partitions
    per_class = (partitions.vp_count if part.settings.undivided else partitions.mc_count).sum(axis=(0, 1))
    return sorted(np.argsort(per_class, kind="stable")[:SHOWN_CLASSES].tolist())


def _hidden(report: CalibrationReport, shown: list[int]) -> tuple[str, ...]:
    if len(shown) == len(report.class_names):
        return ()
    return (f"{len(shown)} of {len(report.class_names)} classes shown: those with the fewest points in mc.",)
