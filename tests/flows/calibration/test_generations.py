"""Generations of a classifier: made beside the current one, switched to at once, and what was before stays."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tests.running import Arrays, Bench, Golden
from tests.templates import CopyOf, Filled
from venn_admit.core.calibrators.promises import Promised
from venn_admit.errors import Code, ConflictError, InvalidInputError, NotFoundError, NotReadyError
from venn_admit.flows.calibration.generations import (
    create_generation,
    list_generations,
    state_extractor,
    switch,
)
from venn_admit.flows.data.catalogue import find, list_classifiers, show_calibration
from venn_admit.flows.data.create import create
from venn_admit.flows.data.settings import rename
from venn_admit.flows.decisions.listing import list_decisions, show_decision
from venn_admit.flows.decisions.replay import replay, replay_newest
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.flows.jobs.listing import list_jobs, show_job
from venn_admit.flows.keys import keys
from venn_admit.store.calibrations import calibrators
from venn_admit.store.database.engine import transaction
from venn_admit.store.exemplars import classifiers, generations

EDGE = Golden("edge")
SPLITS = "SELECT external_id, split FROM exemplar WHERE classifier_id = :id ORDER BY external_id"


def seen_anew(part: str) -> Arrays:
    """The same points as another extractor sees them: of one dimension more, and elsewhere."""
    arrays = EDGE.exemplars(part)
    r = arrays["r"]
    return arrays | {"r": np.concatenate([r[:, ::-1] * np.float32(1.5), r[:, :1] ** 2], axis=1)}


def add_generation(bench: Bench) -> None:
    create_generation(bench.engine, "edge", dimension=EDGE.dimension + 1)
    bench.ingest("edge@2", bench.write("train-2.npz", seen_anew("train")), "train")
    for split in ("mc", "vp"):
        bench.ingest("edge@2", bench.write(f"{split}-2.npz", seen_anew(split)), split)
    bench.adopt("edge@2", EDGE.parameters, float(EDGE["eta_loc"]))
    bench.calibrate("edge@2", **EDGE.settings)


@pytest.fixture(scope="module")
def two_template(filled: Filled, edge_template: tuple[str, Golden]) -> str:
    return filled(add_generation, edge_template[0])


@pytest.fixture
def two(copy_of: CopyOf, two_template: str) -> Bench:
    """`edge` and its second generation, both calibrated; `score.npz` to score."""
    bench = copy_of(two_template)
    bench.write("score.npz", EDGE.exemplars("score"))
    return bench


def decide(bench: Bench, name: str, scorer: PointScorer | None = None) -> dict[str, Any]:
    """The decision on the first point to score, as the generation of that name has it seen."""
    scorer = scorer or PointScorer(bench.workspace())
    dimension = find(bench.engine, name).dimension
    part = EDGE.exemplars("score") if dimension == EDGE.dimension else seen_anew("score")
    decision = scorer.score(name, part["r"][0].astype(np.float32), logits=part["f"][0].astype(np.float32))
    return {"calibration": decision.calibration_id, **decision.fields}


class TestCreate:
    def test_it_has_the_classes_and_splits_of_the_first(self, edge: Bench) -> None:
        first = find(edge.engine, "edge")
        made = create_generation(edge.engine, "edge", dimension=7, extractor="v2")
        assert (made.name, made.generation, made.is_current, made.extractor) == ("edge@2", 2, False, "v2")
        assert (made.dimension, made.neighbour_count) == (7, first.neighbour_count)
        for same in ("class_names", "knn_share", "mc_share", "seed", "first_id", "shared_name"):
            assert getattr(made, same) == getattr(first, same), same
        third = create_generation(edge.engine, "edge@2")
        assert (third.name, third.dimension) == ("edge@3", EDGE.dimension)

    def test_documents_fall_in_the_same_splits(self, bench: Bench) -> None:
        bench.create("one", dimension=EDGE.dimension, class_count=EDGE.class_count, seed=3)
        bench.ingest("one", bench.write("mc.npz", EDGE.exemplars("mc")), "held-out")
        made = create_generation(bench.engine, "one", dimension=EDGE.dimension + 1)
        bench.ingest("one@2", bench.write("mc-2.npz", seen_anew("mc")), "held-out")
        splits = [bench.rows(SPLITS, id=one.id) for one in (find(bench.engine, "one"), made)]
        assert splits[0] == splits[1]
        assert len({row.split for row in splits[0]}) == 3

    def test_by_its_address_whichever_is_current(self, two: Bench) -> None:
        ids = [find(two.engine, name).id for name in ("edge@1", "edge@2")]
        assert find(two.engine, "edge").id == ids[0]
        switch(two.engine, "edge@2")
        assert [find(two.engine, name).id for name in ("edge@1", "edge@2")] == ids
        assert find(two.engine, "edge").id == ids[1]
        assert [one.classifier.name for one in list_classifiers(two.engine)] == ["edge", "edge@1"]

    @pytest.mark.parametrize("name", ["edge@0", "edge@02", "edge@3", "edge@99999999999", "@1", "edge@1@1"])
    def test_an_unknown_generation(self, two: Bench, name: str) -> None:
        with pytest.raises(NotFoundError, match="known: edge, edge@2"):
            find(two.engine, name)

    def test_names_of_generations_are_not_for_users(self, bench: Bench) -> None:
        bench.create("team@work", dimension=2)
        for name in ("a@1", "team@work@12"):
            with pytest.raises(InvalidInputError, match="names a generation"):
                bench.create(name, dimension=2)
            with pytest.raises(InvalidInputError, match="names a generation"):
                rename(bench.engine, "team@work", name)

    def test_a_classifier_that_has_such_a_name_from_before_keeps_it(self, bench: Bench) -> None:
        bench.create("a", dimension=2)
        bench.create("b", dimension=3)
        with transaction(bench.engine) as connection:
            generations.rename(connection, classifiers.by_name(connection, "b"), "a@1")
        old = find(bench.engine, "a@1")
        assert (old.dimension, old.shared_name, old.address) == (3, "a@1", "a@1@1")
        assert find(bench.engine, find(bench.engine, "a").address).dimension == 2
        with pytest.raises(ConflictError, match="a classifier named 'a@1' exists already"):
            create_generation(bench.engine, "a")
        assert create_generation(bench.engine, "a@1").name == "a@1@2"
        rename(bench.engine, "a@1", "b")
        assert create_generation(bench.engine, "a").name == "a@2"
        assert [one.classifier.name for one in list_generations(bench.engine, "b")] == ["b", "b@2"]

    def test_what_is_refused(self, bench: Bench) -> None:
        bench.create("x" * 100, dimension=2)
        with pytest.raises(InvalidInputError, match="at most 100 characters"):
            create_generation(bench.engine, "x" * 100)
        bench.create("short", dimension=2)
        create(bench.engine, "plain", ("a", "b"), seed=0, logits_only=True)
        with pytest.raises(InvalidInputError, match="logits only, got 4"):
            create_generation(bench.engine, "plain", dimension=4)
        assert create_generation(bench.engine, "plain").knn is None
        with pytest.raises(InvalidInputError, match="dimension: expected 1 to 16000"):
            create_generation(bench.engine, "short", dimension=0)
        with pytest.raises(InvalidInputError, match="extractor: expected 1 to 200"):
            create_generation(bench.engine, "plain", extractor=" ")


class TestSwitch:
    def test_the_name_stands_for_the_other_one_and_back(self, two: Bench) -> None:
        first, second = decide(two, "edge"), decide(two, "edge@2")
        assert first["calibration"] != second["calibration"]
        done = switch(two.engine, "edge@2")
        assert (done.before.classifier.name, done.after.classifier.name) == ("edge@1", "edge")
        assert (done.changes, done.is_made) == (True, True)
        assert decide(two, "edge") == decide(two, "edge@2") == second
        assert decide(two, "edge@1") == first
        switch(two.engine, "edge@1")
        assert decide(two, "edge") == first
        assert decide(two, "edge@2") == second

    def test_one_scorer_through_a_switch(self, two: Bench) -> None:
        scorer = PointScorer(two.workspace())
        names = ("edge", "edge@1", "edge@2")
        before = [decide(two, name, scorer) for name in names]
        switch(two.engine, "edge@2")
        after = [decide(two, name, scorer) for name in names]
        assert after == [before[2], before[1], before[2]]
        with pytest.raises(InvalidInputError, match="classifier 'edge@1' decides on"):
            scorer.score("edge@1", None)

    def test_looking_changes_nothing(self, two: Bench) -> None:
        done = switch(two.engine, "edge@2", dry_run=True)
        assert (done.changes, done.is_made) == (True, False)
        assert find(two.engine, "edge").generation == 1
        assert not switch(two.engine, "edge@1").changes

    def test_one_that_is_not_calibrated_is_refused(self, edge: Bench) -> None:
        create_generation(edge.engine, "edge")
        with pytest.raises(NotReadyError, match="'edge@2' has no calibration yet") as refused:
            switch(edge.engine, "edge@2")
        assert (refused.value.code, refused.value.parameters) == (Code.NOT_CALIBRATED, {"classifier": "edge@2"})
        assert find(edge.engine, "edge").generation == 1

    def test_one_that_would_reject_everything_is_refused(self, two: Bench) -> None:
        calibrated = two.calibrate_abers("edge@2", score="network", alpha=Decimal("0.001"), certify=("predicted",))
        certified = two.value(
            "SELECT thresholds IS NOT NULL FROM certificate WHERE calibration_id = :id", id=calibrated.calibration_id
        )
        assert certified is False
        with pytest.raises(NotReadyError, match="would reject everything"):
            switch(two.engine, "edge@2")

    def test_one_that_admits_by_the_average_promise_is_switched_to(self, two: Bench) -> None:
        calibrated = two.calibrate_abers("edge@2", score="network", alpha=Decimal("0.03"), promise="strongest")
        setting = find(two.engine, "edge@2")
        with transaction(two.engine) as connection:
            in_use, *_ = calibrators.of_classifier(connection, setting)
        assert (in_use.calibration_id, in_use.is_certified) == (calibrated.calibration_id, False)
        assert in_use.promised is Promised.AVERAGE
        switch(two.engine, "edge@2")
        assert find(two.engine, "edge").id == setting.id

    def test_the_name_alone_says_no_generation(self, two: Bench) -> None:
        with pytest.raises(InvalidInputError, match="expected a generation, such as 'edge@1'"):
            switch(two.engine, "edge")

    def test_what_was_decided_before_stays(self, two: Bench) -> None:
        scored = two.score("edge", two.folder / "score.npz")
        _, rows = list_decisions(two.engine, "edge", _all(), limit=3)
        job, decision = scored.request.job_id, int(rows[0].decision)
        switch(two.engine, "edge@2")
        assert list_decisions(two.engine, "edge", _all(), limit=3)[1] == []
        assert list_decisions(two.engine, "edge@1", _all(), limit=3)[1] == rows
        assert show_decision(two.engine, "edge", decision).classifier.name == "edge@1"
        replayed = replay(two.workspace(), decision)
        assert (replayed.differing, replayed.classifier.name) == ((), "edge@1")
        assert replay_newest(two.workspace(), "edge@1", replayed.row.external_id).differing == ()
        assert show_job(two.engine, job, name="edge").summary.classifier == "edge@1"
        assert [row.job for row in list_jobs(two.engine, "edge@2", limit=9)] == [
            row.job for row in list_jobs(two.engine, "edge", limit=9)
        ]
        assert show_calibration(two.engine, "edge", scored.request.calibration_id)[0].calibration

    def test_a_job_that_began_before_decides_as_before(self, two: Bench) -> None:
        request = two.request_score("edge", two.folder / "score.npz")
        switch(two.engine, "edge@2")
        two.run(request.job_id)
        own = find(two.engine, "edge@1").id
        query = "SELECT DISTINCT classifier_id FROM decision INNER JOIN exemplar ON exemplar.id = exemplar_id"
        assert [row.classifier_id for row in two.rows(query)] == [own]

    def test_the_report_views_name_each(self, two: Bench) -> None:
        switch(two.engine, "edge@2")
        query = (
            "SELECT classifier, generation, is_current, current_generation, dimension "
            "FROM report.classifier_v1 ORDER BY generation"
        )
        assert [tuple(row) for row in two.rows(query)] == [
            ("edge@1", 1, False, "edge", EDGE.dimension),
            ("edge", 2, True, "edge", EDGE.dimension + 1),
        ]
        counts = "SELECT DISTINCT classifier FROM report.exemplar_count_v1 ORDER BY classifier"
        assert [row.classifier for row in two.rows(counts)] == ["edge", "edge@1"]

    def test_the_audit_ledger_has_it(self, two: Bench) -> None:
        switch(two.engine, "edge@2")
        switch(two.engine, "edge@2")  # which changes nothing
        switch(two.engine, "edge@1")
        noted = [(row.action, row.target, row.origin) for row in keys.list_events(two.engine, limit=9)]
        assert noted == [
            ("switch_generation", "edge@1", "command line"),
            ("switch_generation", "edge@2", "command line"),
            ("create_generation", "edge@2", "command line"),
        ]


class TestKeys:
    def test_a_key_is_for_all_generations_before_and_after(self, two: Bench) -> None:
        two.create("other", dimension=2)
        made = keys.create(two.engine, "app", scope="score", classifier="edge")
        for generation in ("edge@1", "edge@2", "edge@1"):
            switch(two.engine, generation)
            caller = keys.authenticate(two.engine, made.text)
            assert isinstance(caller, keys.Caller)
            assert caller.classifier == "edge"
            allowed = {name: keys.is_for(two.engine, caller, name) for name in ("edge", "edge@1", "edge@2", "edge@3")}
            assert allowed == {"edge": True, "edge@1": True, "edge@2": True, "edge@3": False}
            assert not keys.is_for(two.engine, caller, "other")

    def test_no_key_is_for_one_generation(self, two: Bench) -> None:
        for name in ("edge@1", "edge@2"):
            with pytest.raises(InvalidInputError, match="is for all its generations"):
                keys.create(two.engine, "app", scope="score", classifier=name)


class TestRename:
    def test_the_generations_go_along(self, two: Bench) -> None:
        rename(two.engine, "edge", "ridge")
        assert [one.classifier.name for one in list_generations(two.engine, "ridge")] == ["ridge", "ridge@2"]
        rename(two.engine, "ridge@1", "edge")
        assert [one.classifier.name for one in list_generations(two.engine, "edge")] == ["edge", "edge@2"]

    def test_a_generation_has_no_name_of_its_own(self, two: Bench) -> None:
        with pytest.raises(InvalidInputError, match="rename 'edge'"):
            rename(two.engine, "edge@2", "ridge")


class TestExtractorOfStoredExemplars:
    def test_it_is_stated_once(self, two: Bench) -> None:
        assert state_extractor(two.engine, "edge", "v1").extractor == "v1"
        assert state_extractor(two.engine, "edge@1", "v1").extractor == "v1"
        with pytest.raises(ConflictError, match="come from extractor 'v1'") as refused:
            state_extractor(two.engine, "edge", "v2")
        assert refused.value.code == Code.EXTRACTOR_DIFFERS
        assert find(two.engine, "edge@2").extractor is None


def _all() -> Any:
    from venn_admit.store.decisions.decisions import DecisionFilter

    return DecisionFilter(None, None, None, None)
