"""Files of KNN parameters that no parser gets through."""

import json
from pathlib import Path
from typing import Any

import pytest

from venn_admit.errors import InvalidInputError
from venn_admit.files.text_files import read_parameters

GIVEN: dict[str, Any] = {"beta": [0.0, 1.0], "gamma": [1.0, 1.0], "eta": 2.0, "eta_loc": 0.5}
EIGHT = [0.25] * 8
MODEL: dict[str, Any] = {"mean": EIGHT, "sd": EIGHT, "coefficients": EIGHT, "intercept": -1.5, "points": 60}


def write(path: Path, payload: dict[str, Any]) -> Path:
    path.write_text(json.dumps(payload))
    return path


def test_the_reliability_score_comes_with_them(tmp_path: Path) -> None:
    document = {"median_d": 3.5, "models": {"0": MODEL, "all": MODEL}}
    found = read_parameters(write(tmp_path / "parameters.json", GIVEN | {"reliability": document}))
    assert found.reliability is not None
    assert found.reliability.document() == document
    assert (found.knn.beta.tolist(), found.knn.eta, found.eta_loc) == ([0.0, 1.0], 2.0, 0.5)


@pytest.mark.parametrize("without", [{}, {"reliability": None}])
def test_there_may_be_no_reliability_score(tmp_path: Path, without: dict[str, Any]) -> None:
    assert read_parameters(write(tmp_path / "parameters.json", GIVEN | without)).reliability is None


@pytest.mark.parametrize(
    "document", ["a model", {"median_d": 1.0}, {"median_d": 1.0, "models": {"0": MODEL | {"sd": EIGHT[1:]}}}]
)
def test_a_reliability_score_that_is_none_is_refused(tmp_path: Path, document: Any) -> None:
    path = write(tmp_path / "parameters.json", GIVEN | {"reliability": document})
    with pytest.raises(InvalidInputError, match=r"parameters\.json: reliability: expected a"):
        read_parameters(path)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"eta": ' + "9" * 5000 + "}", '{"beta": [1' + "0" * 400 + "]}", "\ufeff{}", "nothing"]
)
def test_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "parameters.json"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=r"parameters\.json: "):
        read_parameters(path)


@pytest.mark.parametrize(
    ("text", "saying"),
    [
        ("", "expected JSON, got"),
        ("[]", "expected an object with beta, gamma, eta and eta_loc"),
        (json.dumps(GIVEN | {"beta": 1}), "beta: expected a list of numbers, got 1"),
        (json.dumps(GIVEN | {"gamma": [1, "1"]}), r"gamma\[1\]: expected a number, got '1'"),
        (json.dumps({name: GIVEN[name] for name in ("beta", "gamma", "eta")}), "eta_loc: expected a number, got None"),
    ],
)
def test_messages_say_what_is_expected(tmp_path: Path, text: str, saying: str) -> None:
    path = tmp_path / "parameters.json"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=rf"parameters\.json: {saying}"):
        read_parameters(path)
