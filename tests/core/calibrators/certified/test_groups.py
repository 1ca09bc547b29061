"""Certificates for groups, against an independent reference by loops over points."""

import json
from dataclasses import replace
from decimal import Decimal
from math import comb
from typing import Any

import numpy as np
import pytest

from tests.core.calibrators.certified.laws import graded_points, points_of, with_groups
from venn_admit.core.calibrators.certification import make_certification, part_kind
from venn_admit.core.calibrators.certified.certificate import Certificate, ClassResult
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.document import from_document, to_document
from venn_admit.core.calibrators.certified.points import MOST_VALUES, CertificatePoints, PointGroups
from venn_admit.core.calibrators.certified.policies import Policy, admit, are_covered
from venn_admit.errors import InvalidInputError

TENTH = Decimal("0.1")
REGIONS = ("east", "north", "west")
CELLS, GROUPS = ("predicted*group:region",), ("group:region",)
ALONG_PATHS = [("predicted", "group:region"), ("true", "predicted*group:region"), ("group:device", "group:region")]


Draws = tuple[CertificatePoints, CertificatePoints]


def certified(draws: Draws, *kinds: str) -> Certificate:
    asked = {kind.partition(":")[2] for kind in kinds if ":" in kind}
    proposing, evidence = (_only(points, asked) for points in draws)
    return certify(proposing, evidence, class_count=2, alpha=TENTH, kinds=kinds)


def _only(points: CertificatePoints, attributes: set[str]) -> CertificatePoints:
    return replace(points, groups=tuple(of for of in points.groups if of.attribute in attributes))


def drawn(seed: int, documents: int = 1500, size: int = 1, weak: float = 0.0) -> Draws:
    """Two draws of points with a region and a device; weak: how often a right prediction in the west is wrong."""
    rng = np.random.default_rng(seed)

    def one() -> CertificatePoints:
        return with_groups(
            rng,
            graded_points(rng, documents, size=size, sharpness=20.0),
            {
                "device": ({"pad": 0.5, "pc": 0.45}, {}),
                "region": ({"east": 0.5, "north": 0.35, "west": 0.15}, {"west": weak}),
            },
        )

    return one(), one()


Row = dict[str, Any]


def belongs(row: Row, result: ClassResult) -> bool:
    """Whether a point is of the class or group of a result."""
    if result.kind == "true":
        return bool(row["label"] == result.number)
    attribute = result.kind.partition(":")[2]
    in_class = result.number is None or row["predicted"] == result.number
    return in_class and (not attribute or row[attribute] == result.value)


def tail(wrong: int, count: int) -> float:
    return sum(comb(count, k) * 0.1**k * 0.9 ** (count - k) for k in range(wrong + 1))


@pytest.mark.parametrize("kinds", [CELLS, GROUPS, *ALONG_PATHS])
def test_every_test_is_that_of_the_points_of_its_class_and_group(kinds: tuple[str, ...]) -> None:
    proposing, evidence = drawn(1, 3000)
    found = certified((proposing, evidence), *kinds)
    arrays = {name: getattr(evidence, name).tolist() for name in ("score", "predicted", "label")} | evidence.attributes
    rows: list[Row] = [dict(zip(arrays, values, strict=True)) for values in zip(*arrays.values(), strict=True)]
    attributes = {kind.partition(":")[2] for kind in kinds if ":" in kind}
    for chain in found.chains:
        for step in chain.steps:
            least = dict(zip(chain.predicted, step.thresholds, strict=True))
            for result in step.classes:
                # All groups of this law have enough labels to be admitted.
                taken = [
                    row
                    for row in rows
                    if belongs(row, result)
                    and row["score"] >= (least[row["predicted"]] or 0)
                    and all(row[of] is not None for of in attributes)
                ]
                wrong = sum(row["predicted"] != row["label"] for row in taken)
                assert (result.admitted, result.right) == (len(taken), len(taken) - wrong)
                assert result.p_value == pytest.approx(tail(wrong, len(taken)), rel=1e-9)
            assert step.passed == (step.p_value <= chain.level)
        assert [step.passed for step in chain.steps].count(False) <= 1
    assert found.policy is not None
    assert found.share is not None
    assert found.share > 0.7


def test_the_level_is_divided_among_the_groups_and_left_to_the_others() -> None:
    levels = sorted({chain.level for chain in certified(drawn(2, weak=0.1), *CELLS).chains})
    assert levels[0] == pytest.approx(0.05 / 6)
    assert len(levels) > 1
    assert all(min(abs(0.05 / left - level) for left in range(1, 7)) < 1e-12 for level in levels)


@pytest.mark.parametrize("kinds", [CELLS, GROUPS, *ALONG_PATHS])
def test_the_policy_admits_what_its_chains_admit(kinds: tuple[str, ...]) -> None:
    found = certified(drawn(3, weak=0.3), *kinds)
    _, evidence = drawn(3, weak=0.3)
    assert found.policy is not None
    admitted = admit(evidence.score, evidence.predicted, found.policy, evidence.attributes)
    assert found.admitted == admitted.sum()
    passed = [step.admitted for chain in found.chains if (step := chain.last_passed) is not None]
    assert found.admitted == (sum(passed) if part_kind(make_certification(kinds).kinds) else max(passed))


