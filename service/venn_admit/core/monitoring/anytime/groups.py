"""The groups that a monitor watches: those of its calibration data, by the kinds that a certificate was asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.certification import GroupKind, Kind, PromisedClass, attributes_of
from venn_admit.core.calibrators.certified.points import PointGroups, classes_of, named_class
from venn_admit.core.calibrators.certified.policies import Policy, admitted_groups
from venn_admit.core.monitoring.anytime.documents import LabelledPoints, counts_of_documents
from venn_admit.core.types import BoolArray, IntArray

MINIMUM_DOCUMENTS = 30
"""A partition or a group with fewer documents of the calibration data is counted, and not tested."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupPlan:
    """What does not change of the lamp of groups as labels arrive.

    Attributes:
        classes: The G groups, and predicted classes within groups, that the calibration data have: by kind, then by
            predicted class, then by value.
        largest: (G,) int64 >= 1, the most points of each in a document of the calibration data.
        documents: (G,) int64 >= 1, the documents of the calibration data that have points of each.
        certified: (G,) bool, whether the policy of the snapshot with these data admits anything of each.
    """

    classes: tuple[PromisedClass, ...]
    largest: IntArray
    documents: IntArray
    certified: BoolArray

    @property
    def tested(self) -> BoolArray:
        """(G,) bool, the certified ones, and those with enough documents that a later snapshot may certify them."""
        return self.certified | (self.documents >= MINIMUM_DOCUMENTS)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of groups, in order."""
        return tuple(dict.fromkeys(of.kind for of in self.classes))

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """The values of each attribute that the calibration data have, sorted."""
        found: dict[str, set[str]] = {name: set() for name in attributes_of(self.kinds)}
        for of in self.classes:
            assert isinstance(of.kind, GroupKind), "groups alone are watched here"
            assert of.value is not None, "a group has a value"
            found[of.kind.attribute].add(of.value)
        return {name: tuple(sorted(values)) for name, values in found.items()}

    def places(self, points: LabelledPoints) -> list[IntArray]:
        """Return the place of each of n points among the classes of each kind, (n,) int64 in [-1, G).

        Args:
            points: Labelled points with these values; -1 stands for a point that is in none of the classes.
        """
        place_of = {of: place for place, of in enumerate(self.classes)}
        found = []
        for kind in self.kinds:
            numbers, inverse = np.unique(
                classes_of(kind, points.predicted, points.label, points.groups), return_inverse=True
            )
            named = [None if one < 0 else named_class(kind, one, points.groups) for one in numbers.tolist()]
            places = np.array([-1 if of is None else place_of.get(of, -1) for of in named], dtype=np.int64)
            found.append(places[inverse])
        return found


def group_plan(calibration: LabelledPoints, kinds: Sequence[Kind], policy: Policy | None) -> GroupPlan | None:
    """Return the plan of the lamp of groups, by the labelled points of a snapshot; None if no kind is of groups."""
    classes: list[PromisedClass] = []
    largest, documents = [], []
    of_groups = [kind for kind in kinds if isinstance(kind, GroupKind)]
    for kind in of_groups:
        of_points = classes_of(kind, calibration.predicted, calibration.label, calibration.groups)
        numbers = np.unique(of_points[of_points >= 0])
        classes += [named_class(kind, number, calibration.groups) for number in numbers.tolist()]
        place = np.where(of_points < 0, -1, np.searchsorted(numbers, of_points))
        most, count = counts_of_documents(calibration.document, place, len(numbers))
        largest.append(most)
        documents.append(count)
    if not classes:
        return None
    admitted = set() if policy is None else set(admitted_groups(policy, of_groups))
    certified = np.array([of in admitted for of in classes])
    return GroupPlan(tuple(classes), np.concatenate(largest), np.concatenate(documents), certified)


def unknown_counts(groups: Sequence[PointGroups]) -> IntArray:
    """Return how many points are in no known group of each of A attributes, (A,) int64."""
    return np.array([np.count_nonzero(of.codes < 0) for of in groups], dtype=np.int64)
