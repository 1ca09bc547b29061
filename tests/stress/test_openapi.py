"""Schemathesis asks the running service for everything that its OpenAPI document describes, and for what it forbids."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import ROOT
from tests.stress.served import Served
from venn_admit.service.api.application import DOCUMENT

CONFIGURATION = Path(__file__).parent / "schemathesis.toml"
# Of each operation and phase, beside those that follow from the bounds of its schema; `make fuzz` asks for more.
EXAMPLES = int(os.environ.get("VENN_ADMIT_TEST_FUZZ_EXAMPLES") or 5)


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_every_answer_is_as_documented(served: Served, tmp_path: Path) -> None:
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", CONFIGURATION, "run", f"{served.url}{DOCUMENT}"),
        *("--max-examples", EXAMPLES, "--seed", 1),
    ]
    finished = subprocess.run(
        list(map(str, command)),
        cwd=tmp_path,
        env=os.environ | {"VENN_ADMIT_TEST_KEY": served.key, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert served.process.poll() is None