@pytest.mark.parametrize("kinds", [CELLS, GROUPS, *ALONG_PATHS])
@pytest.mark.parametrize("size", [1, 3])
def test_a_weak_group_is_not_admitted_and_stops_no_other(kinds: tuple[str, ...], size: int) -> None:
    proposing, evidence = drawn(4, 1500 // size, size, weak=0.3)
    found = certified((proposing, evidence), *kinds)
    assert found.policy is not None
    admitted = admit(evidence.score, evidence.predicted, found.policy, evidence.attributes)
    region = np.array(evidence.attributes["region"])
    assert not admitted[region == "west"].any()
    assert admitted[region == "east"].mean() > 0.6
    assert {"west"} <= {result.value for result in found.lacking}


def test_a_predicted_class_that_is_often_wrong_stops_no_group() -> None:
    rng = np.random.default_rng(10)

    def draw() -> CertificatePoints:
        """Predictions of class 1, one point in ten, are right .6 of the time, those of class 0 .97."""
        predicted = rng.choice(2, 2000, p=(0.9, 0.1))
        right = rng.random(2000) < np.where(predicted == 1, 0.6, 0.97)
        points = points_of(rng.uniform(0.5, 1, 2000), predicted, np.where(right, predicted, 1 - predicted))
        return with_groups(rng, points, {"region": ({"east": 0.6, "north": 0.4}, {})})

    found = certified((draw(), draw()), "predicted", "group:region")
    assert found.policy is not None
    assert found.policy.thresholds[1] is None
    assert found.share is not None
    assert found.share > 0.85
    assert {(str(one.kind), one.number, one.value) for one in found.classes if one.p_value is not None} == {
        ("predicted", 0, None),
        ("group:region", None, "east"),
        ("group:region", None, "north"),
    }
    assert [(str(one.kind), one.number) for one in found.lacking] == [("predicted", 1)]


def test_a_point_without_the_attribute_or_of_another_group_is_never_admitted() -> None:
    proposing, evidence = drawn(5)
    found = certified((proposing, evidence), *GROUPS)
    assert found.policy is not None
    values = ["east", None, "south"]
    predicted, score = np.zeros(3, dtype=np.int64), np.ones(3)
    assert admit(score, predicted, found.policy, {"region": values}).tolist() == [True, False, False]
    assert are_covered(predicted, found.policy, {"region": values}).tolist() == [True, False, False]
    assert not admit(score, predicted, found.policy).any()


def test_a_class_that_is_never_admitted_is_not_blamed_on_its_group() -> None:
    assert are_covered(np.zeros(1, dtype=np.int64), Policy((None,)), {}).tolist() == [True]


def test_a_group_that_nothing_proposes_is_never_admitted() -> None:
    proposing, evidence = drawn(6)
    rows = np.array(proposing.attributes["region"]) != "west"
    found = certified((proposing.take(rows), evidence), *CELLS)
    assert found.policy is not None
    assert [set(of) for of in found.policy.groups[0].least] == [{"east", "north"}] * 2


@pytest.mark.parametrize("kinds", [CELLS, ALONG_PATHS[0]])
def test_a_rare_group_is_named_with_the_labels_that_it_takes(kinds: tuple[str, ...]) -> None:
    proposing, _ = drawn(7, 4000)
    _, evidence = drawn(8, 150)
    found = certified((proposing, evidence), *kinds)
    needed = {result.value: result.documents_needed for result in found.lacking}
    assert (needed.get("west") or 0) > 150


@pytest.mark.parametrize("kinds", [CELLS, GROUPS, *ALONG_PATHS])
def test_a_certificate_for_groups_survives_json(kinds: tuple[str, ...]) -> None:
    found = certified(drawn(9, 400, 2, weak=0.2), *kinds)
    assert from_document(json.loads(json.dumps(to_document(found), allow_nan=False))) == found


def test_the_order_of_rows_does_not_matter() -> None:
    proposing, evidence = drawn(10, 300, 2)
    rows = np.random.default_rng(0).permutation(len(evidence.score))
    shuffled = evidence.take(rows)
    for kinds in (CELLS, ALONG_PATHS[1]):
        assert certified((proposing, evidence), *kinds) == certified((proposing, shuffled), *kinds)


def test_the_labels_of_the_evidence_do_not_change_the_order() -> None:
    proposing, evidence = drawn(11, 600)
    other = replace(evidence, label=np.random.default_rng(1).permutation(evidence.label))
    for kinds in (CELLS, *ALONG_PATHS):
        pairs = zip(
            certified((proposing, evidence), *kinds).chains, certified((proposing, other), *kinds).chains, strict=True
        )
        for one, two in pairs:
            assert (one.name, one.predicted, one.steps[0].shares) == (two.name, two.predicted, two.steps[0].shares)


def test_groups_that_are_not_there_and_too_many_values_are_refused() -> None:
    proposing, evidence = drawn(12, 50)
    bare, proposing = replace(evidence, groups=()), _only(proposing, {"region"})
    with pytest.raises(InvalidInputError, match="the groups of region, got those of none"):
        certify(proposing, bare, class_count=2, alpha=TENTH, kinds=GROUPS)
    many = PointGroups("region", tuple(map(str, range(MOST_VALUES + 1))), np.zeros(50, dtype=np.int64))
    with pytest.raises(InvalidInputError, match="at most 200 values"):
        certified((replace(proposing, groups=(many,)), replace(evidence, groups=(many,))), *GROUPS)


@pytest.mark.parametrize("kind", ["group:", "group:a,b", "groups:a", "true*group:a"])
def test_kinds_that_there_are_not_are_refused(kind: str) -> None:
    with pytest.raises(InvalidInputError, match=r"predicted\*group:COLUMN; got"):
        make_certification([kind])


def test_what_is_promised_within_groups_is_promised_for_predicted_classes() -> None:
    assert make_certification(CELLS).kinds == ("predicted", *CELLS)


def test_kinds_have_an_order_of_their_own() -> None:
    given = ["group:b", "predicted*group:a", "true", "group:a", "predicted"]
    assert make_certification(given).kinds == ("predicted", "true", "group:a", "group:b", "predicted*group:a")
