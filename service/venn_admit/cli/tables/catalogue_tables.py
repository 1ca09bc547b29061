"""What is stored of classifiers, as tables."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from venn_admit.advice import Step, Verb
from venn_admit.cli.advice import command, run
from venn_admit.cli.tables.rows import cell, table
from venn_admit.core.calibrators.arguments import setting_text
from venn_admit.core.method_names import VENN_ABERS
from venn_admit.core.split_names import HELD_OUT_SPLITS, Split
from venn_admit.flows.data.catalogue import Listed, ListedCalibrations, Shown
from venn_admit.report.wording import STATES, held_out_accuracy_text, waiting_text
from venn_admit.results import withheld_in
from venn_admit.store.calibrations.calibrators import Calibrator
from venn_admit.store.exemplars.classifiers import Classifier

if TYPE_CHECKING:
    from venn_admit_client.records.calibrations import CalibrationUse

# A table of more classes is not read by people; --json has all.
_MOST_CLASSES = 50


def classifiers_table(found: list[Listed]) -> RenderableType:
    """Return a table with a line per classifier."""
    columns = ("classifier", "classes", "train", "held-out", "scored", "labels", "jobs", "calibration")
    rows = [
        (
            one.classifier.name,
            one.classifier.class_count,
            *_counts(one),
            sum(one.counts.labelled.values()),
            one.counts.running_jobs,
            None if one.in_use is None else f"{one.in_use.calibration_id}: {_with_outcome(one.in_use)}",
        )
        for one in found
    ]
    return table(columns, rows)


def generations_table(found: list[Listed]) -> RenderableType:
    """Return a table with a line per generation of a classifier."""
    columns = ("generation", "name", "extractor", "D", "train", "held-out", "scored", "calibration")
    rows = [
        (
            str(one.classifier.generation),
            one.classifier.name,
            one.classifier.extractor or "not stated",
            None if one.classifier.knn is None else one.classifier.knn.dimension,
            *_counts(one),
            None if one.in_use is None else f"{one.in_use.calibration_id}{_outcome(one.in_use)}",
        )
        for one in found
    ]
    return table(columns, rows)


def _counts(one: Listed) -> tuple[int, int, int]:
    """Its exemplars to train, held out, and scored."""
    exemplars = one.counts.exemplars
    return exemplars[Split.TRAIN], sum(exemplars[split] for split in HELD_OUT_SPLITS), exemplars[Split.SCORED]


def show_tables(found: Shown) -> Iterator[RenderableType]:
    classifier = found.classifier
    knn = classifier.knn
    size = "logits only" if knn is None else f"D = {knn.dimension}, K = {knn.neighbour_count}"
    yield Text(
        f"{classifier.name}: {classifier.class_count} classes, {size}, seed {classifier.seed}; created "
        f"{cell(classifier.created_at)}."
    )
    if classifier.generation > 1 or not classifier.is_current or classifier.extractor is not None:
        yield Text(_generation(classifier))
    yield from _data(found)
    yield Text(_parameters(found))
    yield from _settings(found)
    if found.jobs:
        columns = ("job", "kind", "state", "rows done", "rows", "asked for", "finished")
        rows = [(str(j.job), j.kind, j.state, j.rows_done, j.rows, j.created_at, j.finished_at) for j in found.jobs]
        yield table(columns, rows, title="Newest jobs")
    yield from _decisions(found)


def not_calibrated(classifier: Classifier) -> Text:
    method = {} if classifier.knn is not None else {"method": VENN_ABERS}
    return Text(f"There is no calibration yet: {run(Verb.CALIBRATE, classifier=classifier.name, **method)}.")


def calibrations_tables(found: ListedCalibrations) -> Iterator[RenderableType]:
    if not found.settings:
        yield not_calibrated(found.classifier)
        return
    yield _settings_table(found.settings, date="retired")
    by_id = {setting.id: setting for setting in found.settings}
    columns = ("calibration", "setting", "made", "why", "mc", "vp", "state")
    rows = [
        (
            str(row.calibration),
            str(row.setting),
            row.created_at,
            row.reason,
            row.mc,
            row.vp,
            by_id[row.setting].state if row.is_current else STATES[row.state],
        )
        for row in found.calibrations
    ]
    yield table(columns, rows, title="Calibrations, the newest first")
    for row in found.withheld:
        why = withheld_in(row)
        step = Step(Verb.USE, classifier=found.classifier.name, calibration=row.calibration)
        yield Text(
            f"Calibration {row.calibration} was not put in use because {why}. `{command(step)}` puts it in use all the "
            "same."
        )
    yield _uses_table(found.uses)
    if found.looks:
        from venn_admit_client.records.certificates import looks_text

        newest = found.looks[0]
        yield Text(looks_text(newest.looks, newest.joint_confidence))


def _uses_table(uses: "Sequence[CalibrationUse]") -> RenderableType:
    """Return a table with a line per calibration that was in use."""
    columns = ("calibration", "in use since", "until", "put in use by", "why")
    rows = [(str(row.calibration), row.since, row.until, row.by, row.reason) for row in uses]
    return table(columns, rows, title="In use, the newest first")


def _with_outcome(setting: Calibrator) -> str:
    return f"{setting_text(setting.settings)}{_outcome(setting)}"


def _outcome(setting: Calibrator) -> str:
    """What became of a setting's certificate, if one was asked for."""
    return {None: "", True: ": certified", False: ": not certified"}[setting.is_certified]


def _generation(classifier: Classifier) -> str:
    standing = "current" if classifier.is_current else "not current"
    origin = "not stated" if classifier.extractor is None else cell(classifier.extractor)
    return f"Generation {classifier.generation}, {standing}; extractor {origin}."


