"""Files made to be read wrongly are refused with the error for bad input, within the memory budget."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.files.hostile import HOSTILE, LEGAL, MEBIBYTE, write_all
from venn_admit.service.errors import InvalidInputError

# Little, so that small files are hostile to it.
BUDGET = 32 * MEBIBYTE
# What an allocator keeps beside what is asked of it.
SLACK = 16 * MEBIBYTE


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """How the reading of each file ended, by its name, as one process after the other file saw it."""
    folder = tmp_path_factory.mktemp("hostile")
    write_all(folder)
    command = [sys.executable, "-m", "tests.files.read_hostile", str(folder), str(BUDGET)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    return {line["file"]: line for line in map(json.loads, done.stdout.splitlines())}


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
