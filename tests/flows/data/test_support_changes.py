"""Training exemplars that come, go or are relabelled: what is searched and written because of it, and what is not."""

import numpy as np
import pytest

from tests.running import EXAMPLES, Bench, chunk_ordinals, run_chunk
from venn_admit.errors import ConflictError, InvalidInputError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.calibration.approximate import Approximated, approximate_points
from venn_admit.flows.data.label import label
from venn_admit.flows.decisions.replay import replay
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import approximations, classifiers
from venn_admit.store.exemplars.support import SupportChangedError
from venn_admit_client.records.data import Labelling

# A row that was written again has another xmin.
WRITTEN = """
SELECT exemplar.id, neighbours.neighbour_ids, neighbours.xmin::text AS list_written,
    approximation.xmin::text AS approximation_written, approximation.predicted, approximation.logits
FROM exemplar
INNER JOIN neighbours ON exemplar.id = neighbours.exemplar_id
LEFT JOIN approximation ON exemplar.id = approximation.exemplar_id
ORDER BY exemplar.id
"""


def written(bench: Bench) -> dict[int, tuple[list[int], str, str | None, list[float] | None]]:
    """Each point's list, the transactions that wrote it and the approximation, and the logits."""
    return {
        row.id: (row.neighbour_ids, row.list_written, row.approximation_written, row.logits)
        for row in bench.rows(WRITTEN)
    }


def tweets(rows: slice) -> dict[str, np.ndarray]:
    with np.load(EXAMPLES / "ood.npz") as ood:
        return {name: ood[name][rows] for name in ("r", "f", "y")}


def give(bench: Bench, lines: list[tuple[str, int | None]], **options: bool | str) -> Labelling:
    path = bench.folder / "labels.csv"
    path.write_text(
        "\n".join(["external_id,label", *(f"{one},{'' if number is None else number}" for one, number in lines)])
    )
    asked = {"selection": "selected", "retract": False, "join_train": False} | options
    return label(
        bench.engine,
        "reviews",
        LabelFile(path),
        selection=str(asked["selection"]),
        retract=bool(asked["retract"]),
        join_train=bool(asked["join_train"]),
    )


def nearest_training_exemplars(bench: Bench, count: int) -> list[tuple[int, str, int]]:
    """Training exemplars that are on many lists: id, external id and label."""
    rows = bench.rows(
        "SELECT exemplar.id, external_id, exemplar.label FROM exemplar INNER JOIN ("
        " SELECT unnest(neighbour_ids) AS id, count(*) AS lists FROM neighbours GROUP BY 1) AS listed USING (id)"
        " ORDER BY lists DESC, id LIMIT :count",
        count=count,
    )
    return [(row.id, row.external_id, row.label) for row in rows]


def job_rows(bench: Bench) -> set[int]:
    """The exemplars of the last job."""
    rows = bench.rows("SELECT exemplar_id FROM job_row WHERE job_id = (SELECT max(id) FROM job)")
    return {row.exemplar_id for row in rows}


def test_of_lists_that_do_not_change_nothing_is_written(few_reviews: Bench) -> None:
    before = written(few_reviews)
    few_reviews.ingest("reviews", few_reviews.write("more.npz", tweets(slice(40))), "train")
    done = few_reviews.calibrate("reviews", kappa=100)
    after = written(few_reviews)
    changed = {key for key in before if before[key][0] != after[key][0]}
    assert 0 < len(changed) < len(before) / 2
    assert {key for key in before if before[key][1:3] != after[key][1:3]} == changed
    # Each of the points that calibrate has one row at most closed and one opened.
    assert 0 < done.changed.closed <= done.changed.opened <= len(before)
    # And a second time there is nothing to do.
    few_reviews.calibrate("reviews", kappa=100)
    assert (job_rows(few_reviews), written(few_reviews)) == (set(), after)


