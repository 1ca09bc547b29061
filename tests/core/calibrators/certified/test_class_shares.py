"""What errors cost under declared class shares, and traffic that none explain, against independent computations."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

from tests.core.calibrators.certified.laws import graded_points
from tests.guarantees.draws import Draws
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.document import from_document, to_document
from venn_admit.core.calibrators.certified.hypothesis_tests import bounded_p_value
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.shares.bounds import document_counts, intervals
from venn_admit.core.calibrators.certified.shares.declared import (
    costs_of_documents,
    costs_of_points,
    document_ratios,
    point_ratios,
)
from venn_admit.core.calibrators.certified.shares.estimated import estimate_shares
from venn_admit.core.calibrators.certified.shares.mixes import DocumentMixes, Mixes, departures
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.calibrators.settings import make_venn_abers_settings
from venn_admit.core.types import FloatArray
from venn_admit.errors import InvalidInputError

SHARES = (Decimal("0.5"), Decimal("0.3"), Decimal("0.2"))
BOX = ClassShares(SHARES, Decimal("0.04"))


@pytest.mark.parametrize("level", [1e-8, 0.003, 0.5])
def test_the_bounds_are_those_of_clopper_and_pearson(level: float) -> None:
    rng = np.random.default_rng(0)
    trials = np.concatenate([[1, 1, 300, 300, 300], rng.integers(2, 100_000, 300)])
    count = np.concatenate([[0, 1, 0, 1, 300], (trials[5:] * rng.random(300) ** 3).astype(np.int64)])
    low, high = intervals(count, trials, level)
    some, some_not = count > 0, count < trials
    ends = (
        stats.beta(count[some], (trials - count + 1)[some]),
        stats.beta((count + 1)[some_not], (trials - count)[some_not]),
    )
    assert low[some] == pytest.approx(ends[0].ppf(level), rel=1e-8)
    assert high[some_not] == pytest.approx(ends[1].isf(level), rel=1e-8)
    assert not low[~some].any()
    assert (high[~some_not] == 1).all()


@pytest.mark.parametrize(
    ("loss", "counts"),
    [
        (1.0 - np.eye(3), [200, 90, 30]),
        # An error that costs nothing, of a class that traffic has much more of, would cost less than nothing.
        (np.array([[0, 0.05, 0], [0.04, 0, 2], [3, 0.09, 0]]), [30, 90, 200]),
    ],
)
def test_errors_cost_what_the_definition_says(loss: FloatArray, counts: list[int]) -> None:
    found = costs_of_points(loss, BOX, point_ratios(np.array(counts), 0.006), alpha=0.1)
    for y, c in np.ndindex(3, 3):
        if y == c:
            assert found[y, c] == 0
            continue
        rare, other, sign = (y, c, 1) if loss[y, c] > 0.1 else (c, y, -1)
        least = stats.beta.ppf(0.001, counts[rare], counts[other] + 1)  # that of the one among both
        ratio = (float(SHARES[rare]) + 0.04) / (float(SHARES[other]) - 0.04) * (1 - least) / least
        assert found[y, c] == pytest.approx(max(0.1 + (loss[y, c] - 0.1) * ratio**sign, 0.0), rel=1e-9)


def test_traffic_is_outside_where_no_shares_of_the_box_explain_it() -> None:
    confusion = np.array([[180, 10, 5], [15, 70, 5], [5, 10, 20]])
    level = 0.01 / (2 * 3 * 4)
    outside = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shares = rng.dirichlet((5, 3, 2))
        traffic = rng.multinomial(1500, confusion / confusion.sum(axis=0) @ shares)
        found = {one.predicted: one for one in departures(Mixes(traffic, confusion), BOX)}
        for predicted in range(3):
            ends = [
                (stats.beta.ppf(level, k, n - k + 1), stats.beta.ppf(1 - level, k + 1, n - k))
                for k, n in zip(confusion[predicted], confusion.sum(axis=0), strict=True)
            ]
            box = [(float(share) - 0.04, float(share) + 0.04) for share in SHARES]
            programme: dict[str, Any] = {"A_eq": [[1, 1, 1]], "b_eq": [1], "bounds": box}
            least = optimize.linprog([low for low, _ in ends], **programme).fun
            most = -optimize.linprog([-high for _, high in ends], **programme).fun
            seen = int(traffic[predicted])
            low = stats.beta.ppf(level, seen, 1501 - seen)
            high = stats.beta.ppf(1 - level, seen + 1, 1500 - seen)
            assert (predicted in found) == (low > most or high < least)
            if predicted in found:
                assert found[predicted].allowed == pytest.approx((least, most), rel=1e-8)
                assert found[predicted].interval == pytest.approx((low, high), rel=1e-8)
        outside += bool(found)
    assert 5 < outside < 35
    assert departures(Mixes(np.zeros(3, dtype=np.int64), confusion), BOX) == []


@pytest.mark.parametrize(("shares", "leaves"), [((0.5, 0.3, 0.2), False), ((0.2, 0.3, 0.5), True)])
def test_traffic_of_documents_is_outside_as_points_are(shares: tuple[float, ...], leaves: bool) -> None:
    """Though points of a document are alike, and one document in fifty is as large as fifteen others."""
    rates = np.array([[0.9, 0.1, 0.05], [0.05, 0.8, 0.15], [0.05, 0.1, 0.8]])

    def documents(rng: np.random.Generator, count: int, shares: tuple[float, ...]) -> FloatArray:
        size = np.where(rng.random(count) < 0.02, 60, rng.integers(1, 8, count))
        document = np.repeat(np.arange(count), size)
        number = np.where(rng.random(len(document)) < 0.7, rng.random(count)[document], rng.random(len(document)))
        cells = np.cumsum((rates * shares).T.ravel())
        label, predicted = np.divmod(np.searchsorted(cells[:-1], number, side="right"), 3)
        return document_counts(document, predicted * 3 + label, 9)

    outside = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        proposing, labels = (documents(rng, count, (0.4, 0.3, 0.3)) for count in (100, 900))
        traffic = documents(rng, 1500, shares).reshape(-1, 3, 3).sum(axis=2)
        counts = traffic.sum(axis=0).astype(np.int64), labels.sum(axis=0).reshape(3, 3).astype(np.int64)
        outside += bool(departures(DocumentMixes(*counts, traffic, labels, proposing, by_cell=True), BOX))
    assert outside >= 36 if leaves else outside <= 1


CONFUSIONS: dict[str, tuple[list[list[float]], list[int], int]] = {
    "two classes": ([[0.9, 0.2], [0.1, 0.8]], [500, 300], 2000),
    "three": ([[0.9, 0.1, 0.2], [0.05, 0.8, 0.1], [0.05, 0.1, 0.7]], [900, 700, 400], 3000),
    "a rare one": ([[0.9, 0.1, 0.1], [0.05, 0.85, 0.1], [0.05, 0.05, 0.8]], [900, 700, 25], 3000),
    "one class is predicted as another": ([[0.9, 0.1, 0.1], [0.05, 0.8, 0.8], [0.05, 0.1, 0.1]], [900, 700, 400], 3000),
}


@pytest.mark.parametrize("name", CONFUSIONS)
def test_a_box_of_estimated_shares_is_nearly_the_smallest(name: str) -> None:
    """It holds the box of a linear programme over all shares that the intervals allow, and is little larger."""
    rates, labels, documents = CONFUSIONS[name]
    truth, class_count, level = np.array(rates), len(labels), 0.01
    rng = np.random.default_rng(0)
    confusion = np.stack([rng.multinomial(n, of) for n, of in zip(labels, truth.T, strict=True)], axis=1)
    shares = rng.dirichlet([4] * class_count)
    traffic = rng.multinomial(documents, truth @ shares)
    found = estimate_shares(Mixes(traffic, confusion), level)
    assert found is not None
    each = level / (2 * (1 if class_count == 2 else class_count) * (1 + class_count))

    def ends(k: Any, n: Any) -> tuple[Any, Any]:
        return stats.beta.ppf(each, k, n - k + 1), stats.beta.isf(each, k + 1, n - k)

    low, high = ends(traffic, documents)
    of_low, of_high = ends(confusion, np.array(labels))
    programme: dict[str, Any] = {
        "A_ub": np.vstack([of_low, -of_high]),
        "b_ub": np.concatenate([high, -low]),
        "A_eq": np.ones((1, class_count)),
        "b_eq": [1],
    }
    axes = np.eye(class_count)
    least = np.array([optimize.linprog(axis, **programme).fun for axis in axes])
    most = np.array([-optimize.linprog(-axis, **programme).fun for axis in axes])
    assert (np.array(found.least) <= least + 1e-9).all()
    assert (np.array(found.most) >= most - 1e-9).all()
    if name != "one class is predicted as another":
        allowed = 0.08 if name == "a rare one" else 0.01
        assert found.most == pytest.approx(most, abs=allowed)
        assert found.least == pytest.approx(least, abs=allowed)
        assert ((least <= shares) & (shares <= most)).all()
    else:
        assert found.least[2] == 0


def test_traffic_that_no_shares_explain_has_none() -> None:
    confusion = np.array([[400, 100], [100, 400]])
    assert estimate_shares(Mixes(np.array([950, 50]), confusion), 0.01) is None
    assert estimate_shares(Mixes(np.array([780, 220]), confusion), 0.01) is not None


def test_a_box_holds_the_shares_of_traffic_in_nearly_all_draws() -> None:
    truth, shares = np.array([[0.85, 0.25], [0.15, 0.75]]), np.array([0.15, 0.85])
    draws = Draws.as_sharp_as(1_000, 0.2)
    for seed in draws:
        rng = np.random.default_rng(seed)
        confusion = np.stack([rng.multinomial(200, of) for of in truth.T], axis=1)
        found = estimate_shares(Mixes(rng.multinomial(400, truth @ shares), confusion), 0.2)
        draws.add(found is None or not found.least[0] <= 0.15 <= found.most[0])
    assert draws.seldom


def test_the_tests_are_tails_that_grow_with_what_errors_cost() -> None:
    """The costs rest on the labels that are tested, so that a game with them would bet on what it may not know."""
    rng = np.random.default_rng(1)
    proposing, evidence = (
        graded_points(rng, count, size=1, frequencies=(0.5, 0.3, 0.2), sharpness=8.0) for count in (300, 900)
    )
    found = certify(proposing, evidence, class_count=3, alpha=Decimal("0.1"), kinds=["predicted"], class_shares=BOX)
    counts = np.bincount(evidence.label, minlength=3)
    cost = costs_of_points(1.0 - np.eye(3), BOX, point_ratios(counts, 0.1 * 0.05), alpha=0.1)
    steps = [(chain.predicted[0], step) for chain in found.chains for step in chain.steps]
    assert len(steps) >= 3
    for predicted, step in steps:
        (result,), (least,) = step.classes, step.thresholds
        assert least is not None
        admitted = (evidence.predicted == predicted) & (evidence.score >= least)
        most, loss = cost[:, predicted].max(), cost[evidence.label[admitted], predicted].sum()
        mean, at = loss / admitted.sum() / most, 0.1 / most
        divergence = special.rel_entr([mean, 1 - mean], [at, 1 - at]).sum()
        assert result.admitted == admitted.sum()
        assert result.p_value == pytest.approx(np.exp(-admitted.sum() * divergence) if mean < at else 1.0, rel=1e-9)
    lines = [[bounded_p_value(loss, 300, most, 0.1) for loss in range(0, 40, 4)] for most in (1.0, 1.5, 4.0)]
    assert (np.diff(lines, axis=0) >= 0).all()
    assert (np.diff(lines, axis=1) >= 0).all()


@pytest.mark.parametrize(
    "loss", [1.0 - np.eye(4), np.array([[0, 0.05, 1, 1], [0.04, 0, 2, 0.02], [3, 0.09, 0, 4], [1, 3, 0.5, 0]])]
)
def test_no_point_of_a_document_costs_less_in_its_unit_than_under_shares_of_the_box(loss: FloatArray) -> None:
    """The unit is the most that a point of its predicted class exceeds alpha by, under the shares that are true."""
    rng = np.random.default_rng(0)
    box = ClassShares(tuple(map(Decimal, ("0.4", "0.3", "0.2", "0.1"))), Decimal("0.04"))
    for _ in range(300):
        shares = rng.dirichlet((5, 4, 3, 2))
        weight = rng.uniform(box.least, box.most) / shares
        ratios = np.divide.outer(1 / shares, 1 / shares) * rng.uniform(1.0, 1.5, (4, 4))
        excess = costs_of_documents(loss, box, ratios, alpha=0.1) - 0.1
        true = weight[:, np.newaxis] / weight * (loss - 0.1)
        assert (excess / excess.max(axis=0) >= true / true.max(axis=0) - 1e-12).all()
        assert (np.diag(excess) == -0.1).all()


def dependent(rng: np.random.Generator, count: int, shares: tuple[float, ...]) -> CertificatePoints:
    """Documents of one class each, of which those of class 0 are twice as large."""
    size = np.where(np.arange(len(shares)) == 0, 8, 4)
    of_document = shares / size
    label = rng.choice(len(shares), count, p=of_document / of_document.sum())
    document = np.repeat(np.arange(count), size[label])
    nothing = np.zeros(len(document))
    return CertificatePoints(nothing, nothing.astype(np.int64), label[document], document)


def test_ratios_of_class_shares_are_bounded_by_documents() -> None:
    """As well as by as many points, and not by the points in them, as if these came independently."""
    shares, level = (0.5, 0.3, 0.2), 0.1
    true = np.divide.outer(1 / np.array(shares), 1 / np.array(shares))
    draws, taken_for_independent, widths = Draws.as_sharp_as(1_000, level), 0, []
    for seed in draws:
        rng = np.random.default_rng(seed)
        evidence = dependent(rng, 300, shares)
        found = document_ratios(evidence, dependent(rng, 40, shares), 3, level, rng)
        draws.add(bool((found < true).any()))
        taken_for_independent += bool((point_ratios(np.bincount(evidence.label), level) < true).any())
        widths.append(np.log(found / true)[~np.eye(3, dtype=np.bool_)])
    assert draws.seldom
    assert taken_for_independent > 0.3 * draws.count
    counts = 300 * np.array(shares) / (2, 1, 1) / 0.75
    of_points = np.log(point_ratios(counts.astype(np.int64), level) / np.divide.outer(1 / counts, 1 / counts))
    assert np.mean(widths) < 1.5 * of_points[~np.eye(3, dtype=np.bool_)].mean()


OF_TRAFFIC = EstimatedShares((0.5, 0.3, 0.2), (0.4, 0.2, 0.1), (0.6, 0.4, 0.3), (450, 250, 200), 0.005)


@pytest.mark.parametrize("of", [BOX, OF_TRAFFIC])
def test_what_is_tested_in_which_order_hangs_on_no_label_of_the_evidence(of: ClassShares | EstimatedShares) -> None:
    """Though what errors cost does; else the first bad policy of the order would not be one that is fixed."""
    rng = np.random.default_rng(1)
    proposing, evidence = (
        graded_points(rng, count, size=1, frequencies=(0.5, 0.3, 0.2), sharpness=8.0) for count in (300, 900)
    )
    others = replace(evidence, label=np.where(rng.random(900) < 0.1, 2, evidence.label))
    found = [
        certify(proposing, points, class_count=3, alpha=Decimal("0.1"), kinds=["predicted"], class_shares=of)
        for points in (evidence, others)
    ]
    p_values = [[chain.steps[0].classes[0].p_value for chain in one.chains] for one in found]
    assert p_values[0] != p_values[1]
    for chain, other in zip(*(one.chains for one in found), strict=True):
        assert chain.predicted == other.predicted
        tested = [[step.thresholds for step in one.steps] for one in (chain, other)]
        both = min(map(len, tested))
        assert tested[0][:both] == tested[1][:both] != []


@pytest.mark.parametrize("of", [BOX, OF_TRAFFIC])
def test_a_certificate_keeps_the_shares_that_it_is_for(of: ClassShares | EstimatedShares) -> None:
    rng = np.random.default_rng(1)
    points = [graded_points(rng, count, size=1, frequencies=(1 / 3,) * 3, sharpness=8.0) for count in (300, 900)]
    found = certify(*points, class_count=3, alpha=Decimal("0.1"), kinds=["predicted"], class_shares=of)
    assert found.class_shares == of
    assert from_document(json.loads(json.dumps(to_document(found)))) == found


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"class_shares": SHARES[:2]}, "expected one share for each of 3 classes, in their order, got 2"),
        ({"class_shares": (Decimal("0.5"), Decimal("0.5"), Decimal(0))}, "may be absent .* got 0 for class 2"),
        ({"class_shares": (*SHARES[:2], Decimal("0.3"))}, "sum to 1 exactly, got a sum of 1.1"),
        ({"class_shares": SHARES, "class_shares_within": Decimal("0.2")}, "above class_shares_within = 0.2"),
        ({"class_shares": SHARES, "class_shares_within": Decimal(-1)}, "from 0 to below 1, got -1"),
        ({"class_shares_within": Decimal("0.1")}, "got 0.1 alone"),
        ({"class_shares": SHARES, "class_shares_estimated": True}, "either declared or estimated"),
        (
            {"class_shares_within": Decimal("0.1"), "class_shares_estimated": True},
            "leave out either class_shares_within",
        ),
        ({"class_shares_estimated": True, "certify": ["true"]}, "so leave class_shares_estimated out"),
        ({"class_shares_estimated": True, "standing": True}, "leave out either standing or class_shares_estimated"),
        ({"class_shares_estimated": True, "certify": None, "promise": "strongest"}, "^class_shares_estimated: "),
        ({"class_shares": SHARES, "certify": ["true"]}, "holds whatever shares the classes have"),
        ({"class_shares": SHARES, "certify": ["predicted", "group:region"]}, r"certify predicted\*group:region"),
        ({"class_shares": SHARES, "standing": True}, "made once; leave out either standing or class_shares"),
        ({"class_shares": SHARES, "certify": None, "promise": "strongest"}, "got another promise"),
    ],
)
def test_what_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        make_venn_abers_settings(3, 5, **{"certify": ["predicted"], **given})


def test_shares_whose_level_leaves_none_for_tests_are_refused() -> None:
    rng = np.random.default_rng(2)
    points = [graded_points(rng, 100, size=1, frequencies=(1 / 3,) * 3, sharpness=8.0) for _ in range(2)]
    of = EstimatedShares((0.5, 0.3, 0.2), (0.4, 0.2, 0.1), (0.6, 0.4, 0.3), (450, 250, 200), 0.05)
    with pytest.raises(InvalidInputError, match="leave nothing for tests"):
        certify(*points, class_count=3, alpha=Decimal("0.1"), kinds=["predicted"], class_shares=of)


def test_a_class_without_labels_is_refused() -> None:
    rng = np.random.default_rng(2)

    single = [graded_points(rng, 100, size=1, frequencies=(0.5, 0.5, 0), sharpness=8.0) for _ in range(2)]
    asked: dict[str, Any] = {"class_count": 3, "alpha": Decimal("0.1"), "kinds": ["predicted"], "class_shares": BOX}
    with pytest.raises(InvalidInputError, match=r"got none of class \d"):
        certify(single[0], single[1].take(single[1].label < 2), **asked)
