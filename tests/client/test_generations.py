"""Extractors and generations through the client: what it states, what is refused, and what a name stands for."""

from typing import Any

import pyarrow as pa
import pytest

import venn_admit_client as client
from tests.cli import samples
from tests.cli.samples import CLASS_NAMES
from venn_admit_client import Connection

pytestmark = pytest.mark.processes


@pytest.mark.usefixtures("worker")
def test_requests_state_their_extractor(connection: Connection) -> None:
    """What states another extractor, or none, is refused; so it is in one request, in blocks and in files."""
    made = connection.create("stated", list(CLASS_NAMES), logits_only=True, extractor="v1")
    assert made.extractor == "v1"
    held_out = samples.held_out()
    rows: dict[str, Any] = {"logits": held_out["logits"], "labels": held_out["label"], "ids": held_out["external_id"]}
    table = pa.table({"external_id": rows["ids"], "logits": list(rows["logits"]), "label": rows["labels"]})

    assert made.ingest(**rows, extractor="v1").new == len(table)
    assert made.ingest(table, extractor="v1").new == 0
    made.calibrate(method="venn-abers", promise="pointwise", alpha=0.2)
    logits = held_out["logits"][:3]
    decided = made.decide_many(logits=logits, extractor="v1")
    assert decided[0] == made.decide(logits=logits[0], extractor="v1")
    assert made.score(logits=logits, extractor="v1").num_rows == made.score(table[:3], extractor="v1").num_rows == 3

    for extractor, code in (("v2", "extractor-differs"), (None, "extractor-missing")):
        for ask in (
            lambda: made.ingest(**rows, extractor=extractor),  # noqa: B023 - it is called at once
            lambda: made.ingest(table, extractor=extractor),  # noqa: B023
            lambda: made.decide(logits=logits[0], extractor=extractor),  # noqa: B023
            lambda: made.decide_many(logits=logits, extractor=extractor),  # noqa: B023
            lambda: made.score(table, extractor=extractor),  # noqa: B023
        ):
            with pytest.raises(client.ConflictError) as refused:
                ask()
            assert refused.value.code == code


def test_generations_are_added_and_switched_to(connection: Connection) -> None:
    """A name stands for the generation in use; NAME@NUMBER stays with its own."""
    held_out = samples.held_out()
    rows: dict[str, Any] = {"logits": held_out["logits"], "labels": held_out["label"], "ids": held_out["external_id"]}
    named = connection.create("renewed", list(CLASS_NAMES), logits_only=True)
    named.ingest(**rows)
    named.calibrate(method="venn-abers", promise="pointwise", alpha=0.2)
    assert connection.state_extractor("renewed", "v1").extractor == "v1"
    first = connection.classifier("renewed@1")

    second = connection.create_generation("renewed", extractor="v2")
    assert (second.name, second.generation, second.extractor) == ("renewed@2", 2, "v2")
    with pytest.raises(client.NotReadyError):
        connection.switch("renewed@2")
    second.ingest(**rows, extractor="v2")
    second.calibrate(method="venn-abers", promise="pointwise", alpha=0.2)
    for made in (named, first):
        made.decide(logits=held_out["logits"][0], extractor="v1")

    switched = connection.switch("renewed@2")
    assert (switched.name, switched.generation, switched.extractor) == ("renewed@2", 2, "v2")
    for made, extractor in ((named, "v2"), (second, "v2"), (switched, "v2"), (first, "v1")):
        made.decide(logits=held_out["logits"][0], extractor=extractor)
    assert connection.switch("renewed@1").generation == 1
    named.decide(logits=held_out["logits"][0], extractor="v1")
    assert {"renewed", "renewed@2"} <= {one.name for one in connection.classifiers()}
    for text in ("renewed", "renewed@", "renewed@x"):
        with pytest.raises(client.InvalidInputError, match="expected NAME@NUMBER"):
            connection.switch(text)
    with pytest.raises(client.NotFoundError):
        connection.switch("renewed@3")
