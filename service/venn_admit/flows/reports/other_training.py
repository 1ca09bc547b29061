"""The KNN's view of points if training exemplars had other labels or were left out; nothing is stored.

Only points whose stored neighbour lists hold one of these exemplars can see another view: an index of the lists finds
them. A relabelled exemplar leaves the lists as they are; lists that hold one that is left out are searched again.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.approximation.knn import approximate
from venn_admit.core.budget import block_rows
from venn_admit.core.names import refused_as
from venn_admit.core.neighbours.search import neighbours_without
from venn_admit.core.split_names import Split
from venn_admit.core.types import Approximation, IntArray, Neighbours, Support, join_approximations
from venn_admit.errors import Code, InvalidInputError, NotReadyError, OutdatedError
from venn_admit.files.label_values import ClassNumbers
from venn_admit.flows.calibration.approximate import neighbours_in_order
from venn_admit.report.what_if.training import TrainingChange
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.decisions import reports, what_if
from venn_admit.store.exemplars import classifiers, exemplars, labels, neighbours
from venn_admit.store.exemplars.approximations import Replacements, StoredParameters, positions, require_parameters
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search.support_files import CachedSupport
from venn_admit.store.work import recalibrations
from venn_admit.store.workspace import Workspace

MOST_CHANGES = 1000
"""How many training exemplars can be changed at once: each that is left out makes every search a little longer."""


@dataclass(frozen=True, slots=True, eq=False)
class OtherTraining:
    """Changes of training exemplars, and the calibration that they would change.

    relabelled_ids, new_labels: (r,) int64, without those that have the label. left_out_ids: (m,) int64. changes: all
    that was asked for, by the names of users.
    """

    classifier: Classifier
    calibration: Calibration
    parameters: StoredParameters
    relabelled_ids: IntArray
    new_labels: IntArray
    left_out_ids: IntArray
    changes: tuple[TrainingChange, ...]

    @property
    def changed_ids(self) -> IntArray:
        """The exemplars that change, (r + m,) int64."""
        return np.concatenate([self.relabelled_ids, self.left_out_ids])


def require_current(connection: Connection, classifier: Classifier) -> tuple[Calibration, StoredParameters]:
    """Return the calibration in use and its parameters; OutdatedError if recalibrating would change it as it is.

    connection: a consistent view.
    """
    calibration = calibrations.latest(connection, classifier)
    parameters = require_parameters(connection, classifier)
    if parameters.id != calibration.knn_parameters_id:
        raise OutdatedError(
            f"classifier {classifier.name!r} was fitted again after calibration {calibration.id}, whose successor "
            "would have other parameters: calibrate it first"
        )
    settings = calibration.method_settings
    if (
        recalibrations.requested_at(connection, classifier, settings) is not None
        or len(neighbours.outdated_neighbours(connection, classifier))
        # None is requested for what newer calibrations had, if an old one is put in use. A chain has points of its own.
        or (not settings.standing and reports.snapshot_changes(connection, calibration).total)
    ):
        raise OutdatedError(
            f"labels or data of {classifier.name!r} have arrived since calibration {calibration.id}: recalibrate "
            "first, or their effect could not be told from that of the change",
            code=Code.RECALIBRATION_DUE,
            classifier=classifier.name,
        )
    return calibration, parameters


def other_training(
    connection: Connection, name: str, relabel: Mapping[str, object], leave_out: Collection[str]
) -> OtherTraining:
    """Return the changes that are asked for, checked.

    Raises:
        InvalidInputError: Nothing or too much is asked for, an exemplar does not train, or there is no such class.
        NotReadyError: There is no calibration yet, or it is out of date.
    """
    asked = [*relabel, *leave_out]
    if not 0 < len(asked) <= MOST_CHANGES:
        raise InvalidInputError(
            f"expected 1 to {MOST_CHANGES:,} training exemplars to relabel or leave out, got {len(asked):,}"
        )
    twice = [one for one in dict.fromkeys(asked) if asked.count(one) > 1]
    if twice:
        raise InvalidInputError(f"expected every training exemplar once, got {twice[0]!r} more than once")
    classifier = classifiers.by_name(connection, name)
    calibration, parameters = require_current(connection, classifier)
    stored = labels.by_external_id(connection, classifier, asked)
    classes = ClassNumbers(classifier.class_count, classifier.class_names)
    new_labels = {external_id: _class_number(classes, external_id, label) for external_id, label in relabel.items()}
    changes = []
    for external_id in asked:
        exemplar = stored.get(external_id)
        if exemplar is None:
            raise labels.unknown_exemplar(classifier.name, external_id)
        if exemplar.split != Split.TRAIN or exemplar.label is None:
            raise InvalidInputError(
                f"exemplar {external_id!r} is in split {exemplar.split}, expected a training exemplar"
            )
        if exemplar.id > classifier.support_version:
            raise NotReadyError(
                f"training exemplar {external_id!r} waits for jobs that are running, and has no effect yet: ask "
                "again once they are done"
            )
        becomes = new_labels.get(external_id)
        changes.append(
            TrainingChange(
                external_id,
                classifier.class_names[exemplar.label],
                None if becomes is None else classifier.class_names[becomes],
            )
        )
    relabelled = {stored[one].id: label for one, label in new_labels.items() if stored[one].label != label}
    return OtherTraining(
        classifier,
        calibration,
        parameters,
        relabelled_ids=np.array(list(relabelled), dtype=np.int64),
        new_labels=np.array(list(relabelled.values()), dtype=np.int64),
        left_out_ids=np.array([stored[one].id for one in leave_out], dtype=np.int64),
        changes=tuple(changes),
    )


def _class_number(classes: ClassNumbers, external_id: str, label: object) -> int:
    with refused_as(f"relabel {external_id!r}"):
        return classes.of(label)


def other_views(workspace: Workspace, connection: Connection, asked: OtherTraining) -> Replacements:
    """Return the approximations of all points that calibrate, or are decided on, and have a changed neighbour.

    They are those that a job would compute and store after the change, bit for bit.

    connection: a consistent view of the database. Raises NotReadyError if too few training exemplars would remain, and
    SupportChangedError if they changed meanwhile.
    """
    classifier = asked.classifier
    ids = what_if.resting_on(connection, asked.calibration, asked.changed_ids)
    support = workspace.cache.support(workspace.engine, classifier)
    changed = _with_labels(support.support, positions(support.ids, asked.relabelled_ids), asked.new_labels)
    left_out = positions(support.ids, asked.left_out_ids)
    none = np.empty(0, dtype=np.int64)
    views = [
        Approximation(np.empty((0, classifier.class_count)), predicted=none, match_count=none, distance=np.empty(0))
    ]
    rows = block_rows(workspace.memory_budget, 4 * classifier.dimension + 24 * classifier.neighbour_count)
    for start in range(0, len(ids), rows):
        block = ids[start : start + rows]
        neighbours = _neighbours(connection, classifier, block, support, left_out, workspace.memory_budget)
        views.append(approximate(neighbours, changed, asked.parameters.knn))
    return Replacements(ids, join_approximations(views))


def _with_labels(support: Support, rows: IntArray, new_labels: IntArray) -> Support:
    relabelled = support.labels.copy()
    relabelled[rows] = new_labels
    return replace(support, labels=relabelled)


def _neighbours(
    connection: Connection,
    classifier: Classifier,
    exemplar_ids: IntArray,
    support: CachedSupport,
    left_out: IntArray,
    memory_budget: int,
) -> Neighbours:
    """The neighbour lists of n points without what is left out, (n, K); left_out: rows of the support."""
    known = neighbours_in_order(neighbours.read(connection, classifier, exemplar_ids), exemplar_ids, support)
    outdated = np.flatnonzero(np.isin(known.indices, left_out).any(axis=1))
    if outdated.size:
        queries = exemplars.vectors(connection, classifier, exemplar_ids[outdated])
        k = classifier.neighbour_count
        found = neighbours_without(queries, support.vectors, k, left_out, memory_budget=memory_budget)
        known.indices[outdated], known.distances[outdated] = found.indices, found.distances
    return known
