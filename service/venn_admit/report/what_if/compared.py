"""What a comparison shows: what each setting admits of split mc, how much of it is right, and what to do next."""

from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from venn_admit.advice import Render, Step, Verb
from venn_admit.core.calibrators.arguments import asked_json, read_settings, setting_words
from venn_admit.core.calibrators.certification import Kind
from venn_admit.core.calibrators.promises import AskedPromise, Promised, promised
from venn_admit.core.calibrators.settings import METHOD_NAMES, CalibratorSettings, MethodSettings, VennAbersSettings
from venn_admit.core.calibrators.usable_bands import NEARLY_NOTHING
from venn_admit.core.comparison.divisions import DIVISIONS, mean_and_range
from venn_admit.core.evaluation.measures import Admission
from venn_admit.core.method_names import DEFAULT_METHOD
from venn_admit.report.evaluation.glance import admission_cells, admission_columns, admission_payload, intervals_text
from venn_admit.report.evaluation.table import Cell, Column, EvaluationTable, Note, Row
from venn_admit.report.evaluation.terminal import table_view
from venn_admit.report.evaluation.wording import interval_text, note_text
from venn_admit.report.wording import share_text


@dataclass(frozen=True, slots=True)
class ComparedSetting:
    """A setting, and what it admits of mc by cross-fitting.

    division_shares: of `core.comparison.divisions`, for Venn-ADMIT; otherwise none.
    """

    settings: MethodSettings
    admission: Admission
    division_shares: tuple[float, ...]

    def every_predicted_class_reaches(self, alpha: Decimal) -> bool | None:
        """Whether no predicted class is estimated to be right less often than 1 - alpha; None without any admitted."""
        return self.admission.every_predicted_class_reaches(alpha) if self.admission.admitted.correct else None


@dataclass(frozen=True, slots=True)
class ForetoldSetting:
    """A setting, what it is expected to admit of the points that propose, and the kinds of classes it then promises.

    certified: None if it is expected to certify nothing.
    """

    settings: VennAbersSettings
    admission: Admission
    certified: tuple[Kind, ...] | None

    @property
    def promised(self) -> Promised:
        """What it is expected to promise; nothing if everything is rejected."""
        if self.certified is None and self.settings.promise is not AskedPromise.STRONGEST:
            return Promised.NONE
        return promised(self.certified, self.settings.promise)

    @property
    def name(self) -> str:
        """What is asked for; of the strongest promise, what it is expected to be."""
        if self.settings.promise is AskedPromise.STRONGEST or self.settings.certify is None:
            return f"strongest: {self.promised}"
        return f"certify {','.join(map(str, self.settings.certify))}"


@dataclass(frozen=True, slots=True)
class ComparedSettings:
    """Settings to choose from, in the order of `CrossFitted`.

    neighbour_count: K; None with logits only. point_count: of mc. judged_count, document_count: points that are decided
    on, and their documents. left_out: what could not be computed, each with the reason in words. foretold: the default
    first, then certificates of both kinds of classes and of predicted ones; none if too few points propose.
    proposing_count, proposing_documents: those that do.
    """

    classifier: str
    class_names: tuple[str, ...]
    neighbour_count: int | None
    alpha: Decimal
    point_count: int
    judged_count: int
    document_count: int
    compared: tuple[ComparedSetting, ...]
    left_out: tuple[tuple[str, str], ...]
    foretold: tuple[ForetoldSetting, ...] = ()
    proposing_count: int = 0
    proposing_documents: int = 0

    @property
    def pointwise(self) -> list[ComparedSetting]:
        """Those with the pointwise promise."""
        return [one for one in self.compared if not one.settings.has_policy]

    def proposal(self) -> ComparedSetting | None:
        """Return the setting that admits most of those in which every predicted class is estimated to reach 1 - alpha.

        It has the pointwise promise. The first, if several admit as much; None if they admit next to nothing.
        """
        holding = [
            one
            for one in self.pointwise
            if one.every_predicted_class_reaches(self.alpha) and one.admission.admitted.share >= NEARLY_NOTHING
        ]
        return max(holding, key=lambda one: one.admission.admitted.correct, default=None)

    def step(self, settings: MethodSettings, **more: Any) -> Step:
        """Return the step that calibrates under settings; more: its other arguments."""
        known = {"classifier": self.classifier, "settings": settings, "neighbour_count": self.neighbour_count}
        return Step(Verb.CALIBRATE, **known, **more)


