"""Every query of the page on reporting returns what arrays say, on the demo's data and settings."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import fresh_engine
from tests.running import EXAMPLES, REVIEW_ETA_LOC, REVIEW_PARAMETERS, Bench, Scores
from venn_admit.core.approximation.knn import softmax
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.core.monitoring.bands import label_budget
from venn_admit.flows.data.create import create
from venn_admit.flows.data.export import Export
from venn_admit.flows.keys.keys import create as create_key
from venn_admit.store.access.keys import Scope

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "reporting.md"
QUESTION = re.compile(r"^## (?P<question>[^\n]+\?)$(?P<answer>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
QUERY = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMES = ("negative", "positive")
FILES = ("test", "ood")
ALPHA, KAPPA = 0.1, 100
Rows = list[Any]


@dataclass(frozen=True)
class Demo:
    """The demo's classifier; calibration 1 is the demo's, 2 has the bins and radius it proposes, 3 is of Venn-Abers.

    scores: of each file, by calibration 1, in the order of `FILES`. wider: of test, by calibration 2.
    """

    bench: Bench
    labels: list[np.ndarray[Any, np.dtype[np.int64]]]
    scores: list[Scores]
    wider: Scores

    def column(self, name: str) -> np.ndarray[Any, np.dtype[Any]]:
        """A column of all that calibration 1 decided on."""
        return np.concatenate([scores.column(name) for scores in self.scores])

    @property
    def label(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.concatenate(self.labels)


@pytest.fixture(scope="module")
def demo(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with fresh_engine(server_url, template_database) as engine:
        bench = Bench(engine, tmp_path_factory.mktemp("reporting"))
        name = "sentiment-demo"
        create(engine, name, NAMES, dimension=128, neighbour_count=25, seed=0)
        bench.ingest(name, EXAMPLES / "train.npz", "train")
        bench.ingest(name, EXAMPLES / "valid.npz", "held-out")
        bench.adopt(name, REVIEW_PARAMETERS, REVIEW_ETA_LOC)
        bench.calibrate(name, kappa=KAPPA)
        scores = [bench.score(name, EXAMPLES / f"{file}.npz", weighted=False) for file in FILES]
        bench.request_score(name, EXAMPLES / "test.npz", weighted=True)  # a job that nobody computes
        bench.calibrate(name, kappa=KAPPA, q_bins=(0, 1, 6, 16, 25), delta=2.0)
        wider = bench.score(name, EXAMPLES / "test.npz", weighted=False)
        bench.calibrate_abers(name, score="network")
        create_key(engine, "a dashboard", scope=Scope.READ)
        labels = [np.load(EXAMPLES / f"{file}.npz")["y"].astype(np.int64) for file in FILES]
        yield Demo(bench, labels, scores, wider)


def in_use(demo: Demo, rows: Rows) -> None:
    assert [(row.calibration, row.method, row.score, row.kappa) for row in rows] == [(3, "venn-abers", "network", None)]
    assert rows[0].mc_count == len(demo.bench.export("sentiment-demo", Export.CALIBRATION, calibration_id=3))


def accuracy(demo: Demo, rows: Rows) -> None:
    decision = demo.column("decision")
    assert [row.class_name for row in rows] == list(NAMES)
    for number, row in enumerate(rows):
        admitted = decision == number
        tally = Tally(int((admitted & (demo.label == number)).sum()), int(admitted.sum()), len(decision))
        assert (row.admitted, row.share_correct) == (tally.count, pytest.approx(tally.share))
        assert row.share_admitted == pytest.approx(tally.portion)


def wrong(demo: Demo, rows: Rows) -> None:
    decision = demo.column("decision")
    missed = ~np.isnan(decision) & (decision != demo.label)
    assert Counter(row.external_id for row in rows) == Counter(demo.column("external_id")[missed].tolist())
    assert [row.lower for row in rows] == sorted(demo.column("lower")[missed].tolist(), reverse=True)


def by_day(demo: Demo, rows: Rows) -> None:
    decided = [*demo.scores, demo.wider]
    assert sum(row.points for row in rows) == sum(scores.table.num_rows for scores in decided)
    admitted = sum(int((~np.isnan(scores.column("decision"))).sum()) for scores in decided)
    assert sum(row.admitted for row in rows) == admitted
    assert datetime.now(UTC).date() - rows[-1].day <= timedelta(days=1)


def reasons(demo: Demo, rows: Rows) -> None:
    expected = Counter("admitted" if reason is None else reason for reason in demo.column("reason").tolist())
    assert {row.outcome: row.points for row in rows} == expected


def predictors(demo: Demo, rows: Rows) -> None:
    of_split = [of_calibration(demo, split) for split in ("mc", "vp")]
    label, said = (np.concatenate([part[name] for part in of_split]) for name in ("label", "predicted"))
    assert [(row.predictor, row.class_name) for row in rows] == [
        (who, name) for who in ("network", "KNN") for name in (*NAMES, None)
    ]
    assert {row.points for row in rows if row.class_name is None} == {len(label)}
    of_knn = rows[3:]
    assert [row.points for row in of_knn[:2]] == [int((label == c).sum()) for c in range(2)]
    assert [row.predictions for row in of_knn[:2]] == [int((said == c).sum()) for c in range(2)]
    assert of_knn[2].accuracy == (label == said).mean()
    assert of_knn[2].f_half == pytest.approx((of_knn[0].f_half + of_knn[1].f_half) / 2)


def coarse(demo: Demo, rows: Rows) -> None:
    q, d, label = demo.column("q"), demo.column("d"), demo.label
    probability = softmax(demo.column("logits"))[np.arange(len(label)), label]
    right, median = demo.column("predicted") == label, np.median(d)
    matches = {"q = 0": q == 0, "q = K": q == 25, "any q": q >= 0}
    distances = {"d < median": d < median, "d >= median": d >= median, "any d": d >= 0}
    assert len(rows) == 9
    for row in rows:
        inside = matches[row.q] & distances[row.d]
        assert row.points == inside.sum()
        assert row.accuracy == pytest.approx(right[inside].mean())
        assert row.threshold == pytest.approx(np.quantile(probability[inside], ALPHA))


def of_calibration(demo: Demo, split: str) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    table = demo.bench.export("sentiment-demo", Export.CALIBRATION, calibration_id=1)
    chosen = np.array(table.column("split").to_pylist()) == split
    return {name: np.array(table.column(name).to_pylist(), dtype=object)[chosen] for name in table.column_names}


def admits(demo: Demo, rows: Rows) -> None:
    vp, mc = of_calibration(demo, "vp"), of_calibration(demo, "mc")
    q, d = vp["q"].astype(int), vp["d"].astype(float)
    edges = np.quantile(np.concatenate([d, mc["d"].astype(float)]), [0.25, 0.5, 0.75])
    quartile = np.searchsorted(edges, d, side="right") + 1
    singleton = np.array([len(found) == 1 for found in vp["set"]])
    assert sum(row.points for row in rows) == len(q)
    for row in rows:
        inside = (q >= row.q_from) & (q <= row.q_to) & (quartile == row.d_quartile)
        assert (row.points, row.singletons) == (int(inside.sum()), int((inside & singleton).sum()))
        assert row.admitted <= row.singletons
    assert sum(row.admitted for row in rows) > 0


def drift(demo: Demo, rows: Rows) -> None:
    assert {row.job for row in rows} == {scores.request.job_id for scores in demo.scores}
    for number, scores in enumerate(demo.scores):
        own = [row for row in rows if row.job == scores.request.job_id]
        right = scores.column("predicted") == demo.labels[number]
        assert sum(row.share for row in own) == pytest.approx(1)
        assert sum(row.calibration_share for row in own) == pytest.approx(1)
        assert sum(row.labelled for row in own) == len(right)
        assert sum(row.labelled * (row.accuracy or 0) for row in own) == pytest.approx(right.sum())
    test, ood = ({row.stability_index for row in rows if row.job == scores.request.job_id} for scores in demo.scores)
    assert max(test) < 0.2 < min(ood)


def days(demo: Demo, rows: Rows) -> None:
    decided = [scores.column("decision") for scores in demo.scores]
    assert sum(row.points for row in rows) == sum(map(len, decided))
    assert sum(row.admitted for row in rows) == sum(int((~np.isnan(found.astype(float))).sum()) for found in decided)
    assert len({row.day for row in rows}) == len(rows)


def rests_on(_demo: Demo, rows: Rows) -> None:
    with np.load(EXAMPLES / "train.npz") as train, np.load(EXAMPLES / "test.npz") as test:
        distances = np.linalg.norm(train["r"].astype(float) - test["r"][0].astype(float), axis=1)
        nearest = np.argsort(distances, kind="stable")[:25]
        assert [row.neighbour for row in rows] == train["id"][nearest].tolist()
        assert [row.label_class for row in rows] == [NAMES[number] for number in train["y"][nearest]]
    assert [row.distance for row in rows] == pytest.approx(distances[nearest])


def band(demo: Demo, rows: Rows) -> None:
    mc, omega = of_calibration(demo, "mc"), demo.bench.value("SELECT omega FROM band_radius WHERE calibration_id = 2")
    inside = (mc["q"].astype(int) == 25) & (abs(mc["d"].astype(float) - 5.0) <= omega)
    held = np.bincount(mc["label"][inside].astype(int), minlength=2)
    assert [(row.class_name, row.band_size) for row in rows] == list(zip(NAMES, held.tolist(), strict=True))


def unlocked(demo: Demo, rows: Rows) -> None:
    starved = demo.column("reason") == "band below kappa"
    mc_count = len(of_calibration(demo, "mc")["q"])
    budget = label_budget(
        demo.column("band_size")[starved],
        demo.column("q")[starved].astype(np.int64),
        kappa=KAPPA,
        label_count=mc_count / 0.45,
    )
    assert len(rows) == 2 * len(budget.per_bin)
    for row in rows:
        expected = budget.per_bin[row.q_from]
        assert (row.points, row.lacking) == (expected.points, expected.lacking[NAMES.index(row.class_name)])
        assert row.labels_of_all == pytest.approx(expected.labels)
    assert rows[0].points_per_label == max(row.points_per_label for row in rows)


def ledger(demo: Demo, rows: Rows) -> None:
    found: Counter[str] = Counter()
    for row in rows:
        found[row.split] += row.labels
    assert found["scored"] == len(demo.label)
    assert found["mc"] == len(of_calibration(demo, "mc")["q"])
    assert {row.selection for row in rows if row.split == "scored"} == {"selected"}


def look_again(_demo: Demo, rows: Rows) -> None:
    with np.load(EXAMPLES / "train.npz") as train:
        order = dict(zip(train["id"].tolist(), range(len(train["id"])), strict=True))
        for row in rows:
            number = order[row.external_id]
            assert row.label_class == NAMES[train["y"][number]] != row.predicted_class
            assert row.predicted_class == NAMES[train["f"][number].argmax()]
    assert [row.runs_ended for row in rows] == sorted((row.runs_ended for row in rows), reverse=True)
    assert len(rows) == 20


def changed(demo: Demo, rows: Rows) -> None:
    def outcomes(scores: Scores) -> list[str]:
        pairs = zip(scores.column("decision").tolist(), scores.column("reason").tolist(), strict=True)
        return [reason or f"admitted as {NAMES[int(decision)]}" for decision, reason in pairs]

    pairs = Counter(zip(outcomes(demo.scores[0]), outcomes(demo.wider), strict=True))
    expected = {pair: count for pair, count in pairs.items() if pair[0] != pair[1]}
    decisions = [row for row in rows if row.kind == "decision"]
    assert {(row.outcome_a, row.outcome_b): row.flips for row in decisions} == expected
    assert {row.cause for row in rows} == {"threshold"}


def who(_demo: Demo, rows: Rows) -> None:
    assert [(row.who, row.action, row.is_done) for row in rows] == [("command line", "create_key", True)]


CHECKS: dict[str, Callable[[Demo, Rows], None]] = {
    "Which calibration decides now?": in_use,
    "Is what it admits right?": accuracy,
    "Which admitted predictions were wrong?": wrong,
    "How many are admitted each day?": by_day,
    "Why is a prediction rejected?": reasons,
    "How accurate are network and KNN?": predictors,
    "How accurate are predictions with few matches, or far from training?": coarse,
    "Where does a calibration admit anything?": admits,
    "Is the traffic still like the calibration data?": drift,
    "Which days were unlike the calibration data?": days,
    "What does one decision rest on?": rests_on,
    "Would a point with this q and d be admitted?": band,
    "Which labels would unlock the most?": unlocked,
    "Which labels arrived, and how were they chosen?": ledger,
    "Which training exemplars should be looked at again?": look_again,
    "What did a change of the calibration change?": changed,
    "Who changed what?": who,
}
ANSWERS = {found["question"]: QUERY.findall(found["answer"]) for found in QUESTION.finditer(PAGE.read_text("utf-8"))}


def test_every_question_has_one_query_that_is_checked() -> None:
    assert {question: len(queries) for question, queries in ANSWERS.items()} == dict.fromkeys(CHECKS, 1)
    assert len(QUERY.findall(PAGE.read_text("utf-8"))) == len(CHECKS)


@pytest.mark.parametrize("question", CHECKS)
def test_the_query_answers_the_question(demo: Demo, question: str) -> None:
    (query,) = ANSWERS[question]
    CHECKS[question](demo, demo.bench.rows(query))
