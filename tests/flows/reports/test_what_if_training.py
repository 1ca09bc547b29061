"""What would change if training exemplars were different is what does change, bit for bit; asking stores nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from tests.cli.program import versions
from tests.flows.calibration.test_class_shares import rows
from tests.flows.decisions.test_venn_abers import RELIABILITY
from tests.flows.logits import ALPHA, CLASSES, WITH_VECTORS, with_vectors
from tests.flows.recalibration import give
from tests.running import EXAMPLES, Bench, Golden, workspace
from tests.templates import CopyOf, Fill, Filled
from venn_admit.core.calibrators.class_shares import EstimatedShares
from venn_admit.core.calibrators.snapshot_rows import CalibrationRows, changed_rows
from venn_admit.core.types import Approximation, CalibrationPoints, KnnParameters
from venn_admit.errors import InvalidInputError, NotFoundError, NotReadyError, OutdatedError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.calibration.in_use import use
from venn_admit.flows.data.label import label
from venn_admit.flows.reports.other_training import MOST_CHANGES, other_training
from venn_admit.flows.reports.what_if_training import Following, follow, what_if_training
from venn_admit.methods.method import PointsToDecide
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.methods.venn_admit.make import MadeByAdmit
from venn_admit.report.what_if.training import KEPT, TRAFFIC, Flip, TrainingEffects, training_sections
from venn_admit.store.calibrations import calibrations, venn_abers
from venn_admit.store.calibrations.calibration_points import rows_of
from venn_admit.store.database.engine import consistent_view, create_engine
from venn_admit.store.exemplars import classifiers, exemplars

BUDGET = 64 << 20
METHODS = ("venn-admit", "venn-abers")
AVERAGE = "venn-abers-on-average"
OPTIONS = [(weighted, full) for weighted in (False, True) for full in (False, True)]
ON_MOST_LISTS = """
SELECT external_id, exemplar.label FROM exemplar INNER JOIN (
    SELECT unnest(neighbour_ids) AS id, count(*) AS lists FROM neighbours GROUP BY 1
) AS listed USING (id)
WHERE exemplar.split = 'train'
ORDER BY lists DESC, id LIMIT :count
"""
NEWEST = """
SELECT DISTINCT ON (exemplar_id) exemplar.external_id, decision.decision
FROM decision INNER JOIN exemplar ON exemplar.id = exemplar_id
WHERE calibration_id = :calibration_id
ORDER BY exemplar_id, decision.id DESC
"""
VIEWS = """
SELECT exemplar.id, exemplar.split, approximation.predicted, match_count, distance, logits
FROM exemplar
INNER JOIN approximation ON exemplar.id = exemplar_id
INNER JOIN knn_parameters ON knn_parameters.id = knn_parameters_id
WHERE knn_parameters.is_current
ORDER BY exemplar.id
"""
COUNTS = "SELECT count(*) FROM {}"


@dataclass(frozen=True)
class Case:
    """A calibrated classifier with points that were decided on, and how both were made."""

    bench: Bench
    name: str
    calibrate: Callable[[], int]
    scored: Any
    changes: int
    options: list[tuple[bool, bool]]

    def decide_all(self) -> None:
        """Decide on all points with every option; which one is the newest is not the same for all points."""
        quarter = len(self.scored["id"]) // 4
        for first in range(4):
            rows = slice(first * quarter, None if first == 3 else (first + 1) * quarter)
            part = self.bench.write(f"part-{first}.npz", {key: values[rows] for key, values in self.scored.items()})
            for weighted, full_match in self.options[first:] + self.options[:first]:
                self.bench.score(self.name, part, weighted=weighted, require_full_match=full_match)

    def popular(self, count: int) -> dict[str, int]:
        """Training exemplars on most lists, with their labels."""
        return {row.external_id: row.label for row in self.bench.rows(ON_MOST_LISTS, count=count)}

    def what_if(self, relabel: Mapping[str, int], leave_out: list[str]) -> tuple[TrainingEffects, Following]:
        found = what_if_training(
            self.bench.workspace(memory_budget=BUDGET), self.name, relabel=relabel, leave_out=leave_out
        )
        with consistent_view(self.bench.engine) as connection:
            asked = other_training(connection, self.name, relabel, leave_out)
            return found, follow(self.bench.workspace(memory_budget=BUDGET), connection, asked)

    def change(self, relabel: Mapping[str, int], leave_out: list[str]) -> None:
        """Really change the training exemplars, by labels."""
        path = self.bench.folder / "labels.csv"
        lines = [*(f"{key},{value}" for key, value in relabel.items()), *(f"{key}," for key in leave_out)]
        path.write_text("\n".join(["external_id,label", *lines]))
        done = label(self.bench.engine, self.name, LabelFile(path), selection="selected", retract=True)
        assert (done.corrected, done.retracted) == (len(relabel), len(leave_out))

    def stored_rows(self) -> CalibrationRows:
        with consistent_view(self.bench.engine) as connection:
            classifier = classifiers.by_name(connection, self.name)
            calibration = calibrations.latest(connection, classifier)
            return rows_of(connection, calibration.calibrator_id, classifier.class_count)

    def newest(self) -> dict[str, int | None]:
        calibration_id = self.bench.value("SELECT max(id) FROM calibration WHERE state = 'current'")
        rows = self.bench.rows(NEWEST, calibration_id=calibration_id)
        return {row.external_id: row.decision for row in rows}


def edge_case(bench: Bench, method: str = "venn-admit") -> Case:
    """The classifier of the golden file, which `edge` has calibrated by venn-admit."""
    golden = Golden("edge")
    calibrate = {
        "venn-admit": lambda: bench.calibrate("edge", **golden.settings).calibration_id,
        "venn-abers": lambda: bench.calibrate_abers("edge", score="network", q_bins=(0, 1)).calibration_id,
    }[method]
    return Case(bench, "edge", calibrate, golden.exemplars("score"), 8, OPTIONS)


def reviews_case(bench: Bench, method: str) -> Case:
    calibrate = {
        "venn-admit": lambda: bench.calibrate("reviews", kappa=100).calibration_id,
        "venn-abers": lambda: (
            bench.calibrate_abers("reviews", score="reliability", certify=["predicted"]).calibration_id
        ),
        AVERAGE: lambda: bench.calibrate_abers("reviews", score="reliability", promise="average").calibration_id,
    }[method]
    # Weights have no part in a certificate.
    options = OPTIONS if method == "venn-admit" else OPTIONS[:2]
    with np.load(EXAMPLES / "ood.npz") as arrays:
        scored = {name: arrays[name][:200] for name in ("r", "f")}
    return Case(
        bench, "reviews", calibrate, scored | {"id": np.array([f"tweet-{row}" for row in range(200)])}, 200, options
    )


CASES = [
    *((f"edge {method}", kind) for method in METHODS for kind in ("relabelled", "left out", "both")),
    *((f"reviews {method}", "both") for method in (*METHODS, AVERAGE)),
]


MADE = {"edge": edge_case, "reviews": reviews_case}


@cache
def decided(data: str, method: str) -> Fill:
    def fill(bench: Bench) -> None:
        if data == "edge":
            Golden("edge").prepare(bench, "edge")
        else:
            bench.adopt("reviews", reliability=RELIABILITY)
        made = MADE[data](bench, method)
        made.calibrate()
        made.decide_all()

    return fill


@pytest.fixture
def case(request: pytest.FixtureRequest, copy_of: CopyOf, filled: Filled, few_reviews_template: str) -> Case:
    """Small data with ties, or the bundled data, calibrated by either method and decided on with every option."""
    data, method = request.param.split()
    template = filled(decided(data, method), few_reviews_template if data == "reviews" else None)
    return MADE[data](copy_of(template), method)


def view_counts(before: list[Any], after: list[Any], split: str) -> tuple[int, int, int]:
    pairs = [(was, now) for was, now in zip(before, after, strict=True) if was.split == split]
    return (
        sum(was.predicted != now.predicted for was, now in pairs),
        sum(was.match_count != now.match_count for was, now in pairs),
        sum(was.distance != now.distance for was, now in pairs),
    )


def check_same_rows(stored: CalibrationRows, foretold: CalibrationRows) -> None:
    changes = changed_rows(stored, foretold)
    assert (len(changes.closed_ids), len(changes.opened)) == (0, 0)


@pytest.mark.parametrize(("case", "kind"), CASES, indirect=["case"])
def test_it_is_what_really_happens(case: Case, kind: str) -> None:
    bench, popular = case.bench, case.popular(case.changes)
    names = list(popular)
    relabel = {
        name: 0 if popular[name] else 1
        for name in names[: {"relabelled": case.changes, "left out": 0, "both": 2}[kind]]
    }
    leave_out = names[len(relabel) :]
    before, rows_before, views = case.newest(), case.stored_rows(), bench.rows(VIEWS)
    url = bench.engine.url.render_as_string(hide_password=False)
    stored = versions(url)

    found, following = case.what_if(relabel, leave_out)
    # Every decision, with its probabilities, as the snapshot that is not stored would make it.
    foretold = {option: verdicts(case, following, *option) for option in case.options}
    assert versions(url) == stored

    case.change(relabel, leave_out)
    case.calibrate()
    made = following.made
    check_same_rows(case.stored_rows(), made.rows)
    with consistent_view(bench.engine) as connection:
        classifier = classifiers.by_name(connection, case.name)
        calibration = calibrations.latest(connection, classifier)
        if isinstance(made, MadeByAdmit):
            assert made.radius == calibration.radius
        else:
            assert isinstance(made, MadeByAbers)
            closed, opened = venn_abers.changed_steps(
                venn_abers.steps_of(connection, calibration.calibrator_id), made.steps
            )
            assert (len(closed.cell), len(opened.cell)) == (0, 0)
            assert venn_abers.choice_of(connection, calibration.id) == made.choice
            assert venn_abers.certificate_of(connection, calibration.id) == made.certificate
            assert venn_abers.average_of(connection, calibration.id) == made.average
            assert ((made.certificate or made.average) is not None) == (case.name == "reviews")
    case.decide_all()
    for (weighted, full_match), expected in foretold.items():
        decided = bench.rows(
            "SELECT exemplar.external_id, predicted, decision, reason, lower, upper, upweight, logits, match_count"
            " FROM decision INNER JOIN exemplar ON exemplar.id = exemplar_id"
            " WHERE calibration_id = :calibration_id AND weighted = :weighted AND require_full_match = :full_match",
            calibration_id=calibration.id,
            weighted=weighted,
            full_match=full_match,
        )
        assert {row.external_id: tuple(row[1:7]) for row in decided} == expected

    after, class_names = case.newest(), (*found.class_names, None)
    flipped = tuple(
        Flip(name, *(None if one is None else class_names[one] for one in (before[name], after[name])))
        for name in before
        if before[name] != after[name]
    )
    assert found.flipped == flipped
    assert found.flips.total == len(flipped)
    check_class_counts(found, list(before.values()), [after[name] for name in before])
    check_views(found, views, bench.rows(VIEWS))
    check_snapshot(found, rows_before, case.stored_rows())
    if case.name == "reviews":
        assert found.flips.total > 0


def verdicts(case: Case, following: Following, weighted: bool, full_match: bool) -> dict[str, tuple[Any, ...]]:
    """What the snapshot that would follow decides on all scored points, as it would be stored."""
    asked = following.asked
    with consistent_view(case.bench.engine) as connection:
        ids = np.array(connection.execute(text("SELECT DISTINCT exemplar_id FROM decision ORDER BY 1")).scalars().all())
        rows = connection.execute(
            text(
                "SELECT logits, predicted, match_count, distance FROM approximation"
                " WHERE exemplar_id = ANY(:ids) AND knn_parameters_id = :key ORDER BY exemplar_id"
            ),
            {"ids": ids.tolist(), "key": asked.parameters.id},
        ).all()
        stored = Approximation(
            np.array([row.logits for row in rows]),
            *(np.array([row[place] for row in rows]) for place in (1, 2, 3)),
        )
        points = PointsToDecide(
            following.instead.replaced(ids, stored),
            exemplars.vectors(connection, asked.classifier, ids) if weighted else None,
            exemplars.network_logits(connection, asked.classifier, ids),
        )
        names = exemplars.keys(connection, ids).row_keys
    decided = following.ready(weighted=weighted).decide(points, require_full_match=full_match)
    fields = ("predicted", "decision", "reason", "lower", "upper", "upweight")
    each = zip(names, decided.fields_of_each(), strict=True)
    return {name: tuple(found[field] for field in fields) for name, found in each}


def check_class_counts(found: TrainingEffects, before: list[int | None], after: list[int | None]) -> None:
    pairs = list(zip(before, after, strict=True))
    for number in range(len(found.class_names)):
        flips = found.flips
        assert flips.admitted_before[number] == before.count(number)
        assert flips.admitted_after[number] == after.count(number)
        assert flips.rejected[number] == pairs.count((number, None))
        assert flips.admitted[number] == pairs.count((None, number))


def check_views(found: TrainingEffects, before: list[Any], after: list[Any]) -> None:
    kept = {row.id for row in before} & {row.id for row in after}
    before, after = ([row for row in rows if row.id in kept] for rows in (before, after))
    only_mc = (found.classifier, found.method) == ("edge", "venn-abers")  # the others have vp in their snapshot
    assert set(found.views) == ({"mc", "decided"} if only_mc else {"mc", "vp", "decided"})
    for split in found.views.keys() - {"decided"}:
        expected = found.views[split]
        assert (expected.predicted, expected.match_count, expected.distance) == view_counts(before, after, split)
        assert expected.points == sum(row.split == split for row in before)
    decided = found.views["decided"]
    assert (decided.predicted, decided.match_count, decided.distance) == view_counts(before, after, "scored")
    assert decided.touched <= decided.points


def check_snapshot(found: TrainingEffects, before: CalibrationRows, after: CalibrationRows) -> None:
    """What is said of the snapshots is what their rows say; of bands and thresholds, that some changed."""
    facts = {fact.name: (fact.before, fact.after) for fact in found.snapshot.facts}
    counts = {count.name: (count.changed, count.total) for count in found.snapshot.counts}
    before, after = in_order(before), in_order(after)
    assert before.exemplar_ids.tolist() == after.exemplar_ids.tolist()
    if found.method == "venn-admit":
        sets = [np.unpackbits(rows.packed_sets[rows.in_vp], axis=1) for rows in (before, after)]
        assert facts["singletons"] == tuple(int((one.sum(axis=1) == 1).sum()) for one in sets)
        assert counts["sets"] == (int((sets[0] != sets[1]).any(axis=1).sum()), len(sets[0]))
        assert facts["s_hat"][0] != facts["s_hat"][1]
        assert min(counts[name][0] for name in ("bands", "thresholds", "sets")) > 0
    else:
        of_mc = ~before.in_vp
        changed = before.points.score[of_mc] != after.points.score[of_mc]
        assert counts["scores"] == (int(changed.sum()), int(of_mc.sum()))
        assert (counts["scores"][0] > 0) == (facts["score"][1] == "reliability")
        assert counts["steps"][1] == facts["steps"][1]


def test_class_shares_are_estimated_from_traffic_as_it_is(bench: Bench) -> None:
    """As recalibrating does, which is said; by a promise that does not rest on traffic, it is not."""
    bench.create(WITH_VECTORS, dimension=2, class_count=CLASSES, neighbour_count=3)
    training = rows("train", 40, 5)
    relabel = {str(training["id"][0]): (int(training["y"][0]) + 1) % CLASSES}
    bench.ingest(WITH_VECTORS, with_vectors(bench, training, seed=5), "train")
    bench.ingest(WITH_VECTORS, with_vectors(bench, rows("held-out", 2000, 1), seed=1), "held-out")
    bench.adopt(WITH_VECTORS, KnnParameters(np.zeros(CLASSES), np.ones(CLASSES), 1.0), 1.0)
    asked: dict[str, Any] = {"score": "network", "certify": ["predicted"], "alpha": ALPHA}
    bench.calibrate_abers(WITH_VECTORS, **asked)

    def traffic(prefix: str, count: int, seed: int) -> None:
        path = with_vectors(bench, rows(prefix, count, seed, (0.6, 0.2, 0.2)), seed=seed)
        bench.score(WITH_VECTORS, path, weighted=None)

    traffic("new", 2500, 3)
    assert what_is_given(bench, relabel) == f"{KEPT} Nothing is stored."
    bench.calibrate_abers(WITH_VECTORS, **asked, class_shares_estimated=True)
    traffic("newer", 500, 4)
    assert what_is_given(bench, relabel) == f"{KEPT} {TRAFFIC} Nothing is stored."
    with consistent_view(bench.engine) as connection:
        question = other_training(connection, WITH_VECTORS, relabel, [])
        made = follow(bench.workspace(memory_budget=BUDGET), connection, question).made
    calibrated = bench.calibrate_abers(WITH_VECTORS, **asked, class_shares_estimated=True).calibration_id
    with consistent_view(bench.engine) as connection:
        used, then = (venn_abers.certificate_of(connection, one) for one in (calibrated - 1, calibrated))
    assert isinstance(made, MadeByAbers)
    assert made.certificate == then
    points = [
        one.class_shares.points
        for one in (used, then)
        if one is not None and isinstance(one.class_shares, EstimatedShares)
    ]
    assert points == [2500, 3000]


def what_is_given(bench: Bench, relabel: Mapping[str, int]) -> str:
    """What is said to be taken as given."""
    found = what_if_training(bench.workspace(memory_budget=BUDGET), WITH_VECTORS, relabel=relabel, leave_out=[])
    asked, *_ = training_sections(found, limit=1)
    (note,) = asked.notes
    return note


def in_order(rows: CalibrationRows) -> CalibrationRows:
    """The rows of a snapshot by exemplar."""
    order = np.argsort(rows.exemplar_ids)
    points = rows.points
    return CalibrationRows(
        rows.class_count,
        rows.exemplar_ids[order],
        rows.in_vp[order],
        CalibrationPoints(
            points.label[order],
            points.predicted[order],
            points.match_count[order],
            points.distance[order],
            points.score[order],
        ),
        rows.bins[order],
        rows.packed_sets[order],
    )


def test_left_out_is_as_if_never_ingested(bench: Bench) -> None:
    """Another classifier of the same data without them, with the same parameters, is calibrated alike."""
    golden = Golden("edge")
    golden.prepare(bench, "edge")
    case = edge_case(bench)
    case.calibrate()
    gone = list(case.popular(3))
    _, following = case.what_if({}, gone)
    without = np.flatnonzero(~np.isin(golden.exemplars("train")["id"], gone))
    bench.create("other", dimension=golden.dimension, class_count=golden.class_count, neighbour_count=int(golden["K"]))
    train = {key: values[without] for key, values in golden.exemplars("train").items()}
    bench.ingest("other", bench.write("train-without.npz", train), "train")
    for split in ("mc", "vp"):
        bench.ingest("other", bench.folder / f"{split}.npz", split)
    bench.adopt("other", golden.parameters, float(golden["eta_loc"]))
    bench.calibrate("other", **golden.settings)
    made = following.made
    names = dict(zip(made.rows.exemplar_ids.tolist(), range(len(made.rows.exemplar_ids)), strict=True))
    key_of = {
        row.external_id: row.id
        for row in bench.rows(
            "SELECT exemplar.id, external_id FROM exemplar INNER JOIN classifier ON classifier.id = classifier_id"
            " WHERE name = 'edge'"
        )
    }
    exported = bench.export("other", "calibration").to_pylist()  # type: ignore[arg-type]
    assert len(exported) == len(made.rows.exemplar_ids)
    for row in exported:
        place = names[key_of[row["external_id"]]]
        points = made.rows.points
        assert (row["label"], row["predicted"], row["q"]) == tuple(
            values[place] for values in (points.label, points.predicted, points.match_count)
        )
        assert (row["d"], row["score"]) == (points.distance[place], points.score[place])
        if row["split"] == "vp":
            included = np.unpackbits(made.rows.packed_sets[place], count=golden.class_count)
            assert row["set"] == np.flatnonzero(included).tolist()


class TestRefusals:
    @pytest.fixture
    def calibrated(self, edge: Bench) -> Case:
        return edge_case(edge)

    def test_after_another_fit(self, calibrated: Case) -> None:
        golden = Golden("edge")
        calibrated.bench.adopt("edge", golden.parameters, float(golden["eta_loc"]))
        with pytest.raises(OutdatedError, match="was fitted again after calibration 1"):
            calibrated.what_if({}, ["train-0"])

    def test_while_labels_wait(self, calibrated: Case) -> None:
        calibrated.change({}, ["train-0"])
        with pytest.raises(OutdatedError, match="labels or data of 'edge' have arrived since calibration 1"):
            calibrated.what_if({}, ["train-1"])

    def test_by_a_calibration_that_lacks_labels(self, calibrated: Case) -> None:
        """Nothing waits, since newer calibrations had them."""
        give(calibrated.bench)
        calibrated.bench.calibrate("edge", **Golden("edge").settings)
        use(calibrated.bench.engine, "edge", 1)
        with pytest.raises(OutdatedError, match="labels or data of 'edge' have arrived since calibration 1"):
            calibrated.what_if({}, ["train-1"])

    def test_too_many(self, calibrated: Case) -> None:
        with pytest.raises(InvalidInputError, match=r"expected 1 to 1,000 training exemplars .*, got 1,001"):
            calibrated.what_if({}, [f"train-{row}" for row in range(MOST_CHANGES + 1)])

    def test_too_few_remain(self, calibrated: Case) -> None:
        with pytest.raises(NotReadyError, match="4 training exemplars would remain, expected at least K = 5"):
            calibrated.what_if({}, [f"train-{row}" for row in range(396)])

    def test_unknown(self, calibrated: Case) -> None:
        with pytest.raises(NotFoundError, match="no exemplar 'nobody'"):
            calibrated.what_if({}, ["nobody"])


def test_it_reads_from_a_role_that_may_only_read(edge: Bench) -> None:
    """On a connection whose transactions are all read-only, as on a standby, everything works."""
    case = edge_case(edge)
    case.decide_all()
    engine = create_engine(edge.engine.url.render_as_string(hide_password=False))
    with edge.engine.begin() as connection:
        connection.exec_driver_sql(
            f'ALTER DATABASE "{edge.engine.url.database}" SET default_transaction_read_only = on'
        )
    try:
        found = what_if_training(workspace(engine, edge.cache), "edge", relabel={"train-0": 1}, leave_out=["train-1"])
    finally:
        engine.dispose()
    assert found.views["decided"].points == len(case.scored["id"])


def test_an_empty_change_changes_nothing(edge: Bench) -> None:
    """Relabelled as it is labelled already."""
    case = edge_case(edge)
    case.decide_all()
    external_id, label_now = next(iter(case.popular(1).items()))
    found, following = case.what_if({external_id: label_now}, [])
    check_same_rows(case.stored_rows(), following.made.rows)
    assert (found.flips.total, found.flipped) == (0, ())
    assert all((view.predicted, view.match_count, view.distance) == (0, 0, 0) for view in found.views.values())
    assert all(count.changed == 0 for count in found.snapshot.counts)
    assert all(fact.before == fact.after for fact in found.snapshot.facts)