def compared_table(found: ComparedSettings, *, rest: str | None = None) -> RenderableType:
    """Return what is foretold, a row for each setting that admits anything, and notes.

    rest: how the rest is shown, if only those that matter have a row.
    """
    admitting = [one for one in found.compared if one.admission.admitted.correct]
    shown = admitting if rest is None else settings_that_matter(found)
    foretold = [_foretold(found)] if found.foretold else []
    if not admitting:
        return Group(*foretold, *(Text("".join(map(note_text, note))) for note in _notes(found)), "")
    names = found.class_names
    table = table_view(
        EvaluationTable(
            f"What settings admit of split mc by cross-fitting, and the share right of it (alpha {found.alpha})",
            ("method", "setting"),
            (*admission_columns(names), Column("divided")),
            tuple(
                Row(
                    (one.settings.method, setting_name(one, found)),
                    (*admission_cells(one.admission, names, found.alpha), _divisions(one)),
                )
                for one in shown
            ),
            (*_notes(found), *_hidden(len(admitting) - len(shown), rest)),
        )
    )
    return Group(*foretold, table)


def _foretold(found: ComparedSettings) -> RenderableType:
    """A row for the default, and one for each certificate, with what they are expected to admit."""
    names = found.class_names
    documents = (
        f", {found.proposing_documents:,} documents" if found.proposing_documents < found.proposing_count else ""
    )
    return table_view(
        EvaluationTable(
            f"What is foretold of the default and of certificates (alpha {found.alpha})",
            ("method", "setting"),
            admission_columns(names),
            tuple(
                Row((one.settings.method, one.name), admission_cells(one.admission, names, found.alpha))
                for one in found.foretold
            ),
            (
                (
                    f"Foretold from the {found.proposing_count:,} points that propose{documents}, whose labels are no "
                    "evidence: looking here takes nothing from a certificate. About as many calibrations admit less as "
                    "admit more.",
                ),
            ),
        )
    )


def settings_that_matter(found: ComparedSettings) -> list[ComparedSetting]:
    """Return the setting that is proposed, and those of each method and kind of score that admit most."""
    admitting = [one for one in found.compared if one.admission.admitted.correct]
    most: dict[tuple[str, object, bool, bool], ComparedSetting] = {}
    for one in admitting:
        kind = (
            one.settings.method,
            getattr(one.settings, "score", None),
            one.settings.has_policy,
            one.settings.undivided,
        )
        if kind not in most or one.admission.admitted.correct > most[kind].admission.admitted.correct:
            most[kind] = one
    wanted = [*most.values(), found.proposal()]
    return [one for one in admitting if any(one is each for each in wanted)]


def _divisions(one: ComparedSetting) -> Cell:
    mean, least, most = mean_and_range(one.division_shares)
    return Cell(share_text(mean), interval_text((least, most))) if one.division_shares else Cell()


def _hidden(count: int, rest: str | None) -> tuple[Note, ...]:
    return ((f"{count} other setting{'' if count == 1 else 's'}: {rest}.",),) if count else ()


def compared_payload(found: ComparedSettings, render: Render) -> dict[str, Any]:
    """The same for programs, with every setting and every class."""
    proposed = found.proposal()

    def payload(one: ComparedSetting | ForetoldSetting) -> dict[str, Any]:
        return {
            **asked_json(one.settings),
            "q_bins": list(one.settings.q_bins),
            **admission_payload(one.admission, found.class_names),
            "command": render(found.step(one.settings)),
        }

    return {
        "classifier": found.classifier,
        "alpha": str(found.alpha),
        "mc": found.point_count,
        "judged": found.judged_count,
        "documents": found.document_count,
        "settings": [
            {
                **payload(one),
                "division_shares": list(one.division_shares),
                "every_class_reaches": one.every_predicted_class_reaches(found.alpha),
            }
            for one in found.compared
        ],
        "proposing": found.proposing_count,
        "foretold": [{**payload(one), "promises": str(one.promised)} for one in found.foretold],
        "left_out": [{"what": what, "why": why} for what, why in found.left_out],
        "command": None if proposed is None else render(found.step(proposed.settings)),
    }


