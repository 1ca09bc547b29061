"""Forgetting exemplars and deleting a classifier through the client and in Python, which say the same."""

from typing import Any

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
