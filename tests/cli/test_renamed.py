"""Old names of options and verbs: they do what the new ones do, and no help shows them."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.program import Outcome, Program
from tests.cli.samples import NAME

MODES = (("--no-weights", "--unweighted"), ("--q-equals-k", "--require-full-match"))
OPTIONS = (
    *((verb, *names) for verb in ("score", "decide") for names in MODES),
    ("evaluate", "--report", "--out"),
    ("jobs list", "--most", "--limit"),
    ("calibrations", "--most", "--limit"),
)


@pytest.mark.parametrize(("verb", "old", "new"), OPTIONS)
def test_help_shows_the_new_name_alone(verb: str, old: str, new: str) -> None:
    words = Program({})(*verb.split(), "--help").stdout.split()
    assert new in words
    assert old not in words


@pytest.mark.parametrize(("old", "new"), MODES)
def test_modes_of_deciding(own_calibrated: Program, files: Path, tmp_path: Path, old: str, new: str) -> None:
    file, out = files / "scored.npz", tmp_path / "scores.parquet"
    first, again = (own_calibrated("decide", NAME, file, "--json", option).result for option in (old, new))
    assert first == again
    usual, *scored = (
        own_calibrated("score", NAME, file, "--out", out, *given).code or pq.read_table(out)
        for given in ((), (old,), (new,))
    )
    assert scored[0] == scored[1] != usual


def test_folder_of_an_evaluation(own_calibrated: Program, files: Path, tmp_path: Path) -> None:
    old, new = (tmp_path / option for option in ("--report", "--out"))
    for folder in (old, new):
        assert own_calibrated("evaluate", NAME, files / "scored.npz", folder.name, folder).code == 0
    assert (old / "evaluation.json").read_bytes() == (new / "evaluation.json").read_bytes()


@pytest.mark.parametrize(("verb", "listed"), [(("jobs", "list"), "jobs"), (("calibrations", NAME), "calibrations")])
def test_limit_of_a_list(own_calibrated: Program, verb: tuple[str, ...], listed: str) -> None:
    assert own_calibrated("calibrate", NAME, "--alpha", "0.3", "--kappa", 5).code == 0
    every, *limited = (own_calibrated(*verb, "--json", *given).result for given in ((), ("--most", 1), ("--limit", 1)))
    assert limited[0] == limited[1]
    assert len(limited[0][listed]) == 1 < len(every[listed])


def test_verbs_of_the_index(own_calibrated: Program) -> None:
    def timeless(outcome: Outcome) -> object:
        """The result, except how long searches took."""
        result = outcome.result
        for search in result.get("searches", []):
            del search["p50"], search["p99"]
        return result

    for old, new, options in (
        ("--hnsw", "create", ("--m", 8, "--ef-construction", 32)),
        ("--audit", "audit", ("--sample", 20)),
        ("--drop", "drop", ()),
    ):
        first = timeless(own_calibrated("index", NAME, old, *options, "--json"))
        if old == "--hnsw":
            assert own_calibrated("index", "drop", NAME).code == 0
        if old == "--drop":
            assert own_calibrated("index", "create", NAME).code == 0
        assert timeless(own_calibrated("index", new, NAME, *options, "--json")) == first