def test_where_some_are_removed_the_lists_that_hold_them_are_searched(few_reviews: Bench) -> None:
    gone = nearest_training_exemplars(few_reviews, 3)
    before, support = written(few_reviews), few_reviews.value("SELECT count(*) FROM exemplar_vector WHERE support")
    done = give(few_reviews, [(external_id, None) for _, external_id, _ in gone], retract=True)
    assert (done.retracted, done.left) == (3, 3)
    held = {key for key, (ids, *_) in before.items() if {one for one, _, _ in gone} & set(ids)}
    few_reviews.calibrate("reviews", kappa=100)
    after = written(few_reviews)
    assert held
    assert job_rows(few_reviews) == held
    assert {key for key in before if before[key][1] != after[key][1]} == held
    assert {key for key in before if before[key][2] != after[key][2]} == held
    assert not any({one for one, _, _ in gone} & set(ids) for ids, *_ in after.values())
    assert few_reviews.value("SELECT count(*) FROM exemplar_vector WHERE support") == support - 3


def test_where_some_are_relabelled_no_list_is_written(few_reviews: Bench) -> None:
    other = nearest_training_exemplars(few_reviews, 2)
    before = written(few_reviews)
    assert give(few_reviews, [(external_id, 1 - number) for _, external_id, number in other]).corrected == 2
    held = {key for key, (ids, *_) in before.items() if {one for one, _, _ in other} & set(ids)}
    few_reviews.calibrate("reviews", kappa=100)
    after = written(few_reviews)
    assert job_rows(few_reviews) == held
    assert {key: value[:2] for key, value in before.items()} == {key: value[:2] for key, value in after.items()}
    assert {key for key in before if before[key][2] != after[key][2]} == held
    assert {key for key in before if before[key][3] != after[key][3]} == held


def test_approximations_under_other_parameters_go_with_the_lists(few_reviews: Bench) -> None:
    few_reviews.adopt("reviews")
    few_reviews.calibrate("reviews", kappa=100)
    count = "SELECT count(*) AS points FROM approximation GROUP BY knn_parameters_id ORDER BY knn_parameters_id"
    assert [row.points for row in few_reviews.rows(count)] == [4_000, 4_000]
    (_, external_id, _), *_ = nearest_training_exemplars(few_reviews, 1)
    give(few_reviews, [(external_id, None)], retract=True)
    few_reviews.calibrate("reviews", kappa=100)
    assert [row.points for row in few_reviews.rows(count)] == [4_000 - len(job_rows(few_reviews)), 4_000]


@pytest.fixture
def scored(few_reviews: Bench) -> Bench:
    """With some tweets that were scored, without labels."""
    arrays = tweets(slice(60)) | {"y": np.full(60, -1), "id": np.array([f"tweet-{row}" for row in range(60)])}
    few_reviews.score("reviews", few_reviews.write("tweets.npz", arrays))
    return few_reviews


def test_selected_exemplars_join_and_decisions_replay(scored: Bench) -> None:
    truth = tweets(slice(60))["y"].tolist()
    decided = [row.id for row in scored.rows("SELECT id FROM decision ORDER BY id")]
    joining: list[tuple[str, int | None]] = [(f"tweet-{row}", truth[row]) for row in range(30)]
    done = give(scored, joining, join_train=True)
    assert (done.new, {str(split): count for split, count in done.calibrating.items()}) == (30, {"train": 30})
    assert give(scored, joining, join_train=True).unchanged == 30
    many = nearest_training_exemplars(scored, 5)
    give(scored, [(external_id, None) for _, external_id, _ in many[:3]], retract=True)
    give(scored, [(external_id, 1 - number) for _, external_id, number in many[3:]])
    scored.ingest("reviews", scored.write("more.npz", tweets(slice(100, 140))), "train")
    scored.calibrate("reviews", kappa=100)
    # Two of the tweets leave again, and the reviews that were taken out come back.
    give(scored, [("tweet-0", None), ("tweet-1", None)], retract=True)
    give(scored, [(external_id, number) for _, external_id, number in many[:3]], join_train=True)
    scored.calibrate("reviews", kappa=100)
    for decision_id in decided[:40]:
        found = replay(scored.workspace(), decision_id)
        assert found.differing == (), found
    joined = replay(scored.workspace(), decided[5])
    assert joined.near[0][2] > 0, "it was no neighbour of its own yet"


