"""Arguments of another type than a signature declares are refused, before anything is done with them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import venn_admit
from venn_admit.interface.arguments import checked


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda it: it.decide([0.0], weighted="yes"), "weighted: expected true or false, got 'yes'"),
        (lambda it: it.decide([0.0], require_full_match="no"), "require_full_match: expected true or false, got 'no'"),
        (lambda it: it.calibrate(dry_run="no"), "dry_run: expected true or false, got 'no'"),
        (lambda it: it.ingest("x.npz", allow_training_rows="no"), "allow_training_rows: expected true or false"),
        (lambda it: it.label({}, retract=1), "retract: expected true or false, got 1"),
        (lambda it: it.forget(["x"], dry_run=None), "dry_run: expected true or false, got None"),
        (lambda it: it.monitor(restart="no"), "restart: expected true or false, got 'no'"),
        (lambda it: it.monitor(label_deadline="14d"), "label_deadline: expected a timedelta, got '14d'"),
        (lambda it: it.use("1"), "calibration: expected a whole number, got '1'"),
        (lambda it: it.use(True), "calibration: expected a whole number, got True"),
        (lambda it: it.report(calibration="newest"), "calibration: expected a whole number, got 'newest'"),
        (lambda it: it.reviewer(None), "name: expected a text, got None"),
        (lambda it: it.reviewer("anna").claim("3"), "count: expected a whole number, got '3'"),
        (lambda it: it.reviewer("anna").claim(lease="900"), "lease: expected a number, got '900'"),
        (lambda it: it.audit(True), "rate: expected a number, got True"),
        (lambda it: it.what_if_settings(alpha=0.1), "alpha: expected several values, in a list for example, got 0.1"),
        (lambda it: it.what_if_class_shares([["0.5", "0.5"], 1]), "shares: expected several values, .* got 1"),
        (lambda it: it.what_if_class_shares("0.5,0.5"), "shares: expected several values, .* got '0.5,0.5'"),
        (lambda it: it.evaluate_sets(["x.npz"]), r"sets: expected a dictionary or another mapping, got \['x.npz'\]"),
        (lambda it: it.what_if_training(relabel=["x"]), "relabel: expected a dictionary or another mapping"),
        (lambda it: it.label({"\ud800": 1}), "labels: expected ids of exemplars: 'utf-8' codec can't encode"),
        (lambda it: it.label({"x": "\ud800"}), "labels: expected class numbers or class names: 'utf-8' codec"),
        (lambda it: it.label(["x"]), "expected labels by ids, a path, a pyarrow Table or a DataFrame, got a list"),
    ],
)
def test_what_is_of_another_type(
    connection: venn_admit.Connection, call: Callable[[venn_admit.Classifier], Any], message: str
) -> None:
    made = connection.create("made", ["a", "b"], dimension=1)
    with pytest.raises(venn_admit.InvalidInputError, match=message):
        call(made)


def test_a_connection_refuses_them_too(connection: venn_admit.Connection) -> None:
    with pytest.raises(venn_admit.InvalidInputError, match="name: expected a text, got 5"):
        connection.create(5, ["a", "b"], dimension=1)  # type: ignore[arg-type]
    with pytest.raises(venn_admit.InvalidInputError, match="migrate: expected true or false, got 'no'"):
        venn_admit.connect(migrate="no")  # type: ignore[arg-type]
    with pytest.raises(venn_admit.InvalidInputError, match=r"stages: expected names, .* got the single text 'small'"):
        connection.create_cascade("both", "small")
    with pytest.raises(venn_admit.InvalidInputError, match="cost of 'small': expected a number, got '1'"):
        connection.create_cascade("both", {"small": "1"})  # type: ignore[dict-item]


def test_python_itself_refuses_arguments_without_their_names(connection: venn_admit.Connection) -> None:
    made = connection.create("made", ["a", "b"], dimension=1)
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3 were given"):
        made.ingest([[0.0]], [[0.0, 1.0]])  # type: ignore[call-arg, arg-type]


def test_numbers_and_flags_of_numpy_are_such() -> None:
    @checked
    def given(
        flag: bool, count: int | None = None, time: timedelta | None = None, share: float = 0.0
    ) -> tuple[Any, ...]:
        return flag, count, time, share

    assert given(np.True_, count=np.int64(3), share=np.float32(1)) == (True, 3, None, 1)  # type: ignore[arg-type]
    assert given(False, None, timedelta(1), 2) == (False, None, timedelta(1), 2)
