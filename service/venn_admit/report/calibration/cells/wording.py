"""What a report holds of cells, and says of them as sections of sentences and tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import inf, isfinite

from venn_admit.core.calibrators.average.policy import AveragePolicy
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.policies import Bounded
from venn_admit.core.calibrators.certified.shares.mixes import Departure
from venn_admit.core.calibrators.settings import AUTO, MethodSettings, ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.steps import Steps
from venn_admit.core.monitoring.cells import CellState, TrafficPart
from venn_admit.report.calibration.cells.average import never_text
from venn_admit.report.calibration.cells.certified import lacking_texts, outcome_text
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import (
    ROW_NAME_WIDTH,
    Section,
    TextTable,
    Unlock,
    group_names,
    labels_text,
    ratio_text,
)
from venn_admit.report.evaluation.evaluated import edge_names
from venn_admit.report.evaluation.wording import admits_from_text, short_names
from venn_admit.report.wording import share_text

SHOWN_CELLS = 12
"""At most this many cells have rows: those of which the least is admitted."""
SHOWN_CLASSES = 3
"""Recent traffic is shown by score for at most this many predicted classes: those with the most points in mc."""


@dataclass(frozen=True, slots=True, eq=False)
class CellsContents:
    """The cells of a snapshot.

    neighbour_count: K; None if the classifier has logits only. score: the one that the snapshot has. network_share,
    reliability_share: as `chosen_by_text` takes them. steps: of all cells. mc: its points. states: of every cell, by
    bin of q, then by predicted class. parts: of mc and of recent traffic. certificate: None if none was asked for.
    average: the policy of the average promise; None if another was asked for. departure: how recent traffic has left
    the class shares that the certificate is for; None if it has not.
    If there is a policy, the thresholds of the states are those of it.
    """

    settings: VennAbersSettings
    neighbour_count: int | None
    score: ScoreKind
    network_share: float | None
    reliability_share: float | None
    steps: Steps
    mc: CellPoints
    states: tuple[CellState, ...]
    parts: tuple[TrafficPart, ...]
    certificate: Certificate | None
    average: AveragePolicy | None
    departure: Departure | None = None

    @property
    def asked(self) -> str:
        """The score asked for, which may be left to the data."""
        return AUTO if self.settings.score is None else str(self.settings.score)

    @property
    def admitted(self) -> int:
        """The points of mc that would be admitted, each by bounds of the other folds."""
        return sum(state.admitted for state in self.states)

    @property
    def is_uncertified(self) -> bool:
        """Whether a certificate was asked for, and none could be given, so that everything is rejected."""
        return self.average is None and self.certificate is not None and self.certificate.policy is None

    @property
    def bounds_scores(self) -> bool:
        """Whether scores decide, instead of p0."""
        if self.average is not None:
            return True
        policy = None if self.certificate is None else self.certificate.policy
        return policy is not None and policy.bounded is Bounded.SCORE

    @property
    def bin_names(self) -> list[str] | None:
        """The names of the bins of q; None without vectors."""
        if self.neighbour_count is None:
            return None
        return edge_names([*self.settings.q_bins, self.neighbour_count + 1])

    def cell_name(self, state: CellState, class_names: Sequence[str]) -> str:
        """Return what a cell is called: its predicted class, and its bin of q if there are several."""
        name, bins = class_names[state.predicted], self.bin_names
        return name if bins is None or len(bins) == 1 else f"{name}, q {bins[state.q_bin]}"

    def unlocks(self, report: CalibrationReport) -> list[Unlock]:
        if self.settings.has_policy:
            return []
        edges = None if self.neighbour_count is None else [*self.settings.q_bins, self.neighbour_count + 1]
        found = [
            Unlock(
                where=f"predicted as {_name(report, self, state)}",
                match_counts=None if edges is None else range(edges[state.q_bin], edges[state.q_bin + 1]),
                predicted=state.predicted,
                points=state.points,
                lacking=f"{state.lacking:,.0f} right ones" if isfinite(state.lacking) else "no number would do",
                labels=state.labels,
            )
            for state in self.states
            if state.lacking
        ]
        return sorted(found, key=lambda unlock: (unlock.labels, -unlock.points))

    def budget(self, report: CalibrationReport) -> Section:
        title = "Labels that predicted classes lack to be admitted at all"
        if self.certificate is not None:
            has_average = self.average is not None
            said = (
                lacking_texts(self.certificate, report.class_names)
                if self.certificate.policy is not None
                else (outcome_text(self.certificate, report.class_names, has_average=has_average),)
            )
            return Section("Labels that the certificate lacks", said or ("None: a policy is certified.",))
        if self.average is not None:
            return Section(
                title, (never_text(self.average, report.class_names) or "Every predicted class is admitted.",)
            )
        lacking = [state for state in self.states if state.lacking]
        if not lacking:
            return Section(title, ("Every predicted class is admitted from some score on.",))
        rows = tuple(
            (
                _name(report, self, state),
                f"{state.points:,}",
                f"{state.right:,}",
                share_text(state.largest),
                threshold_text(state.threshold),
                f"{state.lacking:,}" if isfinite(state.lacking) else "no number",
                labels_text(state.labels),
            )
            for state in lacking[:SHOWN_CELLS]
        )
        heads = (
            "predicted as",
            "points\nin mc",
            "right",
            "largest\np0",
            "threshold",
            "right ones\nlacking",
            "random\nlabels",
        )
        return Section(
            title,
            (TextTable(heads, rows, query="cell_budget"),),
            (
                "right ones lacking: the fewest further points, all right and with the highest scores, after which p0 "
                "reaches the threshold; n right points of n give p0 = n / (n + 1). random labels: how many it takes at "
                "least, at the rate at which right points have come so far, if all of them get the highest scores. If "
                "a class is wrong as often at high scores as at low ones, no number of labels helps: "
                f"{'' if self.neighbour_count is None else 'another score or '}a better network does.",
                *((f"{SHOWN_CELLS} of {len(lacking)} shown.",) if len(lacking) > SHOWN_CELLS else ()),
            ),
        )

    def traffic_tables(self, report: CalibrationReport) -> tuple[TextTable, ...]:
        heads = ("mc", "recent", "right\nof mc", "admitted\nof mc", "admitted\nof recent")
        by_score = [found for found in self.parts if found.kind == "score" and found.predicted in _largest(self)]
        tables = [
            TextTable(("score, if predicted as", *heads), tuple(_score_rows(report, by_score)), query="parts_by_score")
        ]
        if self.neighbour_count is not None:
            by_q, by_d = ([found for found in self.parts if found.kind == kind] for kind in ("q", "d"))
            bins = edge_names([*(int(found.low) for found in by_q), self.neighbour_count + 1])
            tables.append(TextTable(("q", *heads), _part_rows(bins, by_q), query="parts_by_q"))
            distances = group_names([found.low for found in by_d[1:]])
            tables.append(TextTable(("d", *heads), _part_rows(distances, by_d), query="parts_by_d"))
        return tuple(tables)


def score_section(part: CellsContents) -> Section:
    """Return which score ranks the predictions, and why."""
    text = f"Score: {part.score} (asked for: {part.asked}); {len(part.steps.cell):,} steps."
    chosen_by = chosen_by_text(part.settings, part.network_share, part.reliability_share)
    return Section("What ranks the predictions", (f"{text} {chosen_by}".strip(),))


def chosen_by_text(settings: MethodSettings, network_share: float | None, reliability_share: float | None) -> str:
    """Return by what the score was chosen: what each admits by cross-fitting; empty if a score was asked for."""
    if network_share is None or reliability_share is None:
        return ""
    points = "the points that propose the policy" if settings.has_policy else "mc"
    return (
        f"Cross-fitted, lower probabilities by the network's score admit {network_share:.1%} of {points}, by the "
        f"reliability score {reliability_share:.1%}."
    )


def cells_section(report: CalibrationReport, part: CellsContents) -> Section:
    """Return what each cell can admit."""
    shown = _shown(part)

    by_score = part.bounds_scores

    def row(state: CellState) -> tuple[str, ...]:
        admits_from = admits_from_text(state.admits_from)
        return (
            _name(report, part, state),
            f"{state.points:,}",
            ratio_text(state.right, state.points),
            *(() if by_score else (threshold_text(state.threshold), share_text(state.largest))),
            admits_from,
            ratio_text(state.admitted, state.points),
        )

    points, right = sum(state.points for state in part.states), sum(state.right for state in part.states)
    total = ("all", f"{points:,}", ratio_text(right, points), *([""] * (1 if by_score else 3)))
    by_p0 = () if by_score else ("threshold", "largest\np0")
    heads = ("predicted as", "points\nin mc", "right", *by_p0, "admits\nfrom", "admitted")
    note = (
        "admits from: the score of the policy; admitted: the share of mc that would be."
        if by_score
        else "largest p0: the lower probability of the highest score; admits from: the score at which p0 reaches the "
        "threshold; admitted: the share of mc that would be, each point by bounds of the other folds."
    )
    rows = (*map(row, shown), (*total, ratio_text(part.admitted, points)))
    return Section(
        "Predicted classes, and what of them can be admitted",
        (TextTable(heads, rows, last_is_total=True, query="cells"),),
        (note, *_hidden(part, shown)),
    )


def _score_rows(report: CalibrationReport, parts: list[TrafficPart]) -> Iterator[tuple[str, ...]]:
    for c in dict.fromkeys(found.predicted for found in parts):
        assert c is not None, "scores are cut within a predicted class"
        mine = [found for found in parts if found.predicted == c]
        name = short_names(report.class_names, ROW_NAME_WIDTH)[report.class_names[c]]
        groups = group_names([found.low for found in mine[1:]])
        yield from _part_rows([f"{name}: {group}" for group in groups], mine)


def _part_rows(names: list[str], parts: list[TrafficPart]) -> tuple[tuple[str, ...], ...]:
    """Shares of all points of these parts, and within each part."""
    mc, recent = sum(found.calibrated for found in parts), sum(found.recent for found in parts)
    return tuple(
        (
            name,
            ratio_text(found.calibrated, mc),
            ratio_text(found.recent, recent),
            ratio_text(found.right, found.calibrated),
            ratio_text(found.admitted, found.calibrated),
            ratio_text(found.recent_admitted, found.recent),
        )
        for name, found in zip(names, parts, strict=True)
    )


def lacking_text(report: CalibrationReport, part: CellsContents, state: CellState) -> str:
    """Return one sentence on a cell that can admit nothing."""
    what = f"Nothing predicted as {part.cell_name(state, report.class_names)!r} can be admitted"
    why = f"its p0 reaches {share_text(state.largest)} at most, below {threshold_text(state.threshold)}"
    if state.lacking == inf:
        return f"{what}: {why}, which no number of labels reaches."
    more = f"{state.lacking:,.0f} more right point{'s' if state.lacking > 1 else ''} with the highest scores would do"
    labels = f", about {labels_text(state.labels)} random labels at least" if isfinite(state.labels) else ""
    return f"{what}: {why}; {more}{labels}."


def threshold_text(threshold: Decimal | None) -> str:
    """Return the least p0 that admits.

    >>> [threshold_text(threshold) for threshold in (Decimal("0.9"), Decimal("0.8130081300813008"), None)]
    ['0.9', '0.81301', 'never']
    """
    return "never" if threshold is None else f"{float(threshold):.5g}"


def _name(report: CalibrationReport, part: CellsContents, state: CellState) -> str:
    short = short_names(report.class_names, ROW_NAME_WIDTH)
    return part.cell_name(state, [short[name] for name in report.class_names])


def _shown(part: CellsContents) -> list[CellState]:
    if len(part.states) <= SHOWN_CELLS:
        return list(part.states)
    least = sorted(part.states, key=lambda state: state.admitted / max(1, state.points))[:SHOWN_CELLS]
    return [state for state in part.states if state in least]


def _hidden(part: CellsContents, shown: list[CellState]) -> tuple[str, ...]:
    if len(shown) == len(part.states):
        return ()
    return (f"{len(shown)} of {len(part.states)} shown: those of which the least is admitted.",)


def _largest(part: CellsContents) -> set[int]:
    """The predicted classes with the most points in mc."""
    counts: dict[int, int] = {}
    for state in part.states:
        counts[state.predicted] = counts.get(state.predicted, 0) + state.points
    return set(sorted(counts, key=lambda c: (-counts[c], c))[:SHOWN_CLASSES])
