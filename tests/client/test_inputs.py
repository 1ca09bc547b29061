"""What the client refuses before it sends anything, and how rows become requests."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from venn_admit import errors as service_errors
from venn_admit_client import Classifier, InvalidInputError, Retries, connect, errors
from venn_admit_client.codes import Problem
from venn_admit_client.inputs import as_rows, bodies, floats
from venn_admit_client.members import as_json
from venn_admit_client.records import Registered
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
        (lambda made: made.decide_many([["a", "b", "c"]]), "vectors: expected numbers"),
        (lambda made: made.decide_many(), "expected columns of one length, got none"),
        (lambda made: made.decide_many(np.zeros((0, 3))), "points: expected at least one row"),
        (lambda made: made.decide_many(np.zeros((2, 3)), ids=["x"]), "external_id has 1, vector has 2"),
        (lambda made: made.ingest(logits=np.zeros((2, 2)), labels=[0]), "logits has 2, label has 1"),
        (
            lambda made: made.ingest(logits=np.zeros((1, 2)), labels=[0], attributes={"x": [float("nan")]}),
            r"exemplars\[0\]: expected what JSON can hold",
        ),
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
