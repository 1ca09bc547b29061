"""The program on databases of its own, as the tests of the command line have it, and what the service exports."""

import re
from pathlib import Path

import pytest

from tests.api.conftest import serving
from tests.cli import samples
from tests.cli.databases import copied
from tests.cli.program import Program
from venn_admit.store.access.keys import Scope


@pytest.fixture(scope="session")
def exported(calibrated: Program, server_url: str, session_folder: Path) -> dict[str, set[str]]:
    """What a running service exports after a decision: the names of the series, each with its labels."""
    with copied(calibrated, server_url, session_folder / "alerts") as program, serving(program) as service:
        vector = samples.scored()["vector"][0].tolist()
        decided = service.post(f"/v1/classifiers/{samples.NAME}/decide", {"points": [{"vector": vector}]})
        assert decided.status_code == 200, decided.text
        lines = service.get("/metrics", key=Scope.READ).text.splitlines()
    found: dict[str, set[str]] = {}
    for line in lines:
        if not line.startswith("#"):
            name, _, rest = line.partition("{") if "{" in line else (line.split(" ")[0], "", "")
            found.setdefault(name, set()).update(re.findall(r'(\w+)="', rest))
    return found
