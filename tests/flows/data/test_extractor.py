"""Vectors of two extractors never mix: what states another than the classifier is refused, and nothing is stored."""

from pathlib import Path

import numpy as np
import pytest

from tests.running import Arrays, Bench
from venn_admit.errors import Code, ConflictError
from venn_admit.files.records import Stated
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.generations import create_generation, state_extractor
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.ingest import ingest
from venn_admit.flows.decisions.decide_row import decide_row
from venn_admit.flows.decisions.score import request_score
from venn_admit.flows.decisions.score_one import PointScorer


def points(prefix: str, extractor: str | None, rows: int = 4) -> Arrays:
    arrays: Arrays = {
        "r": np.arange(2 * rows, dtype=np.float32).reshape(rows, 2),
        "f": 2 * np.eye(2, dtype=np.float32)[np.arange(rows) % 2],
        "y": np.arange(rows) % 2,
        "id": np.array([f"{prefix}-{row}" for row in range(rows)]),
    }
    return arrays if extractor is None else arrays | {"extractor": np.array(extractor)}


def file(bench: Bench, prefix: str, extractor: str | None) -> Path:
    return bench.write(f"{prefix}.npz", points(prefix, extractor))


def stored(bench: Bench) -> int:
    return int(bench.value("SELECT count(*) FROM exemplar"))


@pytest.fixture
def first(bench: Bench) -> Bench:
    """A classifier `one` with exemplars of extractor `v1`."""
    bench.create("one", dimension=2)
    bench.ingest("one", file(bench, "a", "v1"), "train")
    return bench


def test_an_empty_classifier_takes_over_the_first(first: Bench) -> None:
    assert find(first.engine, "one").extractor == "v1"
    first.ingest("one", file(first, "b", "v1"), "train")
    assert first.ingest("one", file(first, "b", "v1"), "train").new == 0


@pytest.mark.parametrize(
    ("extractor", "code", "saying"),
    [
        ("v2", Code.EXTRACTOR_DIFFERS, "expected 'v1', which the exemplars of 'one' come from, got 'v2'"),
        (None, Code.EXTRACTOR_MISSING, "expected 'v1', which the exemplars of 'one' come from, got none"),
    ],
)
class TestRefused:
    def test_by_ingest(self, first: Bench, extractor: str | None, code: Code, saying: str) -> None:
        before = stored(first)
        with pytest.raises(ConflictError, match=saying) as refused:
            first.ingest("one", file(first, "b", extractor), "train")
        assert (refused.value.code, refused.value.parameters) == (code, {"classifier": "one"})
        assert stored(first) == before

    def test_by_score_and_decide(self, edge: Bench, extractor: str | None, code: Code, saying: str) -> None:
        state_extractor(edge.engine, "edge", "v1")
        path = edge.write("other.npz", dict(np.load(edge.folder / "score.npz")))
        source = FileSource(path, stated=Stated(extractor))
        before = stored(edge)
        with pytest.raises(ConflictError, match=saying.replace("one'", "edge'")) as refused:
            request_score(
                edge.workspace(chunk_rows=10),
                "edge",
                source,
                weighted=None,
                require_full_match=False,
                calibration_id=None,
            )
        assert refused.value.code == code
        scorer = PointScorer(edge.workspace())
        with pytest.raises(ConflictError) as refused:
            decide_row(edge.engine, scorer, "edge", source, 0, weighted=None, require_full_match=False)
        assert refused.value.code == code
        assert stored(edge) == before
        decide_row(
            edge.engine,
            scorer,
            "edge",
            FileSource(path, stated=Stated("v1")),
            0,
            weighted=None,
            require_full_match=False,
        )


def test_what_was_not_stated_stays_so_until_it_is(bench: Bench) -> None:
    bench.create("one", dimension=2)
    bench.ingest("one", file(bench, "a", None), "train")
    with pytest.raises(ConflictError, match="that of the exemplars of 'one' is not stated, got 'v1'") as refused:
        bench.ingest("one", file(bench, "b", "v1"), "train")
    assert refused.value.code == Code.EXTRACTOR_UNSTATED
    assert find(bench.engine, "one").extractor is None
    bench.ingest("one", file(bench, "c", None), "train")
    state_extractor(bench.engine, "one", "v1")
    bench.ingest("one", file(bench, "b", "v1"), "train")


def test_a_file_that_states_none_can_be_stated_for(first: Bench) -> None:
    path = file(first, "b", None)
    assert ingest(first.engine, "one", FileSource(path, stated=Stated("v1")), "train").new == 4


def test_one_that_is_wrong_is_corrected_while_there_are_no_exemplars(first: Bench) -> None:
    create_generation(first.engine, "one", extractor="v1")
    with pytest.raises(ConflictError) as refused:
        first.ingest("one@2", file(first, "b", "v2"), "train")
    assert refused.value.code == Code.EXTRACTOR_DIFFERS
    assert state_extractor(first.engine, "one@2", "v2").extractor == "v2"
    first.ingest("one@2", file(first, "b", "v2"), "train")
    with pytest.raises(ConflictError, match="come from extractor 'v2'") as refused:
        state_extractor(first.engine, "one@2", "v3")
    assert refused.value.code == Code.EXTRACTOR_DIFFERS
    assert find(first.engine, "one@2").extractor == "v2"


def test_each_generation_has_its_own(first: Bench) -> None:
    create_generation(first.engine, "one", extractor="v2")
    first.ingest("one@2", file(first, "a", "v2"), "train")
    with pytest.raises(ConflictError, match="expected 'v2', which the exemplars of 'one@2' come from, got 'v1'"):
        first.ingest("one@2", file(first, "b", "v1"), "train")
    create_generation(first.engine, "one")
    first.ingest("one@3", file(first, "a", "v3"), "train")
    assert [find(first.engine, f"one@{number}").extractor for number in (1, 2, 3)] == ["v1", "v2", "v3"]


def test_a_refused_file_states_nothing(bench: Bench) -> None:
    bench.create("one", dimension=2)
    bad = points("a", "v1") | {"y": np.array([0, 1, 2, 0])}
    with pytest.raises(Exception, match="label"):
        bench.ingest("one", bench.write("bad.npz", bad), "train")
    assert find(bench.engine, "one").extractor is None
