"""One name for one thing: a class is found by its name alone."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_no_two_public_classes_share_a_name() -> None:
    names = Counter(
        node.name
        for package in ("service", "workers")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert len(names) > 50
    assert [name for name, count in names.items() if count > 1] == []
