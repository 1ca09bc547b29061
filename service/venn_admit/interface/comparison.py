"""What comparing settings returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from venn_admit.core.calibrators.arguments import arguments_for, json_settings
from venn_admit.core.calibrators.settings import MethodSettings
from venn_admit.core.evaluation.measures import Admission
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.interface.reports import figures_of, text_of
from venn_admit.report.evaluation.terminal import table_view
from venn_admit.report.what_if.compared import ComparedSettings, compared_table, default_text, setting_name
from venn_admit.report.what_if.settings import SettingsTried
from venn_admit.report.wording import share_text
from venn_admit_client.members import Told


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
        division_shares: In a comparison, under Venn-ADMIT, the share of a fifth of mc that each of ten divisions of the
            rest admits by plain probabilities: their range is owed to chance. Empty otherwise.
    """

    settings: Mapping[str, Any]
    admitted_share: float
    admitted_interval: tuple[float, float]
    per_true_class: tuple[ClassShare, ...]
    per_predicted_class: tuple[ClassShare, ...]
    every_class_reaches: bool | None
    division_shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ForetoldOutcome:
    """What the default or a certificate is expected to admit, by points whose labels are no evidence.

    Attributes:
        settings: The setting, as arguments of `Classifier.calibrate`.
        promises: What it is expected to promise: `both`, `predicted`, `average`, or `none` if nothing would be
            certified, so that everything would be rejected.
        admitted_share: The share of these points that is admitted.
        admitted_interval: The 95 % interval of that share.
        per_true_class: How much is right, by class, as labelled.
        per_predicted_class: The same by class, as predicted.
    """

    settings: Mapping[str, Any]
    promises: str
    admitted_share: float
    admitted_interval: tuple[float, float]
    per_true_class: tuple[ClassShare, ...]
    per_predicted_class: tuple[ClassShare, ...]


@dataclass(frozen=True, slots=True)
class Comparison(Told):
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
        foretold: What the default is expected to admit, then certificates of both kinds of classes and of predicted
            ones; none if too few points propose.
        proposing_points: The points that this rests on.
    """

    alpha: Decimal
    mc_points: int
    judged_points: int
    documents: int
    outcomes: tuple[SettingOutcome, ...] = field(repr=False)
    left_out: Mapping[str, str]
    proposal: SettingOutcome | None
    foretold: tuple[ForetoldOutcome, ...] = field(repr=False)
    proposing_points: int
    _found: ComparedSettings = field(repr=False, compare=False)

    def __str__(self) -> str:
        said = default_text(self._found)
        by_default = [] if said is None else [Text(f"{said}classifier.calibrate(dry_run=True).")]
        return text_of(Group(compared_table(self._found), *by_default, Text(_proposal(self._found))))


class SettingsWhatIf(Told):
    """What the setting in use would admit with one part of it varied. As text, a table."""

    def __init__(self, found: SettingsTried) -> None:
        """Wrap what a flow found."""
        self._found = found

    def __repr__(self) -> str:
        return (
            f"<SettingsWhatIf of {self._found.classifier!r}: {len(self._found.tried)} values of {self._found.varied}>"
        )

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

        return figures_of(settings_payload(self._found))

    def write(self, folder: str | Path) -> Path:
        """Write a picture, and the figures as JSON, into a folder; return the path of the picture.

        Raises:
            InvalidInputError: The folder cannot be written.
        """
        from venn_admit.flows.reports.folders import write_settings_tried

        return write_settings_tried(Path(folder), self._found)


def comparison_of(found: ComparedSettings) -> Comparison:
    """Return a comparison in terms of class names and of the arguments of `Classifier.calibrate`."""
    names, proposed = found.class_names, found.proposal()
    outcomes = [
        _outcome(
            one.settings, one.admission, one.every_predicted_class_reaches(found.alpha), names, one.division_shares
        )
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
        foretold=tuple(
            ForetoldOutcome(
                settings=arguments_for(one.settings, found.neighbour_count),
                promises=str(one.promised),
                admitted_share=one.admission.admitted.share,
                admitted_interval=one.admission.admitted.interval,
                per_true_class=_class_shares(one.admission.right.per_true_class, names),
                per_predicted_class=_class_shares(one.admission.right.per_predicted_class, names),
            )
            for one in found.foretold
        ),
        proposing_points=found.proposing_count,
        _found=found,
    )


def _outcome(
    settings: MethodSettings,
    admission: Admission,
    every_class_reaches: bool | None,
    names: Sequence[str],
    division_shares: tuple[float, ...] = (),
) -> SettingOutcome:
    return SettingOutcome(
        settings=_arguments(settings),
        admitted_share=admission.admitted.share,
        admitted_interval=admission.admitted.interval,
        per_true_class=_class_shares(admission.right.per_true_class, names),
        per_predicted_class=_class_shares(admission.right.per_predicted_class, names),
        every_class_reaches=every_class_reaches,
        division_shares=division_shares,
    )


def _arguments(settings: MethodSettings) -> dict[str, Any]:
    shared = {"method": settings.method, "alpha": str(settings.alpha), "q_bins": settings.q_bins}
    return shared | json_settings(settings, "delta", "kappa", "score")


def _class_shares(tallies: Sequence[Tally], names: Sequence[str]) -> tuple[ClassShare, ...]:
    return tuple(
        ClassShare(name, tally.count, tally.correct, tally.share if tally.count else None, tally.interval)
        for name, tally in zip(names, tallies, strict=True)
    )


def _proposal(found: ComparedSettings) -> str:
    target, proposed = 1 - found.alpha, found.proposal()
    if proposed is None:
        return f"No setting in which every predicted class reaches {target} admits a tenth, so none is proposed."
    return (
        f"Among those in which every predicted class reaches {target}, {proposed.settings.method} with "
        f"{setting_name(proposed, found)} admits most, {share_text(proposed.admission.admitted.share)}: "
        "classifier.calibrate(**comparison.proposal.settings)."
    )
