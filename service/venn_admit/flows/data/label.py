"""Labels as they arrive, for exemplars that are stored: events in a ledger, and what follows from them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection, Engine

from venn_admit.core.split_names import HELD_OUT_SPLITS, Split
from venn_admit.core.splits import hash_keys
from venn_admit.errors import Code, ConflictError, InvalidInputError, NotFoundError
from venn_admit.files.label_sources import LabelSource
from venn_admit.files.labels import LabelRows, LabelRules
from venn_admit.flows.data.placing import Placement, document_keys
from venn_admit.flows.data.reached import require_sample
from venn_admit.store.database.engine import transaction
from venn_admit.store.exemplars import classifiers, exemplars, labels, support_changes
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.copies import StoredCopy
from venn_admit.store.exemplars.labels import LabelEvent, LabelledExemplar
from venn_admit.store.exemplars.support_changes import SupportChange
from venn_admit.store.work import recalibrations
from venn_admit_client.records.data import Labelling


def label(
    engine: Engine,
    name: str,
    source: LabelSource,
    *,
    selection: str,
    retract: bool,
    join_train: bool = False,
    completed: Callable[[Connection, Classifier, LabelRows], LabelRows] = lambda _connection, _classifier, rows: rows,
    on_stored: Callable[[Connection, Labelling], object] = lambda *_: None,
) -> Labelling:
    """Record labels: all of them, or none if one of them is refused.

    A random label makes an exemplar that was stored to be scored calibrate, in the split that its hash gives, as
    if it had been ingested, beside copies that calibrate already. So does a review of one that the smallest rate of the
    rule of audits would have drawn too: with these, what was drawn is a random sample. A selected label is kept and
    never calibrates. The latest label counts. Once an exemplar calibrates or trains, a correction of any selection
    changes its label alone; a label taken back ends it.

    A label is of an exemplar, however it is seen: it is recorded for each generation of the classifier that has one of
    this id, and each puts it to use by itself.

    Args:
        selection: The selection of rows for which the source names none.
        retract: Whether an empty label takes the stored one back.
        join_train: Whether selected exemplars become training exemplars of the KNN.
        completed: What is recorded in the place of the rows that were read, once nobody else can record labels.

    Raises:
        InvalidInputError: The source is invalid, or exemplars are to train where there are no vectors.
        NotFoundError: An id is stored for no generation of the classifier.
        ConflictError: An exemplar, or a copy of it, calibrates and would train; or a label of a review comes without
            those of the other drawn points of its document, which count together; or random labels are of points alone
            that a stage of a cascade passed on.
    """
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        if join_train:
            classifiers.require_vectors(classifier, "training")
        rows = source.read(LabelRules(classifier.class_names, selection, retract))
        # As ingestion does: who is stored, and in which split, stays so until this is done.
        every = exemplars.lock_ingestion_of_all(connection, classifier)
        classifier = classifiers.usable(connection, classifier)
        every = [one for one in every if one.deleting_since is None]
        rows = completed(connection, classifier, rows)
        placements = [Placement(connection, one, Split.TRAIN if join_train else None) for one in every]
        stored = {one.id: labels.by_external_id(connection, one, rows.external_ids) for one in every}
        changes = [
            _changes(
                one,
                rows,
                stored[one.id],
                source,
                placement,
                join_train=join_train,
                named=stored[classifier.id],
                is_named=one.id == classifier.id,
            )
            for one, placement in zip(every, placements, strict=True)
        ]
        for one in changes:
            _require_whole_documents(connection, one, source)
            require_sample(connection, one.classifier, _joining_at_random(one), source)
        requests = sum(map(partial(_record, connection, source), changes, placements))
        primary = _primary(classifier, changes, rows, source)
        counts = _counts(rows, primary, requests, sum(len(one.events) for one in changes))
        on_stored(connection, counts)
    return counts


@dataclass(frozen=True, slots=True)
class _Changes:
    """What labels change in one generation, by external id. stored: those of their exemplars that it has."""

    classifier: Classifier
    stored: dict[str, LabelledExemplar]
    events: dict[str, LabelEvent]


def _changes(
    classifier: Classifier,
    rows: LabelRows,
    stored: dict[str, LabelledExemplar],
    source: LabelSource,
    placement: Placement,
    *,
    join_train: bool,
    named: dict[str, LabelledExemplar],
    is_named: bool,
) -> _Changes:
    """What labels change in a generation that has these exemplars; named: those of the one that they were given to."""
    given = {
        external_id: (
            row,
            None if number < 0 else number,
            _selection(selection, stored[external_id], named.get(external_id), is_named=is_named),
        )
        for row, (external_id, number, selection) in enumerate(
            zip(rows.external_ids, rows.labels.tolist(), rows.selections, strict=True)
        )
        if external_id in stored
    }
    joining = [
        external_id
        for external_id, (_, wanted, selection) in given.items()
        if stored[external_id].split == Split.SCORED
        and (join_train or (wanted is not None and _calibrates(selection, stored[external_id])))
    ]
    placed = placement.place(
        joining,
        [stored[external_id].document_id for external_id in joining],
        [stored[external_id].point_digest for external_id in joining],
    )
    keys = document_keys(joining, [stored[external_id].document_id for external_id in joining])
    placement.note_new(keys)
    splits = dict(zip(joining, placed.splits, strict=True))
    opposed = {joining[row]: copy for row, copy in placed.opposed.items()}
    events = {}
    for external_id, (row, wanted, selection) in given.items():
        exemplar = stored[external_id]
        if join_train:
            where = f"{source}: row {row}, id {external_id!r}"
            _check_may_train(classifier, exemplar, opposed.get(external_id), wanted, selection, where)
        split = Split.SCORED if wanted is None else splits.get(external_id, exemplar.split)
        is_first = selection == "review" and wanted is not None and not exemplar.is_reviewed
        if is_first or (wanted, split) != (exemplar.label, exemplar.split):
            events[external_id] = LabelEvent(exemplar.id, wanted, selection, split)
    return _Changes(classifier, stored, _scattered(classifier, stored, events))


def _scattered(
    classifier: Classifier, stored: dict[str, LabelledExemplar], events: dict[str, LabelEvent]
) -> dict[str, LabelEvent]:
    """The events by whole documents in the order of a hash, in which they get their numbers.

    Monitors count in the order of these, and rows of a file are often sorted by what their labels say.
    """
    keys = document_keys(list(events), [stored[external_id].document_id for external_id in events])
    hashes = hash_keys(keys, seed=classifier.seed, purpose="label order").tolist()
    ranked = sorted(zip(hashes, keys, events, strict=True))
    return {external_id: events[external_id] for _, _, external_id in ranked}


def _selection(selection: str, exemplar: LabelledExemplar, named: LabelledExemplar | None, *, is_named: bool) -> str:
    """How a label was chosen in a generation: only a point that was drawn there can be reviewed.

    Drawn points of a document are labelled together, which only who names a generation can see to. What the smallest
    rate of the named one draws is a random sample for the others, as it is when they take its labels over.
    """
    if selection == "review" and not is_named and named is not None and named.is_sampled:
        return "random"
    can_be_reviewed = exemplar.is_drawn and (is_named or exemplar.document_id is None)
    return "selected" if selection == "review" and not can_be_reviewed else selection


def _calibrates(selection: str, exemplar: LabelledExemplar) -> bool:
    return selection == "random" or (selection == "review" and exemplar.is_sampled)


def _require_whole_documents(connection: Connection, changes: _Changes, source: LabelSource) -> None:
    """Raise ConflictError where a review leaves out drawn points of a document, whose later labels would not count."""
    counting = {one: event for one, event in changes.events.items() if event.label is not None}
    reviewed = [changes.stored[one] for one, event in counting.items() if event.selection == "review"]
    documents = {one.document_id for one in reviewed if one.document_id is not None and not one.is_reviewed}
    if documents:
        ids = [changes.stored[one].id for one, event in counting.items() if event.selection != "selected"]
        beside = labels.drawn_beside(connection, changes.classifier, sorted(documents), ids)
        if beside is not None:
            raise ConflictError(
                f"{source}: exemplar {beside[0]!r} of document {beside[1]!r} was drawn too and has no label; a "
                "document counts once, so give the labels of all its drawn points together"
            )


def _joining_at_random(changes: _Changes) -> list[int]:
    """The points that were scored and calibrate from now on, because their labels are random."""
    return [
        event.exemplar_id
        for one, event in changes.events.items()
        if event.selection == "random" and event.label is not None and changes.stored[one].split == Split.SCORED
    ]


def _primary(classifier: Classifier, changes: list[_Changes], rows: LabelRows, source: LabelSource) -> _Changes:
    """What changes of one exemplar a row: that of the classifier, or else of the newest generation that has it."""
    preferred = sorted(changes, key=lambda one: (one.classifier.id != classifier.id, -one.classifier.generation))
    primary = _Changes(classifier, {}, {})
    for row, external_id in enumerate(rows.external_ids):
        found = next((one for one in preferred if external_id in one.stored), None)
        if found is None:
            raise NotFoundError(
                f"{source}: row {row}, external_id: classifier {classifier.name!r} has no exemplar {external_id!r}; "
                "ingest or score it first",
                code=Code.UNKNOWN_EXEMPLAR,
                classifier=classifier.name,
                exemplar=external_id,
            )
        primary.stored[external_id] = found.stored[external_id]
        if external_id in found.events:
            primary.events[external_id] = found.events[external_id]
    return primary


def _record(connection: Connection, source: LabelSource, changes: _Changes, placement: Placement) -> int:
    """Store what changes in one generation; return how many calibrators must be recalibrated."""
    events = list(changes.events.values())
    before = [changes.stored[external_id] for external_id in changes.events]
    if events:
        labels.record(connection, events, source=source.name)
    of_support = _support_changes(before, events)
    if of_support:
        support_changes.record(connection, changes.classifier, of_support)
    gathered = placement.finish()
    for external_id, event in changes.events.items():
        key = changes.stored[external_id].document_id or external_id
        changes.events[external_id] = replace(event, split=gathered.splits.get(key, event.split))
    touched = {was.split for was in before} | {event.split for event in events} | gathered.moved.others.keys()
    if touched & recalibrations.CALIBRATION_SPLITS:
        return recalibrations.request(connection, changes.classifier, recalibrations.LABELS)
    if any(was.is_drawn for was in before):
        return recalibrations.request(connection, changes.classifier, recalibrations.LABELS, only_standing=True)
    return 0


def _check_may_train(
    classifier: Classifier,
    exemplar: LabelledExemplar,
    copy: StoredCopy | None,
    wanted: int | None,
    selection: str,
    where: str,
) -> None:
    if copy is not None:
        is_of_document = copy.document_key == exemplar.document_id
        shared = f"is of document {copy.document_key!r}, as is" if is_of_document else "has the vector and logits of"
        raise ConflictError(
            f"{where}: it {shared} {copy.external_id!r}, which calibrates {classifier.name!r}, in split {copy.split}, "
            "and cannot train; leave it out"
        )
    if exemplar.is_drawn:
        raise ConflictError(
            f"{where}: it was drawn to be audited, so that its label is evidence for {classifier.name!r}, and cannot "
            "train too; leave it out"
        )
    if exemplar.split in HELD_OUT_SPLITS:
        raise ConflictError(
            f"{where}: it calibrates {classifier.name!r}, in split {exemplar.split}, and cannot train too; leave it out"
        )
    if wanted is None or selection != "selected":
        got = "none" if wanted is None else f"one that is {selection}"
        raise InvalidInputError(
            f"{where}: expected a selected label to join the training exemplars, got {got}; random ones calibrate"
        )


def _support_changes(before: list[LabelledExemplar], events: list[LabelEvent]) -> list[SupportChange]:
    """What the events mean for the training exemplars."""
    changes = []
    for was, event in zip(before, events, strict=True):
        if Split.TRAIN not in (was.split, event.split):
            continue
        if was.split != Split.TRAIN:
            changes.append(SupportChange(was.id, "added", None))
        elif event.split != Split.TRAIN:
            changes.append(SupportChange(was.id, "removed", was.label))
        else:
            changes.append(SupportChange(was.id, "relabelled", was.label))
    return changes


def _counts(rows: LabelRows, primary: _Changes, requests: int, recorded: int) -> Labelling:
    pairs = [(primary.stored[external_id], event) for external_id, event in primary.events.items()]
    joined: Counter[Split] = Counter(
        event.split for was, event in pairs if was.split == Split.SCORED and event.split != Split.SCORED
    )
    columns = zip(rows.external_ids, rows.labels.tolist(), rows.selections, strict=True)
    stated = [(primary.stored[external_id], selection) for external_id, number, selection in columns if number >= 0]
    # A review of a point that was not drawn says no more than a label that was selected.
    chosen = [
        (was, selection == "review")
        for was, selection in stated
        if selection == "selected" or (selection == "review" and not was.is_drawn)
    ]
    return Labelling(
        rows=len(rows.external_ids),
        new=sum(was.label is None for was, _ in pairs),
        corrected=sum(None not in (was.label, event.label) and was.label != event.label for was, event in pairs),
        retracted=sum(event.label is None for _, event in pairs),
        put_to_use=sum(event.label is not None and was.label == event.label for was, event in pairs),
        unchanged=len(rows.external_ids) - len(pairs),
        calibrating={str(split): count for split, count in joined.items()},
        left=sum(was.split != Split.SCORED and event.split == Split.SCORED for was, event in pairs),
        kept_for_evaluation=sum(
            event.label is not None and event.split == Split.SCORED and event.selection != "review"
            for event in primary.events.values()
        ),
        reviewed=sum(event.label is not None and event.selection == "review" for event in primary.events.values()),
        not_drawn=sum(is_review and was.split not in HELD_OUT_SPLITS for was, is_review in chosen),
        selected_and_calibrating=sum(was.split in HELD_OUT_SPLITS for was, _ in chosen),
        in_other_generations=recorded - len(pairs),
        recalibrations_due=requests,
        ignored=tuple(rows.ignored),
    )
