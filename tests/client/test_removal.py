"""Forgetting exemplars and deleting a classifier through the client and in Python, which say the same."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import venn_admit
import venn_admit_client as client
from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import CLASS_NAMES
from venn_admit_client import Connection

pytestmark = pytest.mark.processes


def test_both_interfaces_remove_and_say_the_same(connection: Connection, served: tuple[Program, str, str]) -> None:
    program = served[0]
    with venn_admit.connect(program.url, home=program.home) as own:
        held_out = samples.held_out()
        rows: dict[str, Any] = {
            "logits": held_out["logits"],
            "labels": held_out["label"],
            "ids": held_out["external_id"],
        }
        theirs = connection.create("by client", list(CLASS_NAMES), logits_only=True)
        ours = own.create("in python", list(CLASS_NAMES), logits_only=True)
        assert theirs.ingest(**rows).new == ours.ingest(**rows).new
        for dry_run in (True, False, False):
            one = theirs.forget(["held-out-3"], dry_run=dry_run)
            other = ours.forget(["held-out-3"], dry_run=dry_run)
            assert (one.rows, one.exemplars, one.is_done) == (other.rows, other.exemplars, other.is_done)
            assert one.forgotten_before == other.forgotten_before
        with pytest.raises(client.NotFoundError, match="nothing was removed"):
            theirs.forget(["nobody"])
        with pytest.raises(venn_admit.NotFoundError, match="nothing was removed"):
            ours.forget(["nobody"])
        gone, also = connection.delete("by client"), own.delete("in python")
        assert (gone.rows, gone.is_done) == (also.rows, also.is_done)
        assert gone.generations == ("by client@1",)


Interfaces = tuple[tuple[Any, type[Exception]], ...]


@pytest.fixture
def both(connection: Connection, served: tuple[Program, str, str]) -> Iterator[Interfaces]:
    """The client and Python, each with what it raises for invalid input."""
    program = served[0]
    with venn_admit.connect(program.url, home=program.home) as own:
        yield (connection, client.InvalidInputError), (own, venn_admit.InvalidInputError)


def test_a_single_text_is_no_list_of_ids(both: Interfaces) -> None:
    """Its characters may be ids too, and what is forgotten is gone."""
    for number, (one, refused) in enumerate(both):
        name = f"of digits {number}"
        made = one.create(name, ["1", "2", "3"], logits_only=True)
        made.ingest(logits=np.eye(3, dtype=np.float32) * 4, labels=[0, 1, 2], ids=[1, 2, 12])
        anna, said = made.reviewer("anna"), "expected ids, in a list for example, got the single text '12'"
        for asked, given in (
            (made.forget, {"ids": "12"}),
            (made.forget, {"documents": "12"}),
            (anna.release, {"ids": "12"}),
            (anna.renew, {"ids": "12"}),
        ):
            with pytest.raises(refused, match=said):
                asked(**given)
        # An integer is the number of a class, whatever classes are called.
        assert made.label({"1": 1}).corrected == 1
        assert made.forget(["12"]).exemplars == 1
        one.delete(name)


def test_names_and_sizes_of_another_type_are_refused_by_name(both: Interfaces) -> None:
    for number, (one, refused) in enumerate(both):
        for classes, sizes, said in (
            ([0, 1], {"dimension": 3}, "classes: expected texts as names, got 0"),
            ("ab", {"dimension": 3}, "got the single text 'ab'"),
            (["a", "b"], {"dimension": "3"}, "dimension: expected a whole number, got '3'"),
            (["a", "b"], {"dimension": 3.0}, "dimension: expected a whole number, got 3.0"),
            (["a", "b"], {"dimension": 3, "neighbours": True}, "neighbours: expected a whole number, got True"),
        ):
            with pytest.raises(refused, match=said):
                one.create("another", classes, **sizes)
        made = one.create(f"by numpy {number}", ["a", "b"], dimension=np.int64(3), neighbours=np.int32(5))
        for rate in (True, "0.1"):
            with pytest.raises(refused):
                made.audit(rate)
        assert made.audit(np.float64(0.5)).rates == {"a": 0.5, "b": 0.5}
        one.delete(made.name)
