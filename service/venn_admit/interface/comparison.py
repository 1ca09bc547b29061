"""What comparing settings returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from venn_admit.core.calibrators.arguments import json_settings
from venn_admit.core.calibrators.settings import MethodSettings
from venn_admit.core.evaluation.measures import Admission
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.interface.reports import text_of
from venn_admit.report.evaluation.glance import EACH_CLASS, MOST_SINGLE_CLASSES, NAME_WIDTH, WORST_CLASS
from venn_admit.report.evaluation.table import Cell, Column, EvaluationTable, Row
from venn_admit.report.evaluation.terminal import table_view
from venn_admit.report.evaluation.wording import PREDICTED, TRUE, interval_text, share_text
from venn_admit.report.what_if.settings import SettingsTried
from venn_admit_client.records import q_bins_text

if TYPE_CHECKING:
    from venn_admit.flows.calibration.compare import ComparedSettings


@dataclass(frozen=True, slots=True)
class ClassShare:
    """How much is right of what is admitted of a class.

    Attributes:
        label: The class.
        admitted: How many of its points are admitted.
        right: How many of these are right.
        share: The share right; None if nothing is admitted.
        interval: The 95 % interval of the share.
    """

    label: str
    admitted: int
    right: int
    share: float | None
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class SettingOutcome:
    """What a setting admits of split mc by cross-fitting, plain, and how much of it is right.

    Attributes:
        settings: The setting, as arguments of `Classifier.calibrate`.
        admitted_share: The share of mc that is admitted.
        admitted_interval: The 95 % interval of that share.
        per_true_class: The same by class, as labelled.
        per_predicted_class: The same by class, as predicted.
        every_class_reaches: Whether every class is estimated to be right at a share of 1 - alpha or more: predicted
            classes in a comparison, those of either kind in `what_if_settings`; None if nothing is admitted.
    """

    settings: Mapping[str, Any]
    admitted_share: float
    admitted_interval: tuple[float, float]
    per_true_class: tuple[ClassShare, ...]
    per_predicted_class: tuple[ClassShare, ...]
    every_class_reaches: bool | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Settings to choose from before split vp is looked at. As text, a table with the proposal.

    The best of many looks better on mc than it is, so judge what you choose by data that had no part in the choice.

    Attributes:
        alpha: The error level.
        mc_points: Points of split mc.
        judged_points: Points of split mc that were decided on: all, or a random sample of about ten thousand.
        documents: Documents of these; as many as points, if each stands alone.
        outcomes: What each setting gives.
        left_out: What could not be computed, with the reason.
        proposal: The outcome that admits most, of those in which every predicted class reaches 1 - alpha; None if they
            admit less than a tenth.
    """

    alpha: Decimal
    mc_points: int
    judged_points: int
    documents: int
    outcomes: tuple[SettingOutcome, ...]
    left_out: Mapping[str, str]
    proposal: SettingOutcome | None

    def __str__(self) -> str:
        return _comparison_text(self)


