"""Simulated: copies under other ids do not pass for evidence, so that a certificate keeps its promise beside them.

Each point comes five times over with the same vector, logits and label, as from a data set that was put together from
overlapping ones. Both classes are right just less often than is promised.
"""

import numpy as np
import pytest

from tests.guarantees.draws import Draws
from tests.guarantees.test_certificate import ALPHA, BELOW, CONFIDENCE, EPS, PREDICTED, Law, spread
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.copies import united
from venn_admit.core.documents import document_codes
from venn_admit.core.split_names import Split
from venn_admit.core.splits import assign_splits

COPIES = 5
LAW = Law(spread(0.5, 0.5), np.array([BELOW, BELOW]), documents=600)


def falls_short(draw: int, *, are_joined: bool) -> bool:
    """Whether the certified policy of a draw falls short; are_joined: whether copies are recognised."""
    points = LAW.draw(np.random.default_rng(draw), LAW.documents)
    rows = np.tile(np.arange(len(points.label)), COPIES)
    ids = [f"{draw}-{copy}" for copy in range(len(rows))]
    splits, keys = assign_splits(ids, seed=0), ids
    if are_joined:
        keys = united(ids, [row.to_bytes(4) for row in rows.tolist()])
        splits = assign_splits(keys, seed=0)
    documents = document_codes(keys)
    proposes = np.array([one is Split.KNN for one in splits])
    proposing, evidence = (
        CertificatePoints(points.score[held], points.predicted[held], points.label[held], documents[chosen])
        for chosen in (proposes, ~proposes)
        for held in (rows[chosen],)
    )
    certificate = certify(proposing, evidence, class_count=2, alpha=ALPHA, kinds=PREDICTED, confidence=CONFIDENCE)
    return certificate.policy is not None and LAW.falls_short(certificate.policy)


@pytest.mark.slow
def test_copies_do_not_break_the_promise() -> None:
    draws = Draws(EPS)
    for draw in draws:
        draws.add(falls_short(draw, are_joined=True))
    assert draws.seldom
    assert sum(falls_short(draw, are_joined=False) for draw in range(40)) > 40 * 2 * EPS


def test_a_certificate_says_nothing_of_how_often_a_content_comes() -> None:
    """Three tenths of the points are one content, which is always wrong; all others are .99 right."""
    rng, count = np.random.default_rng(0), 3_000
    is_one = rng.random(count) < 0.3
    predicted = np.where(is_one, 0, rng.integers(2, size=count))
    label = np.where(is_one | (rng.random(count) < 0.01), 1 - predicted, predicted)
    score = np.where(is_one, 0.98, rng.uniform(0.5, 1.0, count))
    ids = [str(row) for row in range(count)]
    keys = united(ids, [(0 if one else row + 1).to_bytes(4) for row, one in enumerate(is_one.tolist())])
    documents = document_codes(keys)
    of_knn = np.array([one is Split.KNN for one in assign_splits(keys, seed=0)])
    proposing, evidence = (
        CertificatePoints(score[held], predicted[held], label[held], documents[held]) for held in (of_knn, ~of_knn)
    )
    policy = certify(proposing, evidence, class_count=2, alpha=ALPHA, kinds=PREDICTED, confidence=CONFIDENCE).policy
    assert policy is not None
    least = policy.thresholds[0]
    assert least is not None
    admitted = (predicted == 0) & (score >= least)
    assert (label == predicted)[admitted].mean() < 0.6


def test_a_certificate_says_nothing_of_the_contents_of_more_traffic() -> None:
    """They are those of as many points as have labels: in more traffic, contents that come once are a larger part.

    One content, which is wrong, has .2 of the traffic, 2,500 that are .99 right have .65, and the others, .75 right,
    come once each. The traffic is .756 right, and the contents of a million points are .754 right.
    """
    count, often = 5_000, 2_500
    right_often = np.random.default_rng(5).random(often) < 0.99
    certified, shares = 0, []
    for draw in range(20):
        rng = np.random.default_rng(draw)
        place = rng.random(count)
        content = np.where(
            place < 0.2, 0, np.where(place < 0.85, 1 + rng.integers(often, size=count), np.arange(count))
        )
        content[place >= 0.85] += often + 1
        contents = np.unique(content)
        is_right = rng.random(len(contents)) < 0.75
        is_right[contents <= often] = np.append(False, right_often)[contents[contents <= often]]
        of_knn = rng.random(len(contents)) < 0.1
        proposing, evidence = (
            CertificatePoints(np.full(rows.sum(), 0.9), np.zeros(rows.sum(), np.int64), label, np.arange(rows.sum()))
            for rows in (of_knn, ~of_knn)
            for label in (np.where(is_right, 0, 1)[rows],)
        )
        made = certify(proposing, evidence, class_count=2, alpha=ALPHA, kinds=PREDICTED, confidence=CONFIDENCE)
        certified += made.policy is not None
        shares.append(is_right.mean())
    assert certified > 10
    assert np.mean(shares) == pytest.approx(0.92, abs=0.005)
