"""What people have at hand as input: taken as they mean it, or refused by name, and never stored as something else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from pydantic import ValidationError
from sqlalchemy import Engine, text

import venn_admit
from venn_admit import InvalidInputError
from venn_admit.api.models.exemplars import NewLabel, NewLabels
from venn_admit.files.label_values import ClassNumbers
from venn_admit.files.sources import ArraySource
from venn_admit.interface.arrays import attributes_of, column_of
from venn_admit.store.database.engine import connect

LOGITS = np.array([[2.0, -1.0], [-1.0, 2.0], [3.0, -1.0], [-1.0, 3.0]], dtype=np.float32)
VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def made(connection: venn_admit.Connection) -> venn_admit.Classifier:
    return connection.create("made", ["a", "b"], dimension=3, neighbours=2)


def ingest(made: venn_admit.Classifier, **changed: Any) -> venn_admit.Ingestion:
    given: dict[str, Any] = {"vectors": VECTORS, "logits": LOGITS, "labels": [0, 1, 0, 1], "ids": list("wxyz")}
    return made.ingest(**{**given, **changed}, split="train")


def test_texts_that_are_numbers_of_other_classes_are_to_be_integers(connection: venn_admit.Connection) -> None:
    """Numbers beside names become text, and are refused like them."""
    made = connection.create("digits", ["1", "0"], dimension=3, neighbours=2)
    ingest(made)
    advice = "expected class numbers as integers alone, which Python, JSON, .*, got '1', which is the number of one"
    for labels in ({"w": "1"}, {"w": 1, "x": "0"}):
        with pytest.raises(InvalidInputError, match=f"row 0, label: {advice}"):
            made.label(labels)
    with pytest.raises(InvalidInputError, match=f"row 0, labels: {advice}"):
        ingest(made, labels=["1", "0", "1", "0"])
    assert made.label({"w": 1, "x": 1}).corrected == 1


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("a" * 200, None),
        ("a" * 201, "source: expected 1 to 200 characters, got 201"),
        ("", "source: expected 1 to 200 characters, got 0"),
        ("a\tb", "source: expected text without control characters"),
        ("a\0b", "source: expected text without NUL characters"),
        ("a\ud800", "source: expected text that UTF-8 can encode"),
    ],
)
def test_what_is_recorded_as_a_source_is_checked_as_over_http(
    made: venn_admit.Classifier, source: str, said: str | None
) -> None:
    ways: list[Callable[[], object]] = [
        lambda: ingest(made, source=source),
        lambda: made.label({"w": 0}, source=source),
        lambda: made.label(pd.DataFrame({"external_id": ["w"], "label": [1]}), source=source),
    ]
    for way in ways:
        if said is None:
            way()
        else:
            with pytest.raises(InvalidInputError, match=said):
                way()
    if said is None:
        assert NewLabels(labels=[NewLabel(external_id="w", label=0)], source=source).source == source
    else:
        with pytest.raises(ValidationError):
            NewLabels(labels=[NewLabel(external_id="w", label=0)], source=source)


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series([0, 1, None, 1], dtype="Int64"),
        pd.Series(["a", "b", None, "b"], dtype="string"),
        pd.Series(pd.Categorical(["a", "b", None, "b"])),
        np.ma.array([0, 1, 7, 1], mask=[False, False, True, False]),
        [0, 1, float("nan"), 1],
        ["a", "b", np.nan, "b"],
        [0, 1, -1, 1],
        [np.int64(0), np.int64(1), pd.NA, "b"],
        torch.tensor([0, 1, -1, 1]),
        [torch.tensor(label) for label in (0, 1, -1, 1)],
    ],
)
def test_what_stands_for_no_label(labels: Any) -> None:
    assert ClassNumbers(2, ("a", "b")).of_column(column_of(labels)).tolist() == [0, 1, -1, 1]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"labels": np.array([[0], [1], [0], [1]])}, r"labels: expected shape \(4,\), got \(4, 1\)"),
        ({"labels": np.eye(4, dtype=np.int64)}, r"labels: expected shape \(4,\), got \(4, 4\)"),
        ({"labels": np.array([["a"]] * 4)}, r"labels: expected shape \(4,\), got \(4, 1\)"),
        ({"labels": pd.DataFrame({"y": [0, 1, 0, 1]})}, r"labels: expected shape \(4,\), got \(4, 1\)"),
        ({"labels": [np.array([0, 1])] * 4}, "row 0, labels: expected a class number"),
        ({"labels": 1}, "labels: expected a list or an array of values, got an int"),
        ({"labels": "abab"}, "labels: expected a list or an array of values, got a str"),
        ({"attributes": {"day": np.array(1)}}, "attribute 'day': expected a list or an array of values"),
        ({"vectors": np.ma.array(VECTORS, mask=VECTORS == 3)}, "vectors: expected an array without masked values"),
        ({"logits": list(np.ma.array(LOGITS, mask=LOGITS == 3))}, "logits: expected an array without masked values"),
        ({"vectors": [[1.0, 2.0, 3.0], [1.0], [2.0], [3.0]]}, "vectors: expected numbers, as many in each row"),
        ({"vectors": [[torch.tensor(1.0, requires_grad=True)] * 3] * 4}, "vectors: expected numbers"),
        ({"vectors": torch.tensor(VECTORS).to_sparse()}, "vectors: expected numbers"),
        ({"vectors": (row for row in VECTORS)}, "vectors: expected numbers, in an array for example, got a generator"),
        ({"vectors": pd.Series([*VECTORS[:3], VECTORS[0, :2]])}, "vectors: expected numbers, as many in each row"),
        ({"ids": set("wxyz")}, "ids: expected a list or an array of values, got a set"),
        ({"vectors": VECTORS.astype(complex)}, "expected an array of floats"),
        ({"ids": ["w", "x", np.nan, "z"]}, "row 2, ids: expected a text or an integer, got nan"),
        ({"documents": ["w", "x", 1.5, "z"]}, "row 2, documents: expected a text or an integer, got 1.5"),
    ],
)
def test_what_is_refused(made: venn_admit.Classifier, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        ingest(made, **changed)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_a_document_may_be_missing(made: venn_admit.Classifier, engine: Engine, missing: Any) -> None:
    ingest(made, ids=[np.int64(1), 2, 3, 4], documents=["1", missing, np.int64(1), "z"])
    with connect(engine) as reading:
        found = reading.execute(text("SELECT external_id, document_id FROM exemplar ORDER BY id")).all()
    assert [tuple(row) for row in found] == [("1", "1"), ("2", None), ("3", "1"), ("4", "z")]


def test_lists_of_tensors(made: venn_admit.Classifier) -> None:
    vectors = [torch.tensor(row, requires_grad=True) for row in VECTORS]
    logits = [torch.tensor(row).bfloat16() for row in LOGITS]
    assert ingest(made, vectors=vectors, logits=logits).new == 4


@pytest.mark.parametrize("column", [pd.Series, pa.array, lambda rows: pa.chunked_array([rows[:2], rows[2:]])])
def test_columns_of_tables(made: venn_admit.Classifier, column: Callable[[list[Any]], Any]) -> None:
    given = {"vectors": list(VECTORS), "logits": list(LOGITS), "labels": list("abab"), "ids": list("wxyz")}
    tags = {"tag": column(["n", "n", "s", "s"])}
    assert ingest(made, **{name: column(values) for name, values in given.items()}, attributes=tags).new == 4
    assert ingest(made, labels=[0, 1, 0, 1], attributes={"tag": ["n", "n", "s", "s"]}).already_stored == 4


def test_dates_are_those_of_a_table(
    made: venn_admit.Classifier, connection: venn_admit.Connection, engine: Engine
) -> None:
    days = np.array(["2020-01-01", "NaT", "2020-01-03", "2020-01-04T05:06:07.000000008"], dtype="M8[ns]")
    ingest(made, attributes={"day": days})
    ingest(connection.create("other", ["a", "b"], dimension=3, neighbours=2), attributes=pd.DataFrame({"day": days}))
    with connect(engine) as reading:
        found = reading.execute(text("SELECT attributes ->> 'day' FROM exemplar ORDER BY id")).scalars().all()
    assert found[:4] == found[4:]
    assert found[1] is None
    assert found[2:4] == ["2020-01-03T00:00:00", "2020-01-04T05:06:07.000000008"]


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ([pd.NaT, pd.NA, pd.Timestamp("2020-01-03"), None], [None, None, "2020-01-03T00:00:00", None]),
        (pd.Series([1, None, 2, 3], dtype="Int64"), [1, None, 2, 3]),
        (np.ma.array([1, 2, 3, 4], mask=[False, True, False, False]), [1, None, 3, 4]),
        (np.arange(4), [0, 1, 2, 3]),
        (LOGITS, LOGITS.tolist()),
    ],
)
def test_attributes(values: Any, stored: list[object]) -> None:
    columns = attributes_of({"one": values})
    (batch,) = ArraySource("made", VECTORS, LOGITS, attributes=columns).batches(
        dimension=3, class_count=2, class_names=("a", "b")
    )
    assert [each["one"] for each in batch.attributes] == stored


FRAME = {"vector": list(VECTORS), "logits": list(LOGITS), "external_id": list("wxyz")}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda made: made.ingest(pd.DataFrame({**FRAME, "label": [0, "b", 0, "b"]})),
            "the DataFrame cannot .* column label",
        ),
        (
            lambda made: made.label(pd.DataFrame({"external_id": ["w", "x"], "label": ["a", 1]})),
            "the DataFrame .* column label",
        ),
        (lambda made: made.ingest(VECTORS), "a DataFrame, .* by their names, vectors and logits, got an ndarray"),
        (lambda made: made.label({"w": 10**30}), "labels: expected class numbers or class names"),
        (lambda made: made.label(pd.Series({"w": 0, "x": 1})), "expected labels by ids, a path, .*, got a Series"),
        (lambda made: made.decide([1, 2, 3], logits=np.array([1 + 1j, 2])), "logits: expected an array of floats"),
        (lambda made: made.decide([1, 2, 3], logits=["1", "2"]), "logits: expected an array of floats"),
        (lambda made: made.decide(np.array([True, False, True])), "vector: expected an array of floats"),
        (lambda made: made.decide([1.0, [2.0], 3.0]), "vector: expected numbers, as many in each row"),
    ],
)
def test_what_cannot_be_read_is_no_fault_of_the_program(
    made: venn_admit.Classifier, call: Callable[[venn_admit.Classifier], object], said: str
) -> None:
    ingest(made)
    with pytest.raises(InvalidInputError, match=said):
        call(made)


def test_labels_by_ids_are_what_labels_of_rows_are(made: venn_admit.Classifier) -> None:
    ingest(made)
    given = {"w": torch.tensor(1), "x": np.int64(1), "y": pd.NA, "z": None}
    assert made.label(given, selection="selected", retract=True).retracted == 2
    with pytest.raises(InvalidInputError, match="row 2, label: expected a label, got nothing"):
        made.label(given, selection="selected")


def test_a_table_without_rows(made: venn_admit.Classifier) -> None:
    with pytest.raises(InvalidInputError, match="table: expected at least one row, got 0"):
        made.ingest(pd.DataFrame(FRAME)[:0])


def test_an_index_without_a_name_is_no_column(made: venn_admit.Classifier) -> None:
    ingest(made)
    frame = pd.DataFrame({"external_id": ["w", "x"], "label": ["b", "b"]}, index=[7, 9])
    assert made.label(frame, selection="selected").ignored == ()
    named = frame.set_index("external_id")
    assert made.label(named, selection="selected") == made.label(frame, selection="selected")
