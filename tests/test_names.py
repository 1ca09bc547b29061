"""One name for one thing: a class is found by its name alone, a module by one path."""

import ast
import re
from collections import Counter
from pathlib import Path

from alembic.script import ScriptDirectory

from venn_admit.store.database import schema

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "client", "docs", "migrations", "service", "tests", "workers")


def test_no_two_public_classes_share_a_name() -> None:
    names = Counter(
        node.name
        for package in ("service", "workers")
        for path in (ROOT / package).rglob("*.py")
        if "interface" not in path.parts  # what users are given is named as they would name it
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert len(names) > 50
    assert [name for name, count in names.items() if count > 1] == []


def test_every_module_is_imported_through_the_package_that_is_installed() -> None:
    """Imported as `service` as well, its classes would exist twice."""
    sources = [path for folder in ROOT.iterdir() if folder.name in FOLDERS for path in folder.rglob("*.py")]
    assert len(sources) > 300
    outside = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in sources
        for source in [path.read_text("utf-8")]
        if re.search(r"\b(service|workers)\b", source)  # an import of them says so, and most sources need no parsing
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for module in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names])
        if module.partition(".")[0] in ("service", "workers")
    ]
    assert outside == []


def test_migrations_stand_in_the_order_of_their_numbers() -> None:
    """The newest is known by its number, so one with a smaller number that is added later goes in between."""
    newest_first = [one.revision for one in ScriptDirectory.from_config(schema.alembic_config()).walk_revisions()]
    assert newest_first == sorted(newest_first, reverse=True)
    assert newest_first[0] == schema.head_revision()
