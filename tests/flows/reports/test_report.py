"""The report on a calibration: its counts are those of plain SQL, and its advice follows from what happened."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from tests.running import EXAMPLES, REVIEW_ETA_LOC, REVIEW_PARAMETERS, Arrays, Bench, Golden
from tests.templates import CopyOf, Filled
from venn_admit.cli.advice import command
from venn_admit.core.comparison.divisions import DIVISIONS
from venn_admit.core.monitoring.drift import discrepancies_of_documents, kolmogorov_smirnov
from venn_admit.core.reasons import Reason
from venn_admit.core.split_names import Split
from venn_admit.core.types import KnnParameters, TrainingEpoch
from venn_admit.errors import NotFoundError, NotReadyError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.export import Export
from venn_admit.flows.data.label import label
from venn_admit.flows.reports.report import report as flow
from venn_admit.report.calibration.advice import advice
from venn_admit.report.calibration.bands.part import BandsPart
from venn_admit.report.calibration.report import Agreement, CalibrationReport
from venn_admit.store.database.engine import transaction
from venn_admit.store.decisions import reports
from venn_admit.store.exemplars import approximations, classifiers
from venn_admit.store.exemplars.approximations import FitRecord

COUNT = 600
IDS = [f"tweet-{row}" for row in range(COUNT)]


def tweets() -> Arrays:
    with np.load(EXAMPLES / "ood.npz") as ood:
        return {name: ood[name][:COUNT] for name in ("r", "f", "y")} | {"id": np.array(IDS)}


def report(bench: Bench, name: str = "reviews", calibration_id: int | None = None) -> CalibrationReport:
    return flow(bench.workspace(), name, calibration_id=calibration_id)


def bands(found: CalibrationReport) -> BandsPart:
    assert isinstance(found.part, BandsPart)
    return found.part


def agreement_of(found: CalibrationReport) -> Agreement:
    assert found.agreement is not None
    return found.agreement


def give_labels(bench: Bench, rows: range, *, selection: str = "random") -> None:
    path = bench.folder / "labels.csv"
    truth = tweets()["y"]
    path.write_text("\n".join(["external_id,label", *(f"{IDS[row]},{truth[row]}" for row in rows)]) + "\n")
    label(bench.engine, "reviews", LabelFile(path), selection=selection, retract=False)


def adopt_as_fitted(bench: Bench, knn: KnnParameters, *, dev_count: int, dev_discrepancies: int) -> None:
    """Parameters with the record of a fit."""
    start = TrainingEpoch(0, np.nan, masked=False, discrepancies=dev_discrepancies, parameters=np.zeros(1))
    record = FitRecord(dev_count, dev_count, dev_discrepancies, 0.2, (start,), (start,))
    with transaction(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "reviews")
        approximations.add_parameters(connection, classifier, knn, REVIEW_ETA_LOC, record)


def score_tweets(bench: Bench) -> None:
    arrays = tweets() | {"y": np.full(COUNT, -1)}
    bench.score("reviews", bench.write("tweets.npz", arrays))
    part = {name: values[:200] for name, values in arrays.items()}
    bench.score("reviews", bench.write("part.npz", part), weighted=False, require_full_match=True)


@pytest.fixture(scope="module")
def scored_template(filled: Filled, few_reviews_template: str) -> str:
    return filled(score_tweets, few_reviews_template)


@pytest.fixture
def scored(copy_of: CopyOf, scored_template: str) -> Bench:
    """Tweets without labels, scored under the default options and in part under others."""
    return copy_of(scored_template)


def test_what_is_stored(scored: Bench) -> None:
    give_labels(scored, range(500, 520), selection="selected")
    found = report(scored)
    counts = scored.rows("SELECT split, count(*) AS n, count(label) AS labelled FROM exemplar GROUP BY split")
    assert {split: n for split, n in found.inventory.exemplars.items() if n} == {row.split: row.n for row in counts}
    assert {s: n for s, n in found.inventory.labelled.items() if n} == {row.split: row.labelled for row in counts}
    assert [(one.selection, one.exemplars, one.calibrating) for one in found.inventory.selections] == [
        ("random", 4_000, 4_000),
        ("selected", 20, 0),
    ]
    first, newest = found.inventory.selections[1].first, found.inventory.selections[1].newest
    assert first == newest == scored.value("SELECT max(created_at) FROM label_event")
    assert (found.snapshot.mc_count, found.snapshot.vp_count) == (
        found.inventory.exemplars[Split.MC],
        found.inventory.exemplars[Split.VP],
    )
    assert (found.snapshot.reason, found.state) == ("test", "in use")
    assert found.changes.total == 0


def test_other_divisions(few_reviews: Bench) -> None:
    """The division in use is one of many: what it admits lies about the others, until the neighbours change."""
    found = report(few_reviews)
    shares = bands(found).divisions
    assert len(set(shares)) == len(shares) == DIVISIONS
    spread = max(shares) - min(shares)
    admitted = bands(found).admitted_of_vp / found.snapshot.vp_count
    assert min(shares) - spread <= admitted <= max(shares) + spread
    with np.load(EXAMPLES / "valid.npz") as valid:
        near = {name: valid[name][:100] for name in ("r", "f", "y")}
    few_reviews.ingest("reviews", few_reviews.write("near.npz", near), "train")
    few_reviews.calibrate("reviews", kappa=100)
    assert bands(report(few_reviews, calibration_id=1)).divisions == ()
    assert len(bands(report(few_reviews)).divisions) == DIVISIONS


def test_labels_that_came_since_are_counted_until_they_calibrate(scored: Bench) -> None:
    give_labels(scored, range(200))
    joined = scored.value("SELECT count(*) FROM exemplar WHERE external_id LIKE 'tweet-%' AND split IN ('mc', 'vp')")
    found = report(scored)
    changes = found.changes
    assert (changes.arrived, changes.changed, changes.left) == (joined, 0, 0)
    assert any(
        "`venn-admit calibrate reviews --method venn-admit --kappa 100`" in line for line in advice(found, command)
    )

    scored.calibrate("reviews", kappa=100)
    now = report(scored)
    assert now.changes.total == 0
    assert not any("labelled points arrived" in line for line in advice(now, command))
    # What the snapshot before decided is recent traffic all the same, labels or none.
    assert now.traffic is not None
    assert now.traffic.decided_by == {1: COUNT}
    assert (now.traffic.own_outcomes, now.traffic.accuracy) == ((), ())
    assert now.traffic.comparison is not None
    assert now.traffic.comparison.points == COUNT
    # The same points of the snapshot before are still to come.
    old = report(scored, calibration_id=1)
    assert old.state == "retired"
    assert old.changes == changes
    assert advice(old, command) == ["This calibration is retired: `venn-admit report reviews` shows the one in use."]


def test_corrections_and_labels_taken_back(few_reviews: Bench) -> None:
    points = few_reviews.rows("SELECT external_id, label FROM exemplar WHERE split IN ('mc', 'vp') ORDER BY id LIMIT 5")
    path = few_reviews.folder / "labels.csv"
    lines = [f"{row.external_id},{1 - row.label if number < 3 else ''}" for number, row in enumerate(points)]
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    label(few_reviews.engine, "reviews", LabelFile(path), selection="random", retract=True)
    changes = report(few_reviews).changes
    assert (changes.arrived, changes.changed, changes.left, changes.total) == (0, 3, 2, 5)


def test_partitions_are_those_of_plain_sql(few_reviews: Bench) -> None:
    found = bands(report(few_reviews)).partitions
    rows = few_reviews.rows(
        "SELECT split, q_from AS q, label, sum(points) AS points, coalesce(sum(singletons), 0) AS singletons "
        "FROM report.partition_v2 "
        "WHERE calibration = (SELECT calibration FROM report.calibration_v2 WHERE is_in_use) "
        "GROUP BY split, q_from, label"
    )
    for split, counts in (("mc", found.mc_count), ("vp", found.vp_count)):
        expected = np.zeros((26, 2), dtype=np.int64)
        for row in rows:
            if row.split == split:
                expected[row.q, row.label] = row.points
        assert counts.sum(axis=1).tolist() == expected.tolist()
    assert found.singleton.sum() == sum(row.singletons for row in rows)
    right = "SELECT count(*) FROM calibration_point WHERE is_singleton AND predicted = label"
    assert found.right.sum() == few_reviews.value(right)
    # A band below kappa makes the set all classes; so does a band that leaves both plausible.
    assert found.singleton.sum() <= found.usable.sum() <= found.vp_count.sum()


def test_traffic_against_a_direct_computation(scored: Bench) -> None:
    traffic = report(scored).traffic
    assert traffic is not None
    assert traffic.comparison is not None
    assert (traffic.points, traffic.comparison.points) == (COUNT, COUNT)
    for column, quantity in (("match_count", "q"), ("distance", "d")):
        shift = traffic.comparison.shifts[quantity]
        vp = scored.rows(f"SELECT {column} AS x FROM calibration_point WHERE split = 'vp'")
        decided = scored.rows(f"SELECT {column} AS x FROM decision WHERE weighted")
        expected = ks_2samp([row.x for row in vp], [row.x for row in decided], method="asymp")
        assert shift.test.statistic == pytest.approx(expected.statistic, abs=1e-12)
        assert shift.test.p_value == pytest.approx(expected.pvalue, rel=0.05, abs=1e-6)
    # The newer decision on exemplars decided on twice counts.
    assert [(outcome.weighted, outcome.require_full_match, outcome.points) for outcome in traffic.outcomes] == [
        (True, False, COUNT - 200),
        (False, True, 200),
    ]
    newest = "SELECT DISTINCT ON (exemplar_id) weighted, reason FROM decision ORDER BY exemplar_id, id DESC"
    for outcome in traffic.outcomes:
        reasons = {
            row.reason: row.n
            for row in scored.rows(
                f"SELECT reason, count(*) AS n FROM ({newest}) AS newest WHERE weighted = :weighted GROUP BY reason",
                weighted=outcome.weighted,
            )
        }
        assert outcome.admitted == reasons.get(None, 0)
        assert outcome.rejected == {reason: reasons.get(reason, 0) for reason in Reason}
    assert traffic.own_outcomes == traffic.outcomes


def test_what_would_be_admitted_is_what_plain_scoring_admits(scored: Bench) -> None:
    """Decided again under the snapshot, in arrays, whatever the options were."""
    plain = scored.score("reviews", scored.write("tweets.npz", tweets() | {"y": np.full(COUNT, -1)}), weighted=False)
    found = report(scored).traffic
    assert found is not None
    assert found.comparison is not None
    assert found.comparison.shares["admitted"].recent.count == np.isfinite(plain.column("decision")).sum() > 0
    starved = plain.column("reason") == Reason.BAND_BELOW_KAPPA
    assert found.comparison.shares["usable"].recent.count == COUNT - starved.sum()


class TestRecentTraffic:
    def test_other_tweets_are_advised_upon_and_reviews_are_not(self, reviews: Bench) -> None:
        with np.load(EXAMPLES / "test.npz") as test:
            arrays = {name: test[name] for name in ("r", "f")}
        reviews.score("reviews", reviews.write("test.npz", arrays))
        found = report(reviews)
        assert found.traffic is not None
        assert advice(found, command) == []
        reviews.score("reviews", reviews.write("tweets.npz", tweets() | {"y": np.full(COUNT, -1)}))
        (unlike,) = advice(report(reviews), command)
        assert unlike.startswith("Recent traffic is unlike vp: the distributions of q differ by")
        assert "would be admitted by plain probabilities, of vp" in unlike

    def test_nothing_usable(self, few_reviews: Bench) -> None:
        few_reviews.calibrate("reviews", kappa=1000)
        found = report(few_reviews)
        assert (bands(found).partitions.usable.sum(), bands(found).admitted_of_vp) == (0, 0)
        (rejected,) = advice(found, command)
        assert rejected.startswith("Nearly everything is rejected: .000 of vp lie in usable bands")
        assert (
            "`venn-admit calibrate reviews --method venn-admit --kappa 50 --q-bins 0,1,6,16,25` would leave" in rejected
        )

    def test_labels_of_admitted_points(self, few_reviews: Bench) -> None:
        """Given wrong labels, what was admitted looks wrong, and that comes first."""
        scores = few_reviews.score("reviews", few_reviews.write("tweets.npz", tweets() | {"y": np.full(COUNT, -1)}))
        decision = scores.column("decision")
        admitted = np.flatnonzero(np.isfinite(decision))
        wrong = [f"{IDS[row]},{1 - int(decision[row])}" for row in admitted]
        path = few_reviews.folder / "wrong.csv"
        path.write_text("\n".join(["external_id,label", *wrong]) + "\n")
        label(few_reviews.engine, "reviews", LabelFile(path), selection="random", retract=False)
        found = report(few_reviews)
        assert found.traffic is not None
        assert (found.traffic.accuracy[0].right, found.traffic.accuracy[0].points) == (0, len(admitted))
        assert advice(found, command)[0].startswith("Admitted predictions are wrong too often")

    def test_a_random_label_that_somebody_corrects_counts_as_random(self, few_reviews: Bench) -> None:
        """Without it, errors that are found later would be left out."""
        scores = few_reviews.score("reviews", few_reviews.write("tweets.npz", tweets() | {"y": np.full(COUNT, -1)}))
        admitted = np.flatnonzero(np.isfinite(scores.column("decision")))
        counted = []
        for selection, flips, rows in (("random", 0, admitted), ("selected", 1, admitted[:4])):
            lines = [f"{IDS[row]},{abs(flips - int(scores.column('decision')[row]))}" for row in rows]
            path = few_reviews.folder / "given.csv"
            path.write_text("\n".join(["external_id,label", *lines]) + "\n")
            label(few_reviews.engine, "reviews", LabelFile(path), selection=selection, retract=False)
            found = report(few_reviews)
            assert found.traffic is not None
            counted.append((found.traffic.accuracy[0].right, found.traffic.accuracy[0].points))
            assert [one.exemplars for one in found.inventory.selections] == [4_000 + len(admitted)]
        assert counted == [(len(admitted), len(admitted)), (len(admitted) - 4, len(admitted))]

    def test_a_random_label_that_was_taken_back_says_nothing_of_the_next(self, few_reviews: Bench) -> None:
        """As `label` advises for labels that were said to be random and are not; corrections change only the label."""
        few_reviews.score("reviews", few_reviews.write("tweets.npz", tweets() | {"y": np.full(COUNT, -1)}))
        give_labels(few_reviews, range(5))
        path = few_reviews.folder / "given.csv"
        for lines, retract in ((f"{IDS[0]},\n{IDS[1]},\n", True), (f"{IDS[4]},{1 - tweets()['y'][4]}\n", False)):
            path.write_text(f"external_id,label\n{lines}")
            label(few_reviews.engine, "reviews", LabelFile(path), selection="selected", retract=retract)
        give_labels(few_reviews, range(1), selection="selected")
        found = report(few_reviews)
        counted = [(one.selection, one.exemplars, one.calibrating) for one in found.inventory.selections]
        assert counted == [("random", 4_003, 4_003), ("selected", 1, 0)]
        rows = few_reviews.rows(found.queries["labels"])
        assert [(row.selection, row.exemplars, row.calibrating) for row in rows] == counted

    def test_only_so_many_points_are_read_evenly(self, scored: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reports, "RECENT", 400)
        found = report(scored).traffic
        assert found is not None
        # All 200 of the newest request, and every third of the one before, which holds these and 400 others.
        assert [(outcome.weighted, outcome.points) for outcome in found.outcomes] == [(True, 133), (False, 200)]

    def test_after_a_change_of_parameters_or_training_data_nothing_is_compared(self, scored: Bench) -> None:
        adopt_as_fitted(scored, REVIEW_PARAMETERS, dev_count=800, dev_discrepancies=22)
        scored.calibrate("reviews", kappa=100)
        found = report(scored)
        assert found.traffic is not None
        assert (found.traffic.points, found.traffic.comparison, bands(found).lacking) == (COUNT, None, None)

    def test_traffic_to_label_is_exported_in_random_order(self, scored: Bench) -> None:
        """With what was chosen to be labelled, or the first rows were no random sample."""
        give_labels(scored, range(480, 500))
        give_labels(scored, range(500, 520), selection="selected")
        table = scored.export("reviews", Export.UNLABELLED)
        exported = table.column("external_id").to_pylist()
        assert sorted(exported) == sorted(set(IDS) - set(IDS[480:500]))
        known = {name: label for name, label in zip(exported, table.column("label").to_pylist(), strict=True) if label}
        assert known == {IDS[row]: f"class {tweets()['y'][row]}" for row in range(500, 520)}
        rows = [IDS.index(name) for name in exported]
        assert abs(np.corrcoef(rows, np.arange(len(rows)))[0, 1]) < 0.15
        assert scored.export("reviews", Export.UNLABELLED).column("external_id").to_pylist() == exported


def test_points_of_a_document_count_as_one(few_reviews: Bench) -> None:
    arrays = tweets() | {"y": np.full(COUNT, -1), "doc": np.array([f"doc-{row // 8}" for row in range(COUNT)])}
    few_reviews.score("reviews", few_reviews.write("tokens.npz", arrays))
    found = report(few_reviews)
    assert found.traffic is not None
    assert found.traffic.comparison is not None
    of_vp = "SELECT sum(n) ^ 2 / sum(n ^ 2) FROM (SELECT count(*) AS n FROM exemplar {} GROUP BY {}) AS document"
    vp_size = few_reviews.value(of_vp.format("WHERE split = 'vp'", "coalesce(document_id, external_id)"))
    vp = few_reviews.rows("SELECT distance FROM calibration_point WHERE split = 'vp'")
    decided = few_reviews.rows("SELECT distance FROM decision")
    expected = kolmogorov_smirnov(
        np.array([row.distance for row in vp]), np.array([row.distance for row in decided]), float(vp_size), COUNT / 8
    )
    assert found.traffic.comparison.shifts["d"].test == expected
    documents = few_reviews.rows(
        "SELECT count(*) AS points, count(*) FILTER (WHERE predicted <> network_predicted) AS differing "
        "FROM exemplar INNER JOIN approximation ON exemplar_id = exemplar.id "
        "WHERE split = 'scored' GROUP BY document_id"
    )
    points, differing = (np.array([row[i] for row in documents]) for i in range(2))
    scored = agreement_of(found).scored
    assert (scored.points, scored.differing) == (COUNT, differing.sum())
    assert scored.design_effect == pytest.approx(
        discrepancies_of_documents(points, differing, np.ones(len(points), dtype=np.int64)).design_effect
    )


def test_what_the_snapshot_was_made_with_is_left_out(few_reviews: Bench) -> None:
    with np.load(EXAMPLES / "valid.npz") as valid:
        known = {name: valid[name][:100] for name in ("r", "f", "y", "doc")}
    stored = few_reviews.rows("SELECT external_id FROM exemplar WHERE split <> 'train' ORDER BY id LIMIT 100")
    known["id"] = np.array([row.external_id for row in stored])
    few_reviews.score("reviews", few_reviews.write("known.npz", known))
    found = report(few_reviews)
    assert (found.seen_count, found.traffic, bands(found).lacking) == (100, None, None)


def test_label_budget_counts_each_starved_point_once(scored: Bench) -> None:
    budget = bands(report(scored)).lacking
    assert budget is not None
    rows = scored.rows(
        "SELECT match_count, band_size FROM decision JOIN admit_evidence ON decision.id = decision_id"
        " WHERE weighted AND reason = 'band below kappa' ORDER BY id"
    )
    assert budget.overall.points == len(rows) > 0
    lacking = np.maximum(0, 100 - np.array([row.band_size for row in rows]))
    assert budget.overall.lacking.tolist() == np.sort(lacking, axis=0)[len(rows) // 2].tolist()
    per_bin = {number: part.points for number, part in budget.per_bin.items()}
    q, points = np.unique([row.match_count for row in rows], return_counts=True)
    assert per_bin == dict(zip(q.tolist(), points.tolist(), strict=True))


class TestDiscrepancies:
    def differing(self, bench: Bench, splits: str) -> int:
        count: int = bench.value(
            "SELECT count(*) FROM approximation INNER JOIN exemplar ON exemplar_id = exemplar.id "
            "INNER JOIN knn_parameters ON knn_parameters_id = knn_parameters.id "
            f"WHERE is_current AND predicted <> network_predicted AND split IN ({splits})"
        )
        return count

    def test_given_parameters_have_no_fit_to_compare_with(self, scored: Bench) -> None:
        agreement = agreement_of(report(scored))
        assert agreement.at_fit is None
        assert not agreement.grown(agreement.scored)
        assert agreement.held_out.differing == self.differing(scored, "'mc', 'vp'") > 0
        assert (agreement.scored.differing, agreement.scored.points) == (self.differing(scored, "'scored'"), COUNT)
        assert not any("KNN and network differ" in line for line in advice(report(scored), command))

    def test_after_a_fit_there_is_nothing_to_advise(self, few_reviews: Bench) -> None:
        record = few_reviews.fit("reviews").record
        few_reviews.calibrate("reviews", kappa=100)
        found = report(few_reviews)
        at_fit = agreement_of(found).at_fit
        assert at_fit is not None
        assert (at_fit.differing, at_fit.points) == (record.dev_discrepancies, record.dev_count)
        assert advice(found, command) == []

    def test_a_fit_is_advised_where_they_have_grown(self, few_reviews: Bench) -> None:
        skewed = KnnParameters(REVIEW_PARAMETERS.beta + np.array([0.0, 0.5]), REVIEW_PARAMETERS.gamma, 4.7)
        adopt_as_fitted(few_reviews, skewed, dev_count=800, dev_discrepancies=22)
        (before,) = advice(report(few_reviews), command)
        assert "Newer KNN parameters" in before
        few_reviews.calibrate("reviews", kappa=100)
        found = report(few_reviews)
        agreement = agreement_of(found)
        assert agreement.held_out.share > 0.05
        assert agreement.grown(agreement.held_out)
        (found_advice,) = advice(found, command)
        assert "on mc and vp" in found_advice
        assert "`venn-admit fit reviews`" in found_advice

    def test_grown_on_scored_exemplars_alone(self, few_reviews: Bench) -> None:
        """The tweets are unlike the reviews: a sample of them has to be labelled first."""
        held_out = agreement_of(report(few_reviews)).held_out
        adopt_as_fitted(few_reviews, REVIEW_PARAMETERS, dev_count=held_out.points, dev_discrepancies=held_out.differing)
        few_reviews.calibrate("reviews", kappa=100)
        assert advice(report(few_reviews), command) == []
        few_reviews.score("reviews", few_reviews.write("tweets.npz", tweets() | {"y": np.full(COUNT, -1)}))
        _, found_advice = advice(report(few_reviews), command)
        assert "on scored exemplars" in found_advice
        assert "label a random sample of them, which `venn-admit fit reviews` uses" in found_advice


def test_before_the_first_calibration(bench: Bench) -> None:
    Golden("edge").prepare(bench, "edge")
    with pytest.raises(NotReadyError, match="has no calibration yet: calibrate it first"):
        report(bench, "edge")


def test_unknown_name_and_number(few_reviews: Bench) -> None:
    with pytest.raises(NotFoundError, match="no classifier is named 'nothing'"):
        report(few_reviews, "nothing")
    with pytest.raises(NotFoundError, match="has no calibration 99"):
        report(few_reviews, calibration_id=99)
