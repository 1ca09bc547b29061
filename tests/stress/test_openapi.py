"""Schemathesis asks the running service for everything that its OpenAPI document describes, and for what it forbids."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.program import ROOT
from tests.stress.furnished import LOGITS_ONLY, NAME
from tests.stress.served import Served
from venn_admit.api.application import DOCUMENT, document

pytestmark = pytest.mark.processes

CONFIGURATION = Path(__file__).parent / "schemathesis.toml"
# Requests to each operation and phase, beside those that follow from the bounds of its schema; `make fuzz` asks for
# more.
EXAMPLES = int(os.environ.get("VENN_ADMIT_TEST_FUZZ_EXAMPLES") or 5)
# With as many, each route that takes files has drawn some that fit.
MANY_EXAMPLES = 40
# Requests that follow from the bounds, by operation: they are about 60, and more to one with a body.
LEAST_OF_BOUNDS = 30
SEED = int(os.environ.get("VENN_ADMIT_TEST_FUZZ_SEED") or 1)
OPERATIONS = {f"{method.upper()} {path}" for path, methods in document()["paths"].items() for method in methods}
UPLOADS = {f"POST /v1/classifiers/{{classifier}}/{what}" for what in ("exemplars/file", "labels/file", "jobs")}
REMOVAL = "DELETE /v1/classifiers/{classifier}"


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_every_answer_is_as_documented(served: Served, tmp_path: Path) -> None:
    answers, described = tmp_path / "answers", tmp_path / "openapi.json"
    # Schemathesis would wait for it ten seconds, and on a busy machine that is not always enough.
    with served.client() as client:
        described.write_bytes(client.get(DOCUMENT).raise_for_status().content)
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", CONFIGURATION, "run", described),
        *("--url", served.url, "--max-examples", EXAMPLES, "--seed", SEED),
    ]
    finished = subprocess.run(
        list(map(str, command)),
        cwd=tmp_path,
        env=os.environ
        | {
            "VENN_ADMIT_TEST_KEY": served.key,
            "VENN_ADMIT_TEST_ANSWERS": str(answers),
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    print(finished.stdout)  # noqa: T201 - `make fuzz` shows how many requests there were
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert served.process.poll() is None
    check_much_was_asked(answers.read_text().splitlines())
    with served.client() as client:
        for name in (NAME, LOGITS_ONLY):
            assert client.get(f"/v1/classifiers/{name}").status_code == 200, "it was removed, and what followed is vain"


def check_much_was_asked(answers: list[str]) -> None:
    """See that no operation was left out, that files were taken, and that something was removed.

    answers: of each, the status and the operation.
    """
    told = Counter(answers)
    assert {answer.partition(" ")[2] for answer in answers} == OPERATIONS
    # There are fewer examples than are asked for of an operation with few parameters, or none.
    assert len(answers) >= len(OPERATIONS) * (LEAST_OF_BOUNDS + EXAMPLES // 4)
    taken = {operation for operation in UPLOADS if told[f"200 {operation}"] + told[f"202 {operation}"]}
    assert taken == set(UPLOADS) if EXAMPLES >= MANY_EXAMPLES else taken
    assert told[f"200 {REMOVAL}"] > 0
