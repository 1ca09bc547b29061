"""What would change if training exemplars had other labels or were left out: nothing is stored, and nothing locked."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache as remembered

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.monitoring.what_if import Flips, ViewChanges, count_flips, view_changes
from venn_admit.core.split_names import Split
from venn_admit.core.types import Approximation, IntArray
from venn_admit.errors import InvalidInputError
from venn_admit.flows.reports.other_training import OtherTraining, other_training, other_views
from venn_admit.methods.method import Made, PointsToDecide, Snapshot
from venn_admit.methods.registry import METHODS
from venn_admit.report.what_if.training import Flip, TrainingEffects
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions import what_if
from venn_admit.store.decisions.what_if import DecidedBlock
from venn_admit.store.exemplars import approximations, exemplars
from venn_admit.store.exemplars.approximations import Replacements
from venn_admit.store.workspace import Workspace

MOST_FLIPS = 10_000
"""How many of the decisions that would differ are listed."""


@dataclass(frozen=True, slots=True, eq=False)
class Following:
    """The snapshot that would follow a change of training exemplars, and the approximations that it rests on."""

    workspace: Workspace
    asked: OtherTraining
    instead: Replacements
    made: Made

    def ready(self, *, weighted: bool) -> Snapshot:
        """Return the snapshot ready to decide with; weighted: whether with weights too."""
        return METHODS[self.asked.calibration.method].ready(
            self.workspace,
            self.asked.classifier,
            self.asked.calibration,
            self.asked.parameters,
            self.made,
            weighted=weighted,
        )


def what_if_training(
    workspace: Workspace, name: str, *, relabel: Mapping[str, object], leave_out: Collection[str]
) -> TrainingEffects:
    """Return what would change; parameters of KNN, localizer and reliability score stay as they are fitted.

    Args:
        relabel: Class names or numbers, by the ids of training exemplars.
        leave_out: Ids of training exemplars.

    Raises:
        InvalidInputError: The certificate of the calibration stands while labels arrive.
        NotReadyError: There is no calibration yet, it is out of date, or none could follow.
    """
    with consistent_view(workspace.engine) as connection:
        asked = other_training(connection, name, relabel, leave_out)
        if asked.calibration.method_settings.standing:
            raise InvalidInputError(
                f"calibration {asked.calibration.id} stands while labels arrive, and other training exemplars make no "
                "snapshot of it: with the network's score nothing would change, with the reliability score its chain "
                "would end; put a calibration that is made once in use to ask this"
            )
        following = follow(workspace, connection, asked)
        decisions = _Decisions(connection, following)
        decisions.look_at_all()
        compared = METHODS[asked.calibration.method].compare(
            connection,
            asked.classifier,
            asked.calibration,
            following.made,
            following.instead,
            memory_budget=workspace.memory_budget,
        )
        return TrainingEffects(
            classifier=asked.classifier.name,
            class_names=asked.classifier.class_names,
            calibration=asked.calibration.id,
            method=asked.calibration.method,
            changes=asked.changes,
            uses_traffic=asked.calibration.method_settings.uses_traffic,
            views={
                **{str(split): _views_of(connection, following, split) for split in _splits(following)},
                "decided": decisions.views,
            },
            snapshot=compared,
            flips=decisions.flips,
            flipped=decisions.listed(),
        )


def follow(workspace: Workspace, connection: Connection, asked: OtherTraining) -> Following:
    """Return the snapshot that would follow; connection: a consistent view. Errors are those of `what_if_training`."""
    instead = other_views(workspace, connection, asked)
    made = METHODS[asked.calibration.method].make(
        connection,
        asked.classifier,
        asked.parameters,
        asked.calibration.method_settings,
        memory_budget=workspace.memory_budget,
        instead=instead if len(asked.changed_ids) else None,
    )
    return Following(workspace, asked, instead, made)


def _splits(following: Following) -> list[Split]:
    """The splits that the method makes a snapshot of."""
    return [Split.MC, Split.VP] if following.made.rows.in_vp.any() else [Split.MC]


def _views_of(connection: Connection, following: Following, split: Split) -> ViewChanges:
    """How the views of the points of a split that calibrate would change."""
    asked, instead = following.asked, following.instead
    calibration, parameters_id = asked.calibration, asked.parameters.id
    total = calibration.vp_count if split == Split.VP else calibration.mc_count
    touched = exemplars.in_split(connection, instead.exemplar_ids, split)
    ids, before = approximations.read_approximations(connection, asked.classifier, touched, parameters_id)
    found = view_changes(before, instead.replaced(ids, before))
    return ViewChanges(total, found.touched, found.predicted, found.match_count, found.distance)


class _Decisions:
    """The newest decisions of the snapshot in use, and what they would be."""

    def __init__(self, connection: Connection, following: Following) -> None:
        self._connection = connection
        self._following = following
        self._snapshot = remembered(lambda weighted: following.ready(weighted=weighted))
        self._flipped: list[tuple[IntArray, IntArray, IntArray]] = []
        none = np.empty(0, dtype=np.int64)
        self.flips: Flips = count_flips(none, none, following.asked.classifier.class_count)
        self.views = ViewChanges(0, 0, 0, 0, 0)

    def look_at_all(self) -> None:
        asked, instead = self._following.asked, self._following.instead
        for block in what_if.newest_decisions(
            self._connection, asked.classifier, asked.calibration, self._following.workspace.memory_budget
        ):
            view = instead.replaced(block.exemplar_ids, block.approximation)
            touched, _ = instead.rows_of(block.exemplar_ids)
            changed = view_changes(block.approximation.take(touched), view.take(touched))
            untouched = ViewChanges(len(block.exemplar_ids) - len(touched), 0, 0, 0, 0)
            self.views += changed + untouched
            after = self._decide(block, view)
            self.flips += count_flips(block.decision, after, asked.classifier.class_count)
            rows = np.flatnonzero(block.decision != after)
            self._flipped.append((block.exemplar_ids[rows], block.decision[rows], after[rows]))

    def _decide(self, block: DecidedBlock, view: Approximation) -> IntArray:
        after = np.empty(len(block.exemplar_ids), dtype=np.int64)
        classifier = self._following.asked.classifier
        for weighted in (False, True):
            for full_match in (False, True):
                rows = np.flatnonzero((block.weighted == weighted) & (block.require_full_match == full_match))
                if not rows.size:
                    continue
                snapshot: Snapshot = self._snapshot(weighted)
                ids = block.exemplar_ids[rows]
                points = PointsToDecide(
                    view.take(rows),
                    exemplars.vectors(self._connection, classifier, ids) if weighted else None,
                    exemplars.network_logits(self._connection, classifier, ids) if snapshot.needs_logits else None,
                    exemplars.groups(self._connection, ids, snapshot.calibration.group_attributes),
                )
                decided = snapshot.decide(points, require_full_match=full_match)
                after[rows] = decided.values["decision"]
        return after

    def listed(self) -> tuple[Flip, ...]:
        """The first flipped decisions, by the names of users."""
        if not self._flipped:
            return ()
        ids, before, after = (np.concatenate(parts)[:MOST_FLIPS] for parts in zip(*self._flipped, strict=True))
        names = exemplars.keys(self._connection, ids).row_keys
        classes = [*self._following.asked.classifier.class_names, None]  # the last is that of -1
        return tuple(
            Flip(name, classes[was], classes[would_be])
            for name, was, would_be in zip(names, before.tolist(), after.tolist(), strict=True)
        )