def _data(found: Shown) -> Iterator[RenderableType]:
    holdings, names = found.holdings, found.classifier.class_names
    split_rows = []
    for split in Split:
        labelled = sum(holdings.labels[split])
        split_rows.append((split, labelled + holdings.unlabelled[split], labelled, holdings.documents[split]))
    yield table(("split", "exemplars", "labels", "documents"), split_rows, title="Data")
    if found.waiting:
        yield Text(waiting_text(found.waiting))
    shares = {split: holdings.shares(split) for split in Split}
    class_rows = [
        (name, *(_with_share(holdings.labels[split][number], shares[split][number]) for split in Split))
        for number, name in enumerate(names[:_MOST_CLASSES])
    ]
    yield table(("class", *Split), class_rows, title="Labels by class, and their share of the split")
    if len(names) > _MOST_CLASSES:
        yield Text(f"{len(names) - _MOST_CLASSES} more classes are left out here; --json has them all.")
    right = holdings.accuracy
    if right.network is not None:
        yield Text(held_out_accuracy_text(right.points, right.network, right.knn_points, right.knn))


def _with_share(count: int, share: float | None) -> str:
    return f"{count:,}" if share is None else f"{count:,} ({share:.1%})"


def _parameters(found: Shown) -> str:
    fitted = found.parameters
    if found.classifier.knn is None:
        return "With logits only, there is nothing to fit."
    if fitted is None:
        return f"There are no KNN parameters yet: {run(Verb.FIT, classifier=found.classifier.name)}."
    eta = f"eta {fitted.eta:.4g}, localizer's eta {fitted.eta_loc:.4g}"
    if fitted.origin == "given":
        return f"KNN parameters {fitted.knn_parameters}, given {cell(fitted.created_at)}: {eta}."
    return (
        f"KNN parameters {fitted.knn_parameters}, fitted {cell(fitted.created_at)}: {eta}; KNN and network differed on "
        f"{fitted.dev_discrepancies:,} of {fitted.dev:,} dev points."
    )


def _settings(found: Shown) -> Iterator[RenderableType]:
    if not found.settings:
        yield not_calibrated(found.classifier)
        return
    yield _settings_table([setting for setting in found.settings if setting.retired_at is None], date="made")
    for setting in found.settings:
        if setting.due_error is not None:
            yield Text(f"Setting {setting.id} could not be recalibrated: {setting.due_error}")
    in_use = found.settings[0]
    if in_use.is_in_use:
        settings = in_use.settings
        yield Text(
            f"Calibration {in_use.calibration_id} promises{in_use.promised.where}: "
            f"{in_use.promised.stated(settings.alpha, settings.confidence, settings.test, settings.certify)}."
        )
    for setting in found.settings:
        if setting.standing is not None and setting.retired_at is None:
            from venn_admit.report.standing import standing_text  # which brings NumPy

            classes = found.classifier.class_names
            ended = setting.chain_has_ended
            said = standing_text(setting.standing, classes, has_ended=ended, later=setting.later)
            yield Text(f"Calibration {setting.calibration_id}: {said}{_begins(found, setting)}")
    retired = sum(setting.retired_at is not None for setting in found.settings)
    if retired:
        listing = command(Step(Verb.LIST_CALIBRATIONS, classifier=found.classifier.name))
        yield Text(f"Retired settings: {retired}. `{listing}` lists them.")


def _begins(found: Shown, setting: Calibrator) -> str:
    """How the next chain begins, if it would admit clearly more."""
    standing = None if setting.standing is None else setting.standing.standing
    if standing is None or standing.following is None or setting.chain_has_ended or setting.later is not None:
        return ""
    of = found.classifier
    step = Step(Verb.CALIBRATE, classifier=of.name, settings=setting.settings, neighbour_count=of.neighbours)
    return f" `{command(step)}` begins it."


def _settings_table(settings: list[Calibrator], *, date: str) -> RenderableType:
    """Return a table with a line per setting; date: `made`, or `retired` beside a table that says what `made` would."""
    columns = ("setting", "state", "calibration", date, "settings")
    rows = [
        (
            str(setting.id),
            setting.state,
            str(setting.calibration_id),
            setting.calibrated_at if date == "made" else setting.retired_at,
            _described(setting),
        )
        for setting in settings
    ]
    return table(columns, rows, title="Settings")


def _described(setting: Calibrator) -> str:
    """All of a setting, and for what it is due."""
    from venn_admit_client.records.calibrations import q_bins_text, thresholds_text

    settings = setting.settings
    parts = [_with_outcome(setting), f"bins of q {q_bins_text(settings.q_bins)}"]
    if set(setting.thresholds) != {1 - settings.alpha}:
        parts.append(f"thresholds {thresholds_text(setting.thresholds)}")
    if setting.due_for is not None:
        parts.append(f"due for {setting.due_for}")
    return "; ".join(parts)


def _decisions(found: Shown) -> Iterator[RenderableType]:
    if not found.decisions:
        return
    names = found.classifier.class_names
    columns = ("decision", "id", "predicted", "lower probability", "outcome", "calibration", "decided")
    rows = [
        (
            str(row.decision_id),
            row.external_id,
            names[row.predicted],
            None if row.lower is None else f"{row.lower:.4f}",
            "admitted" if row.reason is None else row.reason,
            str(row.calibration),
            row.created_at,
        )
        for row in found.decisions
    ]
    yield table(columns, rows, title="Last decisions")
    total = sum(found.outcomes.values())
    rejected = ", ".join(f"{reason} {rows:,}" for reason, rows in found.outcomes.most_common() if reason is not None)
    said = f"Rows decided last: {total:,}; admitted: {found.outcomes[None]:,}"
    yield Text(f"{said}; rejected: {rejected}." if rejected else f"{said}.")
