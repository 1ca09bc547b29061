"""What would change if training exemplars were different: sections of text, and JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from venn_admit.core.monitoring.what_if import Flips, SnapshotEffects, SnapshotFact, ViewChanges
from venn_admit.report.calibration.sections import Section, TextTable
from venn_admit.report.wording import share_text

KEPT = "The parameters of the KNN, of the localizer and of the reliability score stay as they are fitted."
"""What is taken as given."""

TRAFFIC = (
    "The average promise and estimated class shares are made from recent traffic as it is now, as recalibrating would."
)
"""What is not: newer traffic can account for a part of the differences."""

_VIEWS = {"mc": "split mc", "vp": "split vp", "decided": "decided on"}
_FACTS = {
    "s_hat": "standard deviation of d",
    "omega": "radius of the bands",
    "usable": "points of vp with usable bands",
    "singletons": "points of vp with one class in the set",
    "score": "score",
    "steps": "steps",
    "certified": "a policy is certified",
}
_COUNTS = {
    "bands": "points of vp with different counts in their bands",
    "thresholds": "points of vp with different thresholds",
    "sets": "points of vp with a different ADMIT set",
    "scores": "points of mc with a different score",
    "steps": "steps that are new",
    "policy": "classes with a different threshold in the policy",
}


@dataclass(frozen=True, slots=True)
class TrainingChange:
    """A training exemplar with its label; becomes: another label, or None if it is left out."""

    external_id: str
    label: str
    becomes: str | None


@dataclass(frozen=True, slots=True)
class Flip:
    """A decision that would differ: the admitted class as it is and as it would be, None if rejected."""

    external_id: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, eq=False)
class TrainingEffects:
    """What would change if training exemplars had other labels or were left out.

    calibration: the one in use, by `method`, and the only one whose decisions are looked at. uses_traffic: whether its
    settings let the one that would follow rest on recent traffic. views: of the points of
    `mc` and `vp`, and of those that it `decided` on, each with its newest decision. flipped: the first of the decisions
    that would differ, in order of ingestion; there are `flips.total`.
    """

    classifier: str
    class_names: tuple[str, ...]
    calibration: int
    method: str
    changes: tuple[TrainingChange, ...]
    uses_traffic: bool
    views: Mapping[str, ViewChanges]
    snapshot: SnapshotEffects
    flips: Flips
    flipped: tuple[Flip, ...]


def training_heading(found: TrainingEffects) -> str:
    """Return what the sections are about, in a line."""
    return f"{found.classifier}, calibration {found.calibration} by {found.method}: what would change"


def training_sections(found: TrainingEffects, *, limit: int) -> list[Section]:
    """Return the changes as sections; limit: how many of the decisions that would differ are listed."""
    return [
        _asked(found, limit),
        _views(found),
        _snapshot(found),
        _decisions(found),
        *([_flipped(found, limit)] if found.flipped and limit else []),
    ]


def training_payload(found: TrainingEffects) -> dict[str, Any]:
    """Return the changes as JSON has them; the decisions that would differ are listed up to a limit of the flow."""
    flips = found.flips
    return {
        "classifier": found.classifier,
        "calibration": found.calibration,
        "method": found.method,
        "parameters": "as fitted",
        "uses_traffic": found.uses_traffic,
        "training": [
            {
                "external_id": change.external_id,
                "label": change.label,
                "left_out": change.becomes is None,
                "becomes": change.becomes,
            }
            for change in found.changes
        ],
        "points": {
            name: {
                "points": view.points,
                "touched": view.touched,
                "predicted": view.predicted,
                "q": view.match_count,
                "d": view.distance,
            }
            for name, view in found.views.items()
        },
        "snapshot": {
            "before": {fact.name: fact.before for fact in found.snapshot.facts},
            "after": {fact.name: fact.after for fact in found.snapshot.facts},
            "changed": {
                count.name: {"changed": count.changed, "total": count.total} for count in found.snapshot.counts
            },
        },
        "decisions": {
            "points": found.views["decided"].points,
            "flipped": flips.total,
            "per_class": [
                {"class": name, **{column: int(getattr(flips, column)[number]) for column in _FLIPS}}
                for number, name in enumerate(found.class_names)
            ],
            "listed": [
                {"external_id": flip.external_id, "before": flip.before, "after": flip.after} for flip in found.flipped
            ],
        },
    }


_FLIPS = {
    "admitted_before": "admitted\nnow",
    "admitted_after": "admitted\nthen",
    "rejected": "now admitted,\nthen rejected",
    "admitted": "now rejected,\nthen admitted",
    "moved_from": "moved to\nanother class",
    "moved_to": "moved to\nthis class",
}


def _asked(found: TrainingEffects, limit: int) -> Section:
    shown = [_change_text(change) for change in found.changes[: max(limit, 1)]]
    more = len(found.changes) - len(shown)
    return Section(
        "If these training exemplars were different",
        (*shown, *([f"and {more:,} more."] if more else [])),
        (" ".join((KEPT, *([TRAFFIC] if found.uses_traffic else []), "Nothing is stored.")),),
    )


def _change_text(change: TrainingChange) -> str:
    if change.becomes is None:
        return f"{change.external_id}, labelled {change.label}, left out."
    return f"{change.external_id}, labelled {change.label}, relabelled {change.becomes}."


def _views(found: TrainingEffects) -> Section:
    rows = tuple(
        (
            _VIEWS[name],
            *(f"{count:,}" for count in (view.points, view.touched, view.predicted, view.match_count, view.distance)),
        )
        for name, view in found.views.items()
    )
    return Section(
        "Points that are affected",
        (
            TextTable(
                ("", "points", "near one\nof these", "different\nprediction", "different\nq", "different\nd"), rows
            ),
        ),
        ("near one of these: with at least one of these exemplars among the K nearest. prediction: the KNN's.",),
    )


def _snapshot(found: TrainingEffects) -> Section:
    facts = tuple((_FACTS[fact.name], *_fact_texts(fact)) for fact in found.snapshot.facts)
    counts = tuple((_COUNTS[count.name], f"{count.changed:,}", f"{count.total:,}") for count in found.snapshot.counts)
    return Section(
        "The calibration that would follow",
        (TextTable(("", "now", "then"), facts), TextTable(("", "changed", "of"), counts)),
    )


def _fact_texts(fact: SnapshotFact) -> Iterator[str]:
    for value in (fact.before, fact.after):
        if isinstance(value, str):
            yield value
        else:
            yield f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _decisions(found: TrainingEffects) -> Section:
    title, points, flips = "Decisions", found.views["decided"].points, found.flips
    if not points:
        return Section(title, (f"Calibration {found.calibration} has decided on nothing yet.",))
    columns = [getattr(flips, column) for column in _FLIPS]
    rows = [
        (name, *(f"{int(column[number]):,}" for column in columns)) for number, name in enumerate(found.class_names)
    ]
    total = ("all", *(f"{int(column.sum()):,}" for column in columns))
    return Section(
        title,
        (
            f"{flips.total:,} of {points:,} ({share_text(flips.total / points)}) would differ.",
            TextTable(("", *_FLIPS.values()), (*rows, total), last_is_total=True),
        ),
        (
            f"The newest decision of calibration {found.calibration} on each exemplar, and what the calibration that "
            "would follow decides with the same options.",
        ),
    )


def _flipped(found: TrainingEffects, limit: int) -> Section:
    rows = tuple((flip.external_id, *map(_decision_text, (flip.before, flip.after))) for flip in found.flipped[:limit])
    more = found.flips.total - len(rows)
    notes = (f"{more:,} more would differ.",) if more else ()
    return Section("Decisions that would differ", (TextTable(("", "now", "then"), rows),), notes)


def _decision_text(name: str | None) -> str:
    return "rejected" if name is None else name
