"""Files made to be read wrongly are refused with the error for bad input, within the memory budget."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.files.hostile import HOSTILE, LEGAL, MEBIBYTE, write_all
from tests.files.mutants import parquet_mutant, stream_mutant
from venn_admit.errors import InvalidInputError

pytestmark = pytest.mark.processes

# Little, so that small files are hostile to it.
BUDGET = 32 * MEBIBYTE
# What an allocator keeps beside what is asked of it.
SLACK = 16 * MEBIBYTE


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """How the reading of each file ended, by its name, as one process after the other file saw it."""
    folder = tmp_path_factory.mktemp("hostile")
    write_all(folder)
    return {line["file"]: line for line in read_in_child(folder)}


def read_in_child(folder: Path) -> Iterator[dict[str, Any]]:
    """Read the files of a folder in a child process, and yield how each ended; a signal that ended the child is one."""
    left = sorted(path.name for path in folder.iterdir())
    while left:
        command = [sys.executable, "-m", "tests.files.read_hostile", str(folder), str(BUDGET), left[0]]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        yield from lines
        left = left[len(lines) :]
        if left:
            kind, said = f"exit status {done.returncode}", done.stderr[-300:]
            yield {"file": left.pop(0), "code": done.returncode, "kind": kind, "peak": 0, "said": said}


@pytest.mark.parametrize("name", HOSTILE)
def test_is_refused_within_the_memory_budget(outcomes: dict[str, Any], name: str) -> None:
    outcome = outcomes[name]
    assert (outcome["code"], outcome["kind"]) == (InvalidInputError.exit_code, ""), outcome["said"]
    assert name in outcome["said"]
    assert outcome["peak"] <= BUDGET + SLACK


@pytest.mark.parametrize("name", LEGAL)
def test_a_legal_file_larger_than_memory_is_streamed(outcomes: dict[str, Any], name: str) -> None:
    outcome = outcomes[name]
    assert (outcome["code"], outcome["kind"], outcome["said"]) == (0, "", "")
    assert outcome["peak"] <= BUDGET + SLACK


MUTANTS = 3000


def test_changed_bytes_neither_end_the_process_nor_take_its_memory(tmp_path: Path) -> None:
    """Each file is read, or refused with the error for bad input; every third is read as a file of labels."""
    for seed in range(MUTANTS):
        name = f"{'label file ' if seed % 3 == 0 else ''}mutant {seed}"
        (tmp_path / f"{name}.parquet").write_bytes(parquet_mutant(seed))
        if seed % 4 == 0:
            (tmp_path / f"{name}.arrows").write_bytes(stream_mutant(seed))
    outcomes = list(read_in_child(tmp_path))
    assert len(outcomes) == MUTANTS + MUTANTS // 4
    wrong = [one for one in outcomes if one["kind"] or one["code"] not in (0, InvalidInputError.exit_code)]
    assert not wrong, f"{len(wrong)}: {wrong[:10]}"
    read = sum(one["code"] == 0 for one in outcomes)
    assert MUTANTS // 20 < read < MUTANTS, "mutants that are all refused, or all read, show little"
    large = [one for one in outcomes if one["peak"] > BUDGET + SLACK]
    assert not large, f"{len(large)}: {large[:10]}"
