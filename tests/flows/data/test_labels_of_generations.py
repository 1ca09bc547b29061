"""A label is of an exemplar: it reaches each generation that has it, and those that come to have it later."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import Arrays, Bench
from venn_admit.errors import ConflictError, NotFoundError
from venn_admit.files.label_sources import LabelFile
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.generations import create_generation
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.ingest import store_scored
from venn_admit.flows.data.label import label
from venn_admit.store.database.engine import transaction
from venn_admit.store.exemplars import classifiers, generations
from venn_admit_client.records.data import Labelling

IDS = [f"x-{row}" for row in range(12)]
LEDGER = """
SELECT event.label, event.selection, event.source,
    coalesce(event.first_arrived_at, event.created_at) AS arrived, event.first_arrived_at IS NOT NULL AS is_carried
FROM label_event AS event
INNER JOIN exemplar ON exemplar.id = event.exemplar_id
INNER JOIN classifier ON classifier.id = exemplar.classifier_id
WHERE classifier.name = :name AND exemplar.external_id = :id
ORDER BY event.id
"""
STATE = """
SELECT exemplar.split, exemplar.label FROM exemplar
INNER JOIN classifier ON classifier.id = exemplar.classifier_id
WHERE classifier.name = :name AND exemplar.external_id = :id
"""


def points(bench: Bench, name: str, ids: list[str], labels: list[int] | None = None) -> Arrays:
    """Points as a generation sees them: each has a dimension of its own."""
    dimension = find(bench.engine, name).dimension
    rows = [int(one.removeprefix("x-")) for one in ids]
    return {
        "id": np.array(ids),
        "r": np.random.default_rng(dimension).normal(size=(len(IDS), dimension)).astype(np.float32)[rows],
        "f": np.tile(np.array([2, 0], dtype=np.float32), (len(ids), 1)),
        "y": np.array([-1] * len(ids) if labels is None else labels),
    }


def score(bench: Bench, name: str, ids: list[str], labels: list[int] | None = None) -> None:
    path = bench.write("scored.npz", points(bench, name, ids, labels))
    with transaction(bench.engine) as connection:
        store_scored(connection, classifiers.by_name(connection, name), FileSource(path))


def ingest(bench: Bench, name: str, split: str, ids: list[str], labels: list[int] | None = None) -> Any:
    return bench.ingest(name, bench.write("held-out.npz", points(bench, name, ids, labels)), split)


def give(
    bench: Bench,
    name: str,
    given: Mapping[str, int | None],
    *,
    selection: str = "random",
    join_train: bool = False,
    file: str = "labels.csv",
) -> Labelling:
    path: Path = bench.folder / file
    lines = [f"{external_id},{'' if number is None else number}" for external_id, number in given.items()]
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    return label(bench.engine, name, LabelFile(path), selection=selection, retract=True, join_train=join_train)


def state(bench: Bench, name: str, external_id: str) -> tuple[str, int | None]:
    (row,) = bench.rows(STATE, name=name, id=external_id)
    return row.split, row.label


def ledger(bench: Bench, name: str, external_id: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in bench.rows(LEDGER, name=name, id=external_id)]


@pytest.fixture
def one(bench: Bench) -> Bench:
    """A classifier `one` that has scored twelve points, and a second generation of it that has none."""
    bench.create("one", dimension=2)
    score(bench, "one", IDS)
    create_generation(bench.engine, "one", dimension=3)
    return bench


class TestCarried:
    def test_a_random_label_calibrates_as_it_did(self, one: Bench) -> None:
        give(one, "one", dict.fromkeys(IDS, 1))
        score(one, "one@2", IDS)
        states = [[state(one, name, external_id) for external_id in IDS] for name in ("one", "one@2")]
        assert states[0] == states[1]
        assert {split for split, _ in states[0]} == {"knn", "mc", "vp"}

    def test_time_source_and_selection_are_kept(self, one: Bench) -> None:
        give(one, "one", {IDS[0]: 1}, selection="selected", file="first.csv")
        give(one, "one", {IDS[0]: None}, file="second.csv")
        give(one, "one", {IDS[0]: 0}, file="third.csv")
        score(one, "one@2", IDS[:1])
        before, after = ledger(one, "one", IDS[0]), ledger(one, "one@2", IDS[0])
        assert [row[:4] for row in after] == [row[:4] for row in before]
        assert [row[:3] for row in after] == [
            (1, "selected", "first.csv"),
            (None, "random", "second.csv"),
            (0, "random", "third.csv"),
        ]
        assert [row[4] for row in before + after] == [False] * 3 + [True] * 3
        create_generation(one.engine, "one", dimension=4)
        score(one, "one@3", IDS[:1])
        assert ledger(one, "one@3", IDS[0]) == after

    def test_a_selected_label_never_calibrates(self, one: Bench) -> None:
        give(one, "one", {IDS[0]: 1}, selection="selected")
        with pytest.raises(ConflictError, match="row 0, id 'x-0': its label was selected in 'one'"):
            ingest(one, "one@2", "held-out", IDS[:1], [1])
        score(one, "one@2", IDS[:1])
        assert state(one, "one@2", IDS[0]) == ("scored", 1)

    def test_a_random_label_before_a_retraction_does_not_count(self, one: Bench) -> None:
        give(one, "one", {IDS[0]: 1})
        give(one, "one", {IDS[0]: None})
        give(one, "one", {IDS[0]: 1}, selection="selected")
        score(one, "one@2", IDS[:1])
        assert state(one, "one@2", IDS[0]) == ("scored", 1)

    def test_one_that_calibrates_and_was_corrected_by_selection_still_does(self, one: Bench) -> None:
        give(one, "one", {IDS[0]: 1})
        give(one, "one", {IDS[0]: 0}, selection="selected")
        score(one, "one@2", IDS[:1])
        assert state(one, "one@2", IDS[0]) == state(one, "one", IDS[0])
        assert state(one, "one", IDS[0])[1] == 0

    def test_a_file_with_the_label_of_before_gets_the_corrected_one(self, bench: Bench) -> None:
        bench.create("one", dimension=2)
        ingest(bench, "one", "held-out", IDS, [1] * 12)
        give(bench, "one", {IDS[0]: 0})
        create_generation(bench.engine, "one", dimension=3)
        done = ingest(bench, "one@2", "held-out", IDS, [1] * 12)
        assert (done.new, done.labels_carried) == (12, 12)
        for external_id in IDS:
            assert state(bench, "one@2", external_id) == state(bench, "one", external_id)
        assert state(bench, "one", IDS[0])[1] == 0
        again = ingest(bench, "one@2", "held-out", IDS[1:], [1] * 11)
        assert (again.new, again.labels_carried) == (0, 0)

    def test_a_file_without_labels_is_enough(self, bench: Bench) -> None:
        bench.create("one", dimension=2)
        ingest(bench, "one", "train", IDS, [0, 1] * 6)
        create_generation(bench.engine, "one", dimension=3)
        assert ingest(bench, "one@2", "train", IDS).new_per_split == {"train": 12}
        assert [state(bench, "one@2", one)[1] for one in IDS] == [0, 1] * 6

    def test_a_label_that_it_never_had_is_refused(self, one: Bench) -> None:
        give(one, "one", {IDS[0]: 1})
        with pytest.raises(ConflictError, match="row 1, id 'x-0': 'one' has this exemplar with label 1, got 0"):
            ingest(one, "one@2", "held-out", [IDS[1], IDS[0]], [1, 0])
        assert one.rows(STATE, name="one@2", id=IDS[1]) == []

    def test_one_whose_label_was_taken_back(self, one: Bench) -> None:
        give(one, "one", {IDS[0]: 1})
        give(one, "one", {IDS[0]: None})
        with pytest.raises(ConflictError, match="its label was taken back in 'one'"):
            ingest(one, "one@2", "held-out", IDS[:1], [1])
        score(one, "one@2", IDS[:1], [1])
        assert state(one, "one@2", IDS[0]) == ("scored", None)

    def test_a_recalibration_is_due_for_what_now_calibrates(self, edge: Bench) -> None:
        create_generation(edge.engine, "edge")
        arrays = dict(np.load(edge.folder / "score.npz")) | {
            "y": np.full(len(np.load(edge.folder / "score.npz")["y"]), -1)
        }
        path = edge.write("unlabelled.npz", arrays)
        with transaction(edge.engine) as connection:
            store_scored(connection, classifiers.by_name(connection, "edge@2"), FileSource(path))
        give(edge, "edge@2", {str(arrays["id"][0]): 1})
        requests = "SELECT count(*) FROM recalibration_request"
        assert edge.value(requests) == 0
        with transaction(edge.engine) as connection:
            store_scored(connection, classifiers.by_name(connection, "edge"), FileSource(path))
        assert edge.value(requests) == 1


class TestSideBySide:
    @pytest.mark.parametrize("name", ["one", "one@1", "one@2"])
    def test_a_label_reaches_each_that_has_the_exemplar(self, one: Bench, name: str) -> None:
        score(one, "one@2", IDS[:6])
        done = give(one, name, dict.fromkeys(IDS, 1))
        assert (done.rows, done.new, done.in_other_generations) == (12, 12, 6)
        for external_id in IDS[:6]:
            assert state(one, "one@2", external_id) == state(one, "one", external_id)
            (own,), (other,) = ledger(one, "one", external_id), ledger(one, "one@2", external_id)
            assert own[:3] == other[:3] == (1, "random", "labels.csv")
        assert give(one, name, dict.fromkeys(IDS, 1)).unchanged == 12

    def test_corrections_and_retractions_too(self, one: Bench) -> None:
        score(one, "one@2", IDS)
        give(one, "one", dict.fromkeys(IDS, 1))
        done = give(one, "one@2", {IDS[0]: 0, IDS[1]: None})
        assert (done.corrected, done.retracted, done.in_other_generations) == (1, 1, 2)
        assert state(one, "one", IDS[0]) == state(one, "one@2", IDS[0])
        assert state(one, "one", IDS[1]) == state(one, "one@2", IDS[1]) == ("scored", None)

    def test_a_label_after_a_switch_for_what_was_scored_before(self, edge: Bench) -> None:
        """Labels come late: the exemplar may be known to the generation of before alone."""
        bench = edge
        bench.create("one", dimension=2)
        score(bench, "one", IDS)
        made = create_generation(bench.engine, "one", dimension=3)
        with transaction(bench.engine) as connection:  # as a switch does, which asks for a calibration
            generations.make_current(connection, classifiers.by_name(connection, "one"), made)
        done = give(bench, "one", dict.fromkeys(IDS, 1))
        assert (done.new, done.in_other_generations) == (12, 0)
        assert state(bench, "one@1", IDS[0])[1] == 1
        score(bench, "one", IDS)
        assert state(bench, "one", IDS[0]) == state(bench, "one@1", IDS[0])

    def test_one_that_no_generation_has(self, one: Bench) -> None:
        with pytest.raises(NotFoundError, match="row 1, external_id: classifier 'one' has no exemplar 'y'"):
            give(one, "one", {IDS[0]: 1, "y": 1})
        assert state(one, "one", IDS[0]) == ("scored", None)

    def test_selected_ones_train_in_each(self, one: Bench) -> None:
        score(one, "one@2", IDS)
        done = give(one, "one", {IDS[0]: 1}, selection="selected", join_train=True)
        assert (done.calibrating, done.in_other_generations) == ({"train": 1}, 1)
        assert state(one, "one", IDS[0]) == state(one, "one@2", IDS[0]) == ("train", 1)
        supports = one.rows("SELECT count(*) AS n FROM exemplar_vector WHERE support GROUP BY classifier_id")
        assert [row.n for row in supports] == [1, 1]

    def test_not_where_one_calibrates(self, one: Bench) -> None:
        ingest(one, "one@2", "held-out", IDS[:1], [1])
        with pytest.raises(ConflictError, match="it calibrates 'one@2', in split"):
            give(one, "one", {IDS[0]: 1}, selection="selected", join_train=True)
        assert state(one, "one", IDS[0]) == ("scored", None)

    def test_other_classifiers_are_left_alone(self, one: Bench) -> None:
        one.create("other", dimension=2)
        score(one, "other", IDS)
        give(one, "one", dict.fromkeys(IDS, 1))
        assert state(one, "other", IDS[0]) == ("scored", None)
        score(one, "one@2", IDS)
        assert len(ledger(one, "one@2", IDS[0])) == 1
