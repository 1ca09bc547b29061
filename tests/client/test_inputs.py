"""What the client refuses before it sends anything, and how rows become requests."""

import json
import re
import uuid
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from venn_admit import errors as service_errors
from venn_admit.files.records import plain_attributes
from venn_admit.interface.arrays import attributes_of
from venn_admit_client import Classifier, InvalidInputError, Retries, connect, errors
from venn_admit_client.codes import Problem
from venn_admit_client.inputs import as_rows, bodies, floats, labels_of, texts
from venn_admit_client.members import as_json
from venn_admit_client.records.data import Registered
from venn_admit_client.transport import Transport

pytestmark = pytest.mark.processes

NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def classifier() -> Classifier:
    answer = as_json(Registered("made", ("a", "b"), 3, 2, 1, True, None))
    return Classifier(Transport(NOBODY, "key", timeout=1, retries=Retries(0)), answer)


@pytest.mark.parametrize(
    ("call", "saying"),
    [
        (lambda made: made.decide([1.0, 2.0]), r"vector: expected shape \(3,\), got \(2,\)"),
        (lambda made: made.decide_many(np.zeros((2, 4))), r"vectors: expected shape \(n, 3\), got \(2, 4\)"),
        (lambda made: made.decide_many([[0, np.nan, 0]]), r"vectors\[0, 1\]: expected a finite number"),
        (lambda made: made.decide_many([[0, 1e39, 0]]), r"vectors\[0, 1\]: expected a finite number"),
        (lambda made: made.decide_many([["a", "b", "c"]]), "vectors: expected an array of floats, got <U1; cast it"),
        (lambda made: made.decide_many(np.ones((1, 3), dtype=complex)), "an array of floats, got complex128; cast it"),
        (lambda made: made.decide_many([[True, False, True]]), "vectors: expected an array of floats, got bool"),
        (lambda made: made.decide_many([[1, 2, 3]]), "vectors: expected an array of floats, got int64; cast it"),
        (lambda made: made.decide_many([[1.0, None, 3.0]]), "vectors: expected an array of floats, got object"),
        (lambda made: made.decide_many(torch.ones((1, 3), dtype=torch.bool)), "an array of floats, got bool"),
        (lambda made: made.decide(["1", "2", "3"]), "vector: expected an array of floats, got <U1; cast it"),
        (lambda made: made.decide_many([[0.0, 1.0, 2.0], [0.0]]), "vectors: expected numbers, as many in each row"),
        (lambda made: made.decide_many([torch.ones(3), torch.ones(1)]), "expected numbers, as many in each row"),
        (
            lambda made: made.decide_many(np.ma.array(np.eye(3), mask=np.eye(3) > 0)),
            "vectors: .* without masked values",
        ),
        (
            lambda made: made.decide_many([np.ma.array([0.0, 1.0, 2.0], mask=[False, False, True])]),
            "without masked values",
        ),
        (lambda made: made.decide_many(np.eye(3), ids="abc"), "ids: expected a list or an array of values, got a str"),
        (lambda made: made.label({1.5: 0}), "row 0, ids: expected a text or an integer, got 1.5"),
        (lambda made: made.label(pd.Series([1], index=["n10"])), "the Series cannot be read as a table: "),
        (lambda made: made.audit(float("nan")), "rate: expected what JSON can hold"),
        (lambda made: made.decide_many(), "expected columns of one length, got none"),
        (lambda made: made.decide_many(np.zeros((0, 3))), "points: expected at least one row"),
        (lambda made: made.decide_many(np.zeros((2, 3)), ids=["x"]), "external_id has 1, vector has 2"),
        (lambda made: made.ingest(logits=np.zeros((2, 2)), labels=[0]), "logits has 2, label has 1"),
    ],
)
def test_it_says_what_was_expected(classifier: Classifier, call: Callable[[Classifier], Any], saying: str) -> None:
    with pytest.raises(InvalidInputError, match=saying):
        call(classifier)


@pytest.mark.parametrize(
    ("url", "key", "saying"),
    [
        ("localhost:8470", "key", "url: expected http://host:port"),
        ("postgresql://localhost/venn", "key", "url: expected http://host:port"),
        ("http://", "key", "url: expected http://host:port"),
        (NOBODY, "", "key: expected the text"),
        (NOBODY, "a\nb", "key: expected the text"),
    ],
)
def test_what_is_no_address_or_key(url: str, key: str, saying: str) -> None:
    with pytest.raises(InvalidInputError, match=saying) as refused:
        connect(url, key)
    assert not key or key not in str(refused.value).removeprefix("key")


