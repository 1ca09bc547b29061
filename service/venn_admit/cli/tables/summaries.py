"""What was done, in a few lines: the decisions of a request, the labels of a file, the texts that were encoded."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from venn_admit.core.reasons import Reason
from venn_admit.core.split_names import HELD_OUT_SPLITS, Split
from venn_admit.report.wording import counted
from venn_admit.store.decisions.decisions import DecisionCount, rows_in_use
from venn_admit_client.records.data import Audits, Labelling

if TYPE_CHECKING:
    from venn_admit.flows.extraction.states import OpenedStates


SHOWN_CLASSES = 20
"""At most this many classes have a line: those that were predicted most often."""


class ScoreSummary:
    """What a job decided, in rows of its file.

    predicted, admitted: per class number. rejected: per reason, of every class and of each. in_use: rows whose
    exemplars train the KNN or calibrate, per split.
    """

    def __init__(self, class_names: Sequence[str], counts: Sequence[DecisionCount]) -> None:
        self.class_names = class_names
        self.predicted: Counter[int] = Counter()
        self.admitted: Counter[int] = Counter()
        self.rejected: Counter[Reason] = Counter()
        self.rejected_of: dict[int, Counter[Reason]] = {number: Counter() for number in range(len(class_names))}
        self.in_use = rows_in_use(counts)
        for count in counts:
            self.predicted[count.predicted] += count.rows
            if count.decision is not None:
                self.admitted[count.decision] += count.rows
            if count.reason is not None:
                self.rejected[count.reason] += count.rows
                self.rejected_of[count.predicted][count.reason] += count.rows

    def payload(self) -> dict[str, Any]:
        """For programs; of classes without a row too."""
        return {
            "admitted": {str(number): rows for number, rows in sorted(self.admitted.items())},
            "rejected": _ordered(self.rejected, Reason),
            "classes": [
                {
                    "label": number,
                    "name": name,
                    "predicted": self.predicted[number],
                    "admitted": self.admitted[number],
                    "rejected": _ordered(self.rejected_of[number], Reason),
                }
                for number, name in enumerate(self.class_names)
            ],
            "in_use": _ordered(self.in_use, Split),
        }

    def lines(self) -> list[str]:
        """For people; of the classes that were predicted most often."""
        shown = sorted(self.predicted.most_common(SHOWN_CLASSES))
        left_out = len(self.predicted) - len(shown)
        return [
            *(
                f"  admitted, {self.class_names[number]}: {self.admitted[number]:,} of {rows:,} predicted"
                for number, rows in shown
            ),
            *([f"  {left_out:,} classes that were predicted less often: --json shows all"] if left_out else []),
            *(f"  rejected, {reason}: {rows:,}" for reason, rows in _ordered(self.rejected, Reason).items()),
        ]


def _ordered(counts: Counter[Any], order: type[Reason] | type[Split]) -> dict[str, int]:
    return {str(key): counts[key] for key in order if counts[key]}


def label_lines(file: Path, done: Labelling) -> list[str]:
    """Return lines for people; what did not happen has no line."""
    said_first = [f"{getattr(done, what):,} {what}" for what in ("new", "corrected", "retracted", "unchanged")]
    if done.put_to_use:
        said_first.append(f"{done.put_to_use:,} stored before and used now")
    calibrating = {split: done.calibrating[split] for split in HELD_OUT_SPLITS if split in done.calibrating}
    where = ", ".join(f"{split} {count:,}" for split, count in calibrating.items())
    said = [
        (sum(calibrating.values()), "Exemplars that now calibrate: {} (" + where + ")."),
        (done.calibrating.get(Split.TRAIN, 0), "Exemplars that now train the KNN: {}."),
        (done.left, "Exemplars no longer in use: {}."),
        (done.kept_for_evaluation, "Labels kept for evaluation alone, because selected exemplars never calibrate: {}."),
        (done.reviewed, "Labels of drawn points, which count by the probability of the draw: {}."),
        (done.not_drawn, "Labels of points that were not drawn, which are kept as selected: {}."),
        (
            done.selected_and_calibrating,
            "Exemplars labelled as selected, or for a review without a draw, that still calibrate, because they were "
            "drawn at random earlier: {}. To take them out, run `venn-admit label NAME FILE --retract` with an empty "
            "label for each, then label them as selected.",
        ),
        (done.in_other_generations, "Labels recorded for other generations of the classifier: {}."),
    ]
    return [
        f"{file.name}: {counted(done.rows, 'label')}, {', '.join(said_first)}.",
        *(text.format(f"{count:,}") for count, text in said if count),
    ]


def audits_lines(shown: Audits) -> list[str]:
    """Return lines for people on the rule of audits, and on what was drawn so far."""
    if shown.rates is None or shown.rejected_rate is None:
        rule = "No points are drawn to be audited."
    else:
        rates = sorted(set(shown.rates.values()))
        admitted = (
            f"{rates[0]:.3g} of the admitted points"
            if len(rates) == 1
            else "of the admitted points " + ", ".join(f"{rate:.3g} of {name}" for name, rate in shown.rates.items())
        )
        rule = f"Points are drawn when first decided on: {admitted}, {shown.rejected_rate:.3g} of the rejected ones."
    counts = (
        ("admitted", shown.admitted_points, shown.admitted_drawn, shown.admitted_reviewed),
        ("rejected", shown.rejected_points, shown.rejected_drawn, shown.rejected_reviewed),
    )
    return [
        rule,
        *(
            f"So far, of {points:,} {outcome} points {drawn:,} were drawn, and labels of {reviewed:,} of these count."
            for outcome, points, drawn, reviewed in counts
            if points
        ),
        *(
            []
            if shown.labels_a_month is None
            else [f"The rule asks for about {shown.labels_a_month:,} labels in 30 days, by the traffic of the last 30."]
        ),
        *(
            ["What is rejected is never drawn: it is outside of what these labels promise, and they certify nothing."]
            if shown.rejected_rate == 0
            else []
        ),
    ]


def encoded_lines(file: Path, states: "OpenedStates") -> list[str]:
    """Return how much of a file was encoded and how much was cut, after how many of its texts were left out, if any."""
    shards, summary = states.shards, states.summary
    lines = []
    if summary is not None and summary.left_out:
        lines.append(f"{file.name}: texts left out because another file has them too: {summary.left_out:,}.")
    line = f"{file.name}: {counted(shards.document_count, 'document')}, {counted(shards.token_count, 'token state')}"
    if cut := shards.cut_count:
        are, were = ("is", "was") if cut == 1 else ("are", "were")
        line += f"; {cut:,} {are} longer than {shards.encoder.max_tokens:,} tokens, and {were} cut there"
    if summary is not None and summary.repeated:
        line += f"; {summary.repeated:,} {'repeats' if summary.repeated == 1 else 'repeat'} the text of another"
    return [*lines, f"{line}."]
