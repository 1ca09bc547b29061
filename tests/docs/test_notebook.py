"""The notebook runs from first cell to last, what it says of its pictures is true, and its outputs are empty."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tests.cli.databases import on_database

NOTEBOOK = Path(__file__).parents[2] / "examples" / "from_network_to_certificate.ipynb"
CELLS = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
LINK = re.compile(r"\]\(([^)]+)\)")
PICTURES = 4


@pytest.fixture
def reader(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somebody who opens the notebook where it lies, with a database that is empty."""
    monkeypatch.chdir(NOTEBOOK.parent)
    monkeypatch.setattr(logging.getLogger("venn_admit"), "level", logging.NOTSET)  # to be as it was in the end
    for name, value in on_database(database, tmp_path).environment.items():
        monkeypatch.setenv(name, value)
    plt.switch_backend("agg")
    with plt.rc_context():
        yield
    plt.close("all")


def test_outputs_are_not_kept() -> None:
    code = [cell for cell in CELLS if cell["cell_type"] == "code"]
    assert [(cell["outputs"], cell["execution_count"]) for cell in code] == [([], None)] * len(code)


def test_figures_are_computed_and_links_lead_somewhere() -> None:
    text = "\n".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")
    assert re.findall(r"\d+", text) == []
    assert [target for target in LINK.findall(text) if not (NOTEBOOK.parent / target).exists()] == []


@pytest.mark.slow
@pytest.mark.usefixtures("reader")
def test_every_cell_runs_and_the_text_is_true(tmp_path: Path) -> None:
    found: dict[str, Any] = {}
    for number, cell in enumerate(CELLS):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{NOTEBOOK.name}, cell {number}", "exec"), found)
    assert len(plt.get_fignums()) == PICTURES
    for number in plt.get_fignums():
        plt.figure(number).savefig(tmp_path / f"{number}.png")

    # One network is more often right than it says, the other less often.
    assert found["gaps"]["film reviews"] < -0.03
    assert found["gaps"]["turned digits"] > 0.05
    # In every quarter of d more are right with a larger q; within a row of q, d makes less of a difference.
    share = found["share"]
    assert (np.diff(share, axis=0) > -0.01).all()
    assert np.ptp(share, axis=1).max() < np.ptp(share, axis=0).min()
    # Tweets with a large q are far fewer.
    assert found["large_q"]["tweets"] < found["large_q"]["reviews"] / 2
    # Four chains; each stops at a policy that is above the target and that the evidence does not show to be.
    certificate = found["certificate"]
    assert certificate["certified"]
    assert certificate["kinds"] == ["predicted", "true"]
    assert [chain["name"] for chain in certificate["chains"]] == ["one threshold", "by class", "class", "class"]
    assert sum(chain["level"] for chain in certificate["chains"]) == pytest.approx(1 - float(certificate["confidence"]))
    for least, p_value, level, passed in found["stops"]:
        assert least > found["target"]
        assert p_value > level
        assert not passed
    for chain in certificate["chains"]:
        assert all(step["passed"] for step in chain["steps"][:-1])
    # The certificate admits more of every class and is closer to the target, which its intervals hold.
    for softmax, certified in zip(*found["tallies"].values(), strict=True):
        assert softmax["n"] < certified["n"]
        assert found["target"] < certified["share_correct"] < softmax["share_correct"]
        assert certified["interval"][0] < found["target"] < softmax["interval"][0]
    assert found["evaluation"]["methods"]["softmax >= 1 - alpha"]["promise"] == "none"