def test_no_key_and_no_address_are_none() -> None:
    """As an environment without them gives."""
    with pytest.raises(InvalidInputError, match="key: expected the text"):
        connect(NOBODY, None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="url: expected http://host:port or https://host, got None"):
        connect(None, "key")  # type: ignore[arg-type]


def test_waits_double_up_to_the_longest_and_differ() -> None:
    retries = Retries(first_wait=0.25, longest_wait=10)
    for failures, most in ((1, 0.25), (2, 0.5), (5, 4.0), (7, 10.0), (10_000, 10.0)):
        waits = {retries.wait(failures) for _ in range(50)}
        assert len(waits) > 40
        assert most / 2 <= min(waits) <= max(waits) <= most
    with pytest.raises(InvalidInputError, match="total_seconds: expected a number of seconds, 0 or more, got -1"):
        Retries(-1)


def test_a_tensor_is_as_its_array() -> None:
    values = np.array([[0.5, -1.25]])
    for given in (values, torch.tensor(values), torch.tensor(values, dtype=torch.bfloat16).requires_grad_()):
        found = floats(given, "vectors", 2)
        assert found is not None
        assert found.dtype == np.float32
        assert found.tolist() == values.tolist()


def test_requests_stay_below_what_the_service_reads() -> None:
    wide = as_rows({"vector": np.random.default_rng(1).normal(size=(600, 4000)).astype(np.float32)})
    sent = list(bodies("points", wide, {}, most_rows=1000))
    assert len(sent) > 1
    assert max(len(body) for _, body in sent) < 32 << 20
    assert sum(count for count, _ in sent) == 600
    assert [row for _, body in sent for row in json.loads(body)["points"]] == wide


def test_every_code_of_the_service_has_its_family_here() -> None:
    families = [
        each
        for each in vars(service_errors).values()
        if isinstance(each, type) and issubclass(each, service_errors.VennAdmitError)
    ]
    for code in service_errors.Code:
        (family,) = (each for each in families if each.general == code.family)
        assert errors.family_of(code, 500).__name__ == family.__name__, code
    for problem in Problem:
        assert problem in errors._BY_CODE, problem


@pytest.mark.parametrize(
    "labels",
    [
        [0, float("nan"), -1, None, "a"],
        pd.Series([0, None, -1, None, "a"], dtype="object"),
        [np.int64(0), np.float64("nan"), np.int8(-1), pd.NA, "a"],
        [torch.tensor(0), pd.NaT, -1.0, np.ma.masked, np.str_("a")],
    ],
)
def test_what_stands_for_no_label_is_null(labels: Any) -> None:
    assert labels_of(labels) == [0, None, None, None, "a"]


def test_columns_of_labels() -> None:
    for labels in (
        np.array([1, -1]),
        torch.tensor([1, -1]),
        pd.Series([1, None], dtype="Int64"),
        np.ma.array([1, 0], mask=[False, True]),
    ):
        assert labels_of(labels) == [1, None]


@pytest.mark.parametrize(
    ("labels", "shape"),
    [(np.zeros((2, 1)), "(2, 1)"), (np.eye(3), "(3, 3)"), ([[0], [1]], "(2, 1)"), (pd.DataFrame({"y": [0]}), "(1, 1)")],
)
def test_labels_of_another_shape(labels: Any, shape: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(f"labels: expected shape (n,), got {shape}")):
        labels_of(labels)


@pytest.mark.parametrize(
    "value",
    [1.0, True, b"a", uuid.UUID(int=1), pd.Timestamp("2020-01-01"), np.datetime64("2020-01-01", "ns"), ["a"]],
    ids=repr,
)
@pytest.mark.parametrize("name", ["ids", "documents"])
def test_what_is_no_id(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"row 1, {name}: expected a text or an integer, got "):
        texts(["a", value], name)


def test_a_document_may_be_missing_and_an_id_may_not() -> None:
    given = ["a", np.nan, pd.NA, pd.NaT, None, np.int64(3), np.str_("b")]
    assert texts(given, "documents") == ["a", None, None, None, None, "3", "b"]
    assert texts(np.full(280, np.nan), "documents") == [None] * 280
    with pytest.raises(InvalidInputError, match="row 1, ids: expected a text or an integer, got nan"):
        texts(given)