def test_replay_shows_labels_as_they_were(scored: Bench) -> None:
    decision_id = scored.value("SELECT id FROM decision ORDER BY id LIMIT 1")
    before = replay(scored.workspace(), decision_id)
    ids, labels = [row.external_id for row, _, _ in before.near], [label for _, label, _ in before.near]
    give(scored, [(ids[0], 1 - labels[0])])
    give(scored, [(ids[1], None)], retract=True)
    scored.calibrate("reviews", kappa=100)
    after = replay(scored.workspace(), decision_id)
    assert [(row.external_id, label) for row, label, _ in after.near] == list(zip(ids, labels, strict=True))


class TestRefusals:
    def test_only_selected_labels_join(self, scored: Bench) -> None:
        with pytest.raises(InvalidInputError, match=r"row 0, id 'tweet-0': expected a selected label .* is random"):
            give(scored, [("tweet-0", 1)], join_train=True, selection="random")
        with pytest.raises(InvalidInputError, match=r"expected a selected label .*, got none"):
            give(scored, [("tweet-0", None)], join_train=True, retract=True)

    def test_what_calibrates_does_not_train(self, scored: Bench) -> None:
        external_id = scored.value("SELECT external_id FROM exemplar WHERE split = 'mc' LIMIT 1")
        with pytest.raises(ConflictError, match=r"it calibrates .reviews., in split mc, and cannot train too"):
            give(scored, [(external_id, 1)], join_train=True)
        assert scored.value("SELECT count(*) FROM support_change") == 0


def computed(bench: Bench, ids: list[int]) -> Approximated:
    """The approximation of some points, not stored yet."""
    with connect(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "reviews")
        parameters = approximations.current_parameters(connection, classifier)
    return approximate_points(bench.workspace(memory_budget=64 << 20), classifier, np.array(ids), parameters)


def test_results_that_meet_are_written_once(scored: Bench) -> None:
    """Two jobs computed the same points, before either had stored them."""
    ids = [row.id for row in scored.rows("SELECT id FROM exemplar WHERE split = 'scored' ORDER BY id LIMIT 20")]
    with scored.engine.begin() as connection:
        for table in ("approximation", "neighbours"):
            connection.exec_driver_sql(f"DELETE FROM {table} WHERE exemplar_id = ANY(%s)", (ids,))
    for result in [computed(scored, ids), computed(scored, ids)]:
        with transaction(scored.engine) as connection:
            result.apply(connection)
    assert scored.value("SELECT count(*) FROM neighbours WHERE exemplar_id = ANY(:ids)", ids=ids) == 20


def test_a_result_from_older_training_exemplars_is_refused(scored: Bench) -> None:
    ids = [row.id for row in scored.rows("SELECT id FROM exemplar WHERE split = 'scored' ORDER BY id LIMIT 20")]
    result = computed(scored, ids)
    scored.ingest("reviews", scored.write("more.npz", tweets(slice(100, 110))), "train")
    before = written(scored)
    with pytest.raises(SupportChangedError, match="changed meanwhile"), transaction(scored.engine) as connection:
        result.apply(connection)
    assert written(scored) == before


def test_a_chunk_they_interrupt_is_computed_again(few_reviews: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training exemplars arrive between its computation and its transaction; no attempt is lost by it."""
    scored = few_reviews.write("scored.npz", tweets(slice(100, 200)))
    job_id = few_reviews.request_score("reviews", scored, chunk_rows=50).job_id
    apply, arrivals = Approximated.apply, [slice(20, 30)]

    def interrupted(self: Approximated, connection: object) -> None:
        if arrivals:
            few_reviews.ingest("reviews", few_reviews.write("late.npz", tweets(arrivals.pop())), "train")
        apply(self, connection)  # type: ignore[arg-type]

    monkeypatch.setattr(Approximated, "apply", interrupted)
    runner = few_reviews.runner()
    for ordinal in chunk_ordinals(few_reviews.engine, job_id):
        assert run_chunk(runner, job_id, ordinal) > 0
    assert few_reviews.rows("SELECT DISTINCT attempts, error FROM job_chunk WHERE job_id = :job", job=job_id) == [
        (1, None)
    ]
    assert not arrivals
