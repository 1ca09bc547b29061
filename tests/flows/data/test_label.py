"""Labels as they arrive: who calibrates by them, and that the next snapshot is as if they had always been there."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from tests.running import EXAMPLES, Arrays, Bench
from tests.templates import CopyOf, Filled
from venn_admit.core.splits import assign_splits
from venn_admit.errors import InvalidInputError, NotFoundError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.label import label
from venn_admit.flows.removal.forget import forget
from venn_admit.store.database.engine import connect
from venn_admit_client.records.data import Labelling

IDS = tuple(f"tweet-{row}" for row in range(400))
CURRENT = """
SELECT external_id, point.split, point.label, point.predicted, match_count, distance, score, admit_set
FROM calibration_point AS point
INNER JOIN exemplar ON exemplar.id = point.exemplar_id
INNER JOIN classifier ON classifier.id = exemplar.classifier_id
WHERE classifier.name = :name AND valid_until IS NULL
ORDER BY external_id
"""


KEYS_OF = """
SELECT coalesce(document_id, exemplar.external_id) AS key
FROM unnest(:ids ::text[]) WITH ORDINALITY AS wanted (external_id, position)
INNER JOIN exemplar ON exemplar.external_id = wanted.external_id
ORDER BY position
"""


def tweets() -> Arrays:
    with np.load(EXAMPLES / "ood.npz") as ood:
        return {name: ood[name][: len(IDS)] for name in ("r", "f", "y")} | {"id": np.array(IDS)}


def labels_of(rows: range) -> dict[str, int]:
    truth = tweets()["y"]
    return {IDS[row]: int(truth[row]) for row in rows}


def score_tweets(bench: Bench) -> None:
    bench.score("reviews", bench.write("tweets.npz", tweets() | {"y": np.full(len(IDS), -1)}))


@pytest.fixture(scope="module")
def scored_template(filled: Filled, few_reviews_template: str) -> str:
    return filled(score_tweets, few_reviews_template)


@pytest.fixture
def scored(copy_of: CopyOf, scored_template: str) -> Bench:
    """Tweets that were scored, without labels, beside the calibrated reviews."""
    return copy_of(scored_template)


def give(
    bench: Bench, labels: Mapping[str, int | None], *, selection: str = "random", retract: bool = False
) -> Labelling:
    path = bench.folder / "labels.csv"
    lines = [f"{external_id},{'' if number is None else number}" for external_id, number in labels.items()]
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    return label(bench.engine, "reviews", LabelFile(path), selection=selection, retract=retract)


def state(bench: Bench, external_id: str) -> tuple[str, int | None]:
    (row,) = bench.rows("SELECT split, label FROM exemplar WHERE external_id = :id", id=external_id)
    return row.split, row.label


def events(bench: Bench, external_id: str) -> list[tuple[Any, ...]]:
    rows = bench.rows(
        "SELECT event.label, event.selection, event.source FROM label_event AS event "
        "INNER JOIN exemplar ON exemplar.id = event.exemplar_id WHERE external_id = :id ORDER BY event.id",
        id=external_id,
    )
    return [tuple(row) for row in rows]


def test_random_labels_calibrate_in_the_split_of_the_hash(scored: Bench) -> None:
    done = give(scored, labels_of(range(200)))
    expected = assign_splits(IDS[:200], seed=0)
    assert [state(scored, external_id) for external_id in IDS[:200]] == [
        (str(split), int(y)) for split, y in zip(expected, tweets()["y"], strict=False)
    ]
    assert (done.rows, done.new, done.corrected, done.retracted, done.unchanged, done.left) == (200, 200, 0, 0, 0, 0)
    assert done.calibrating == {split: expected.count(split) for split in set(expected)}
    assert events(scored, IDS[0]) == [(int(tweets()["y"][0]), "random", "labels.csv")]
    assert state(scored, IDS[200]) == ("scored", None)


def test_an_id_with_control_characters_that_was_stored_can_be_labelled_and_forgotten(scored: Bench) -> None:
    """Earlier versions took such ids, which no new exemplar may have."""
    with connect(scored.engine) as connection:
        for old, new in ((IDS[0], "tab\there"), (IDS[1], "line\nbreak")):
            rename = "UPDATE exemplar SET external_id = :new WHERE external_id = :old"
            connection.execute(text(rename), {"old": old, "new": new})
        connection.commit()
    give(scored, {"tab\there": 1})
    path = scored.folder / "labels.parquet"
    pq.write_table(pa.table({"external_id": ["line\nbreak"], "label": [0]}), path)
    label(scored.engine, "reviews", LabelFile(path), selection="random", retract=False)
    assert (state(scored, "tab\there")[1], state(scored, "line\nbreak")[1]) == (1, 0)
    done = forget(scored.workspace(chunk_rows=100), "reviews", ["tab\there", "line\nbreak"])
    assert done.exemplars == 2


def test_tokens_of_a_document_stay_in_one_split(scored: Bench) -> None:
    arrays = tweets() | {"y": np.full(len(IDS), -1), "doc": np.array([f"doc-{row // 8}" for row in range(len(IDS))])}
    arrays["id"] = np.array([f"token-{row}" for row in range(len(IDS))])
    scored.score("reviews", scored.write("tokens.npz", arrays))
    give(scored, {f"token-{row}": 0 for row in range(0, len(IDS), 3)})
    rows = scored.rows(
        "SELECT document_id, count(DISTINCT split) AS splits FROM exemplar "
        "WHERE external_id LIKE 'token-%' AND label IS NOT NULL GROUP BY document_id"
    )
    assert len(rows) == 50
    assert {row.splits for row in rows} == {1}


def test_selected_labels_are_kept_and_never_calibrate(scored: Bench) -> None:
    done = give(scored, labels_of(range(50)), selection="selected")
    assert (done.new, done.calibrating) == (50, {})
    assert {state(scored, external_id)[0] for external_id in IDS[:50]} == {"scored"}
    changed = scored.calibrate("reviews", kappa=100).changed
    assert (changed.closed, changed.opened) == (0, 0)
    # The same labels, of a random sample after all.
    again = give(scored, labels_of(range(50)))
    assert (again.new, again.corrected, again.put_to_use, again.unchanged) == (0, 0, 50, 0)
    assert sum(again.calibrating.values()) == 50
    assert [selection for _, selection, _ in events(scored, IDS[0])] == ["selected", "random"]


def test_corrections_and_labels_taken_back(scored: Bench) -> None:
    right = labels_of(range(30))
    wrong = {external_id: 1 - number for external_id, number in right.items()}
    give(scored, wrong)
    where = [state(scored, external_id)[0] for external_id in right]
    corrected = give(scored, right, selection="selected")
    assert (corrected.new, corrected.corrected, corrected.calibrating, corrected.left) == (0, 30, {}, 0)
    assert [state(scored, external_id) for external_id in right] == list(zip(where, right.values(), strict=True))

    taken_back = give(scored, dict.fromkeys(right), retract=True)
    assert (taken_back.retracted, taken_back.left, taken_back.calibrating) == (30, 30, {})
    assert {state(scored, external_id) for external_id in right} == {("scored", None)}
    assert [number for number, _, _ in events(scored, IDS[0])] == [wrong[IDS[0]], right[IDS[0]], None]

    selected = give(scored, right, selection="selected")
    assert (selected.new, selected.calibrating) == (30, {})
    assert {state(scored, external_id)[0] for external_id in right} == {"scored"}


def test_the_same_labels_again_record_nothing(scored: Bench) -> None:
    give(scored, labels_of(range(20)))
    before = scored.value("SELECT count(*) FROM label_event")
    again = give(scored, labels_of(range(20)))
    assert (again.rows, again.unchanged, again.new, again.calibrating) == (20, 20, 0, {})
    assert give(scored, {IDS[399]: None}, retract=True).unchanged == 1
    assert scored.value("SELECT count(*) FROM label_event") == before


def test_the_next_snapshot_is_a_calibration_from_scratch(scored: Bench) -> None:
    """After labels, corrections and labels taken back, and without a search: every tweet was scored before."""
    give(scored, {external_id: 1 - number for external_id, number in labels_of(range(300)).items()})
    scored.calibrate("reviews", kappa=100)
    give(scored, labels_of(range(280)))
    give(scored, dict.fromkeys(IDS[280:300]), retract=True)
    searched = scored.value("SELECT count(*) FROM job_row")
    done = scored.calibrate("reviews", kappa=100)
    assert scored.value("SELECT count(*) FROM job_row") == searched
    assert done.changed.closed > 0
    current = scored.rows(CURRENT, name="reviews")

    with np.load(EXAMPLES / "valid.npz") as valid:
        held_out = {name: np.concatenate([valid[name][:4000], tweets()[name][:280]]) for name in ("r", "f", "y")}
    ids = [row.external_id for row in scored.rows("SELECT external_id FROM exemplar ORDER BY id")]
    train_count = len(np.load(EXAMPLES / "train.npz")["y"])
    held_out["id"] = np.array([*ids[train_count : train_count + 4000], *IDS[:280]])
    held_out["doc"] = np.array([row.key for row in scored.rows(KEYS_OF, ids=held_out["id"].tolist())])
    scored.create("fresh", dimension=128)
    scored.ingest("fresh", EXAMPLES / "train.npz", "train")
    scored.ingest("fresh", scored.write("fresh.npz", held_out), "held-out")
    scored.adopt("fresh")
    from_scratch = scored.calibrate("fresh", kappa=100)
    assert from_scratch.by_admit.radius == done.by_admit.radius
    assert scored.rows(CURRENT, name="fresh") == current


class TestRefusals:
    def check(self, bench: Bench, labels: Mapping[str, int | None], error: type[Exception], saying: str) -> None:
        before = bench.rows("SELECT count(*), max(id) FROM label_event"), state(bench, IDS[0])
        with pytest.raises(error, match=saying):
            give(bench, {IDS[0]: 1, **labels})
        assert (bench.rows("SELECT count(*), max(id) FROM label_event"), state(bench, IDS[0])) == before

    def test_an_id_that_is_not_stored(self, scored: Bench) -> None:
        self.check(scored, {"nobody": 1}, NotFoundError, r"row 1, external_id: .* has no exemplar 'nobody'")

    def test_a_label_that_is_no_class(self, scored: Bench) -> None:
        self.check(scored, {IDS[1]: 2}, InvalidInputError, r"row 1, label: expected a class number 0..1")