def test_lists_of_tensors() -> None:
    rows = [torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0]).bfloat16()]
    found = floats(rows, "vectors", 2)
    assert found is not None
    assert found.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("of", [dict, pd.DataFrame, pa.table])
def test_attributes_are_those_of_the_python_interface(of: Callable[[Any], Any]) -> None:
    """Every kind that JSON lacks is sent as it would be stored in process."""
    days = np.array(["2020-01-02", "NaT"], dtype="M8[ns]")
    columns = {"city": ["Rome", None], "size": np.array([1.5, np.nan]), "day": days, "tags": [["x"], ["y", "z"]]}
    given = of(columns)
    sent = [row["attributes"] for row in as_rows({"label": [0, 1]}, given)]
    assert sent == [
        {"city": "Rome", "size": 1.5, "day": "2020-01-02T00:00:00", "tags": ["x"]},
        {"city": None, "size": None, "day": None, "tags": ["y", "z"]},
    ]
    in_process = attributes_of(given)
    kept = [{name: values[row] for name, values in in_process.items()} for row in range(2)]
    assert sent == [plain_attributes("arrays", row, values) for row, values in enumerate(kept)]


def test_attributes_of_rarer_kinds() -> None:
    values = [np.int64(3), np.bool_(True), pd.NA, float("inf"), Decimal("0.10"), date(2020, 1, 2), {"a": [np.nan]}]
    sent = as_rows({"label": [0] * len(values)}, {"x": values})
    assert [row["attributes"]["x"] for row in sent] == [3, True, None, None, "0.10", "2020-01-02", {"a": [None]}]


@pytest.mark.parametrize(
    ("attributes", "saying"),
    [
        (
            {"x": [1, ("a", 2)]},
            "row 1, attribute 'x': expected numbers, texts, dates, .*, got a tuple; cast it to text",
        ),
        ({"x": [[{1}], 2]}, "row 0, attribute 'x': expected numbers, .*, got a set"),
        ({"x": np.array([1, 2], dtype="m8[ns]")}, "row 0, attribute 'x': expected numbers, .*, got a timedelta; cast"),
        ({"x": "ab"}, "attribute 'x': expected a list or an array of values, got a str"),
        ([1, 2], "attributes: expected a mapping of columns, a DataFrame or a table of Arrow, got a list"),
    ],
    ids=repr,
)
def test_attributes_that_json_has_not(attributes: Any, saying: str) -> None:
    with pytest.raises(InvalidInputError, match=saying):
        as_rows({"label": [0, 1]}, attributes)


def test_a_value_within_itself_is_no_attribute() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidInputError, match="row 0, attribute 'x': expected a value nested at most 100 deep"):
        as_rows({"label": [0]}, {"x": [endless]})


def test_numbers_of_numpy_are_numbers_of_json() -> None:
    made = Transport(NOBODY, "key", timeout=1, retries=Retries(0))
    with pytest.raises(errors.UnavailableError):  # it was encoded, and nobody listens
        made.post("x", body={"rows": np.int64(4), "rate": np.float32(0.5), "is": np.bool_(True)})
    with pytest.raises(InvalidInputError, match="labels: expected what JSON can hold: an ndarray is none of its types"):
        made.put("x", body={"rows": 4, "labels": np.zeros(2)})
    with pytest.raises(InvalidInputError, match="neighbours: expected what JSON can hold"):
        list(bodies("points", [{"x": 1}], {"weighted": None, "neighbours": float("nan")}, most_rows=1))
    assert list(bodies("points", [{"x": np.int64(1)}], {"neighbours": np.int64(2)}, most_rows=1)) == [
        (1, b'{"neighbours": 2, "points": [{"x": 1}]}')
    ]


def test_an_output_never_replaces_the_file_that_is_read(classifier: Classifier, tmp_path: Path) -> None:
    path = tmp_path / "new.parquet"
    path.write_bytes(b"exemplars")
    with pytest.raises(InvalidInputError, match=r"out: expected another file than .*new.parquet, which is read"):
        classifier.score(path, out=tmp_path / "." / "new.parquet")
    assert path.read_bytes() == b"exemplars"