class SettingsWhatIf:
    """What the setting in use would admit with one part of it varied. As text, a table."""

    def __init__(self, found: SettingsTried) -> None:
        """Wrap what a flow found."""
        self._found = found

    def __str__(self) -> str:
        from venn_admit.report.what_if.settings import settings_table

        return text_of(table_view(settings_table(self._found)))

    @property
    def outcomes(self) -> tuple[SettingOutcome, ...]:
        """What each value admits of split mc by cross-fitting, and how much of it is right, in the order of values."""
        return tuple(
            _outcome(one.settings, one.admission, one.every_class_reaches, self._found.class_names)
            for one in self._found.tried
        )

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit what-if --json` prints it."""
        from venn_admit.report.what_if.settings import settings_payload

        return settings_payload(self._found)

    def write(self, folder: str | Path) -> Path:
        """Write a picture, and the figures as JSON, into a folder; return the path of the picture.

        Raises:
            InvalidInputError: The folder cannot be written.
        """
        from venn_admit.flows.reports.folders import write_settings_tried

        return write_settings_tried(Path(folder), self._found)


def comparison_of(found: "ComparedSettings") -> Comparison:
    """Return a comparison in terms of class names and of the arguments of `Classifier.calibrate`."""
    names, proposed = found.classifier.class_names, found.proposal()
    outcomes = [
        _outcome(one.settings, one.admission, one.every_predicted_class_reaches(found.alpha), names)
        for one in found.compared
    ]
    return Comparison(
        alpha=found.alpha,
        mc_points=found.point_count,
        judged_points=found.judged_count,
        documents=found.document_count,
        outcomes=tuple(outcomes),
        left_out=dict(found.left_out),
        proposal=None if proposed is None else outcomes[found.compared.index(proposed)],
    )


def _outcome(
    settings: MethodSettings, admission: Admission, every_class_reaches: bool | None, names: Sequence[str]
) -> SettingOutcome:
    return SettingOutcome(
        settings=_arguments(settings),
        admitted_share=admission.admitted.share,
        admitted_interval=admission.admitted.interval,
        per_true_class=_class_shares(admission.right.per_true_class, names),
        per_predicted_class=_class_shares(admission.right.per_predicted_class, names),
        every_class_reaches=every_class_reaches,
    )


def _arguments(settings: MethodSettings) -> dict[str, Any]:
    shared = {"method": settings.method, "alpha": str(settings.alpha), "q_bins": settings.q_bins}
    return shared | json_settings(settings, "delta", "kappa", "score")


def _class_shares(tallies: Sequence[Tally], names: Sequence[str]) -> tuple[ClassShare, ...]:
    return tuple(
        ClassShare(name, tally.count, tally.correct, tally.share if tally.count else None, tally.interval)
        for name, tally in zip(names, tallies, strict=True)
    )


def _comparison_text(found: Comparison) -> str:
    """Return a row for each setting that admits anything, and the proposal."""
    admitting = [one for one in found.outcomes if one.admitted_share]
    notes = [*(f"Left out: {what}: {why}." for what, why in found.left_out.items()), _proposal(found)]
    if none := len(found.outcomes) - len(admitting):
        notes.insert(0, f"{none} setting{' admits' if none == 1 else 's admit'} nothing.")
    if not admitting:
        return text_of(Group(*map(Text, notes)))
    table = EvaluationTable(
        f"What settings admit of {found.judged_points:,} points of mc by cross-fitting, and the share right of it "
        f"(alpha {found.alpha})",
        ("method", "setting"),
        _columns(admitting[0]),
        tuple(Row((str(one.settings["method"]), _setting(one)), _cells(one)) for one in admitting),
        tuple((note,) for note in notes),
    )
    return text_of(table_view(table))


def _setting(one: SettingOutcome) -> str:
    settings = one.settings
    own = f"kappa {settings['kappa']:,}" if "kappa" in settings else f"score {settings['score']}"
    return f"{own}, q {q_bins_text(settings['q_bins'])}"


def _columns(one: SettingOutcome) -> tuple[Column, ...]:
    columns = [Column("admitted")]
    for kind, shares in ((TRUE, one.per_true_class), (PREDICTED, one.per_predicted_class)):
        if len(shares) <= MOST_SINGLE_CLASSES:
            columns += [Column(share.label, EACH_CLASS[kind], NAME_WIDTH) for share in shares]
        else:
            columns.append(Column("the lowest", WORST_CLASS[kind]))
    return tuple(columns)


def _cells(one: SettingOutcome) -> tuple[Cell, ...]:
    cells = [Cell(share_text(one.admitted_share), interval_text(one.admitted_interval))]
    for shares in (one.per_true_class, one.per_predicted_class):
        if len(shares) <= MOST_SINGLE_CLASSES:
            cells += [_cell(share) for share in shares]
        else:
            known = [share for share in shares if share.share is not None]
            lowest = min(known, key=lambda share: share.share or 0, default=None)
            cells.append(Cell() if lowest is None else _cell(lowest, f" {lowest.label}"))
    return tuple(cells)


def _cell(share: ClassShare, beside: str = "") -> Cell:
    return Cell() if share.share is None else Cell(share_text(share.share), f"{interval_text(share.interval)}{beside}")


def _proposal(found: Comparison) -> str:
    target = 1 - found.alpha
    if found.proposal is None:
        return f"No setting in which every predicted class reaches {target} admits a tenth, so none is proposed."
    return (
        f"Among those in which every predicted class reaches {target}, {found.proposal.settings['method']} with "
        f"{_setting(found.proposal)} admits most, {share_text(found.proposal.admitted_share)}: "
        "classifier.calibrate(**comparison.proposal.settings)."
    )
