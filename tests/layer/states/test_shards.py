"""What is written to a folder of shards is read from it, in any order, also after an interruption."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.layer.states.folders import CLASS_NAMES, ENCODER, WIDTH, documents, write, writer
from venn_admit.errors import InvalidInputError
from venn_admit.layer.states.index import StateDocument
from venn_admit.layer.states.reader import StateShards


def assert_equal(found: StateDocument, expected: StateDocument) -> None:
    for name in ("external_id", "label", "tokens", "attributes"):
        assert getattr(found, name) == getattr(expected, name)
    assert found.states.dtype == np.float32
    np.testing.assert_array_equal(found.states, expected.states)
    if expected.token_labels is None:
        assert found.token_labels is None
    else:
        np.testing.assert_array_equal(found.token_labels, expected.token_labels)


@pytest.mark.parametrize("labelled_tokens", [False, True])
def test_documents_are_read_as_they_were_written(tmp_path: Path, labelled_tokens: bool) -> None:
    written = write(tmp_path / "states", labelled_tokens=labelled_tokens)
    shards = StateShards(tmp_path / "states")
    assert len(shards.index.shards) > 3
    assert (shards.width, shards.class_names, shards.encoder) == (WIDTH, CLASS_NAMES, ENCODER)
    assert shards.kind == ("token" if labelled_tokens else "document")
    assert shards.document_count == len(written)
    assert shards.token_count == sum(len(document.states) for document in written)
    assert shards.external_ids == [document.external_id for document in written]
    assert shards.lengths.tolist() == [len(document.states) for document in written]
    assert shards.labels.tolist() == [document.label for document in written]
    for found, expected in zip(shards.documents(), written, strict=True):
        assert_equal(found, expected)


def test_documents_are_read_in_any_order_and_as_often_as_asked(tmp_path: Path) -> None:
    written = write(tmp_path / "states")
    order = np.array([39, 0, 17, 17, 20, 1])
    found = list(StateShards(tmp_path / "states").documents(order))
    for document, row in zip(found, order.tolist(), strict=True):
        assert_equal(document, written[row])


def test_an_interrupted_run_goes_on_after_its_complete_shards(tmp_path: Path) -> None:
    write(tmp_path / "at once")

    def write_until(limit: int) -> int:
        with writer(tmp_path / "twice", source="texts") as shards:
            begun = shards.written
            for document in list(documents(40))[begun:limit]:
                shards.append(document)
            if limit < 40:
                raise KeyboardInterrupt
        return begun

    with pytest.raises(KeyboardInterrupt):
        write_until(25)
    with pytest.raises(InvalidInputError, match="interrupted; run what wrote it again"):
        StateShards(tmp_path / "twice")
    assert 0 < write_until(40) < 25
    twice, once = StateShards(tmp_path / "twice"), StateShards(tmp_path / "at once")
    assert [shard.sha256 for shard in twice.index.shards] == [shard.sha256 for shard in once.index.shards]


def test_a_folder_left_by_other_work_is_not_continued(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), writer(tmp_path, source="other texts"):
        raise KeyboardInterrupt
    with pytest.raises(InvalidInputError, match="same documents, encoder and options"):
        writer(tmp_path, source="texts").__enter__()


def test_a_folder_in_use_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"expected an empty folder for the states, got one with 'notes\.txt'"):
        writer(tmp_path).__enter__()


def test_nothing_is_no_folder_of_states(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="documents: expected at least one, got 0"), writer(tmp_path):
        pass


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"external_id": "first"}, "expected every id once, got it twice"),
        ({"external_id": ""}, "expected 1 to 1,000 characters"),
        ({"states": np.zeros((0, WIDTH), np.float32)}, r"expected shape \(T >= 1, 6\), got \(0, 6\)"),
        ({"states": np.zeros((2, 7), np.float32)}, r"expected shape \(T >= 1, 6\), got \(2, 7\)"),
        ({"states": np.full((1, WIDTH), np.nan, np.float32), "tokens": ()}, "numbers that float16 can hold"),
        ({"states": np.full((1, WIDTH), 1e5, np.float32), "tokens": ()}, "numbers that float16 can hold"),
        ({"tokens": ("one",) * 99}, "tokens: expected none or"),
        ({"label": 2}, r"labels: expected -1\.\.1, got 2\.\.2"),
    ],
)
def test_a_document_that_is_wrong_is_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    first, second = documents(2)
    with writer(tmp_path) as shards:
        shards.append(replace(first, external_id="first"))
        with pytest.raises(InvalidInputError, match=said):
            shards.append(replace(second, **change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("token_labels", "said"),
    [(None, "got none"), (np.array([0]), "expected shape"), ("outside", r"expected -2\.\.1")],
)
def test_labels_of_tokens_that_are_wrong_are_refused(tmp_path: Path, token_labels: object, said: str) -> None:
    document = next(documents(1, labelled_tokens=True))
    if token_labels == "outside":
        token_labels = np.full(len(document.states), 2)
    with pytest.raises(InvalidInputError, match=said), writer(tmp_path, labelled_tokens=True) as shards:
        shards.append(replace(document, token_labels=token_labels))  # type: ignore[arg-type]