def next_lines(found: ComparedSettings, render: Render) -> list[str]:
    """Return which command to run next, and why the choice is not the last word."""
    proposed, target = found.proposal(), 1 - found.alpha
    by_default = _by_default(found, render)
    average = max(
        (one for one in found.compared if one.settings.has_policy),
        key=lambda one: one.admission.admitted.correct,
        default=None,
    )
    other = (
        [f"With the average promise instead, {_figures(average, found)}: `{render(found.step(average.settings))}`."]
        if average is not None and average.admission.admitted.correct
        else []
    )
    if proposed is None:
        most = max(found.pointwise, key=lambda one: one.admission.admitted.correct)
        return [
            by_default,
            f"No pointwise setting is proposed: none with every predicted class estimated at {target} or more admits "
            f"a tenth; most is admitted by {_figures(most, found)}. Ask for a larger alpha, or ingest more held-out "
            "data.",
            *other,
        ]
    if len(found.pointwise) == 1:
        alone = f"Pointwise, {_figures(proposed, found)}: `{render(found.step(proposed.settings))}`."
        return [by_default, alone, *other]
    taken = (
        f"Pointwise, among those with no predicted class estimated below {target}, most is admitted by "
        f"{_figures(proposed, found)}: `{render(found.step(proposed.settings))}`."
    )
    if isinstance(proposed.settings, CalibratorSettings) and len(proposed.settings.q_bins) == 1:
        taken += " One bin ignores q, so that inputs unlike the calibration data are less likely to be rejected."
    return [
        by_default,
        taken,
        *other,
        f"The best of {len(found.pointwise)} settings looks better on mc than it is. That is why vp exists, of which "
        "nothing was read here: choose by this table, and then judge the choice by data that had no part in it.",
    ]


def _by_default(found: ComparedSettings, render: Render) -> str:
    dry_run = f"`{render(_default_step(found))}` shows what it certifies, and stores nothing."
    said = default_text(found)
    return (
        f"The default cannot be foretold, because too few points propose: {dry_run}" if said is None else said + dry_run
    )


def default_text(found: ComparedSettings) -> str | None:
    """Return what the default is expected to promise and to admit, for a command to follow; None if it is not known."""
    if not found.foretold:
        return None
    default = found.foretold[0]
    certifies = "certifies nothing, or too little, so the average promise takes its place"
    if default.certified is not None:
        certifies = f"certifies {' and '.join(map(str, default.certified))} classes"
    figures = _with_lowest(share_text(default.admission.admitted.share), default.admission, found)
    return f"It is foretold that the default {certifies}, {figures}: "


def _figures(one: ComparedSetting, found: ComparedSettings) -> str:
    """A setting, the share that it admits, and the predicted class that is right least often."""
    name, share = setting_name(one, found), share_text(one.admission.admitted.share)
    return _with_lowest(f"{METHOD_NAMES[one.settings.method]} with {name}, {share}", one.admission, found)


def _with_lowest(said: str, admission: Admission, found: ComparedSettings) -> str:
    shares = zip(found.class_names, admission.right.per_predicted_class, strict=True)
    lowest = min(((name, tally) for name, tally in shares if tally.count), key=lambda of: of[1].share, default=None)
    return said if lowest is None else f"{said}, of predicted {lowest[0]} {share_text(lowest[1].share)} right"


def setting_name(one: ComparedSetting, found: ComparedSettings) -> str:
    """Return what tells a setting from the others of its method."""
    settings, edges = one.settings, one.settings.q_bins
    every = found.neighbour_count is not None and len(edges) == found.neighbour_count + 1
    bins = "every q" if every else f"q {','.join(map(str, edges))}"
    words = setting_words(settings, "kappa", "score")
    promise = words.pop("promise", None)  # with it, there is one bin
    own = ", ".join(f"{name} {text}" for name, text in words.items())
    return f"{own}, {promise or ('one bin' if len(edges) == 1 else bins)}"


def _default_step(found: ComparedSettings) -> Step:
    asked = {"alpha": found.alpha}
    classes, count = len(found.class_names), found.neighbour_count
    settings = read_settings(DEFAULT_METHOD, asked, class_count=classes, neighbour_count=count)
    return found.step(settings, dry_run=True)


def _notes(found: ComparedSettings) -> tuple[Note, ...]:
    none = [one for one in found.compared if not one.admission.admitted.correct]
    by_method = [
        f"{METHOD_NAMES[method]} with {'; '.join(setting_name(one, found) for one in of_method)}"
        for method, of_method in groupby(none, key=lambda one: one.settings.method)
    ]
    weights = " All decide as by default: Venn-ADMIT by weighted probabilities, undivided by plain ones, as Venn-Abers."
    if found.neighbour_count is None:
        weights = ""
    intervals = intervals_text(found.point_count, found.judged_count, found.document_count)
    return (
        (
            f"{intervals}, for the folds as they fell: with other calibration data a setting whose shares right lie "
            f"near the target may admit much more or less.{weights}",
        ),
        *_of_divisions(found),
        *((f"Nothing is admitted by {settings}.",) for settings in by_method),
        *((f"Left out: {what}: {why}.",) for what, why in found.left_out),
    )


def _of_divisions(found: ComparedSettings) -> tuple[Note, ...]:
    if not any(one.division_shares for one in found.compared):
        return ()
    return (
        (
            f"Divided: how much of a fifth of mc Venn-ADMIT admits as the rest is halved by chance {DIVISIONS} times: "
            "mean and range, by plain probabilities. A wide range means that the share owes much to chance.",
        ),
    )
