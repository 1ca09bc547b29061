"""The README: its Python runs as it stands, and what it and other pages outside of the site refer to is there."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import venn_admit
from tests.docs.pages import blocks

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")
LINES = 10
HELD_OUT_ROWS = 6000


def inputs(name: str) -> dict[str, Any]:
    with np.load(venn_admit.example_data() / f"{name}.npz") as arrays:
        return dict(arrays)


def last_layer(vectors: np.ndarray[Any, Any], logits: np.ndarray[Any, Any]) -> torch.nn.Linear:
    """The layer that makes these logits of these vectors."""
    with_bias = np.column_stack([vectors, np.ones(len(vectors))]).astype(np.float64)
    solution, *_ = np.linalg.lstsq(with_bias, logits.astype(np.float64), rcond=None)
    layer = torch.nn.Linear(*reversed(solution[:-1].T.shape))
    layer.load_state_dict({"weight": torch.tensor(solution[:-1].T), "bias": torch.tensor(solution[-1])})
    return layer


def test_it_says_what_it_is_before_the_two_commands() -> None:
    title, about, commands, *_ = README.read_text("utf-8").split("\n\n")
    assert title == "# venn-admit"
    assert about.startswith("**May I act on this prediction?** For ")
    assert len(about.splitlines()) <= 3
    assert [line.split("#")[0].strip() for line in commands.splitlines()] == ["make demo", "make test"]


def test_ten_lines_of_python(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENN_ADMIT_DATABASE_URL", database)
    monkeypatch.setenv("VENN_ADMIT_HOME", str(tmp_path / "home"))
    (block,) = [block for block in blocks(README) if block.language == "python"]
    assert len([line for line in block.content.splitlines() if line.strip()]) == LINES

    train, held_out, new = inputs("train"), inputs("valid"), inputs("test")
    names: dict[str, Any] = {
        "body": torch.nn.Identity(),
        "head": last_layer(train["r"], train["f"]),
        "train_x": torch.tensor(train["r"], dtype=torch.float32),
        "train_y": train["y"],
        "held_out_x": torch.tensor(held_out["r"][:HELD_OUT_ROWS], dtype=torch.float32),
        "held_out_y": held_out["y"][:HELD_OUT_ROWS],
        "new_x": torch.tensor(new["r"], dtype=torch.float32),
    }
    exec(compile(block.content, "README.md", "exec"), names)
    admitted = names["decisions"]["decided_class"].to_pylist()
    right = [name == ("negative", "positive")[label] for name, label in zip(admitted, new["y"], strict=True) if name]
    assert len(right) > 0.1 * len(admitted)
    assert np.mean(right) >= 0.9
    assert {"negative", "positive", None} == set(admitted)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "examples/README.md"])
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    targets = [target for target in LINK.findall(page.read_text("utf-8")) if not re.match(r"\w+:", target)]
    # The references that are written while the site is built are not in the checkout.
    missing = [target for target in targets if not (page.parent / target.partition("#")[0]).exists()]
    assert missing == []


def test_the_picture_is_small() -> None:
    assert (ROOT / "docs" / "assets" / "admitted.png").stat().st_size < 100_000
