"""`make bench` runs with what it installs: the program and the group `bench`, without the tools to develop it."""

import ast
import re
import sys
import tomllib
from decimal import Decimal
from pathlib import Path

from benchmarks.undivided import CLASSES, KAPPA, NEIGHBOURS, admitted, held_out
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.store.database.statements import statement

ROOT = Path(__file__).parents[1]
# Distributions whose modules have other names.
MODULES = {"faiss-cpu": "faiss", "venn-abers": "venn_abers"}
# Which a Python of its own runs, that has NannyML.
APART = "chunked_accuracy.py"


def test_every_import_of_a_benchmark_is_installed_for_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    requirements = [*project["project"]["dependencies"], *project["dependency-groups"]["bench"]]
    names = [re.split(r"[^\w-]", requirement)[0] for requirement in requirements]
    installed = {"benchmarks", "examples", "tests", "venn_admit", *(MODULES.get(name, name) for name in names)}
    paths = [path for path in (ROOT / "benchmarks").glob("*.py") if path.name != APART]
    assert len(paths) > 30
    missing = {
        f"{path.name}: {module}"
        for path in paths
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for module in imported(node)
        if module not in installed and module not in sys.stdlib_module_names
    }
    assert missing == set()


def test_every_statement_of_a_benchmark_exists() -> None:
    called = re.compile(r'\b(?:statement|execute|stream)\((?:connection, )?"(\w+\.\w+)"')
    found = {name for path in (ROOT / "benchmarks").glob("*.py") for name in called.findall(path.read_text("utf-8"))}
    assert found
    for name in found:
        assert str(statement(name))


def test_a_division_of_the_reviews_admits_what_the_page_on_decisions_says() -> None:
    settings = make_settings(CLASSES, NEIGHBOURS, alpha=Decimal("0.1"), kappa=KAPPA)
    divided, undivided = admitted(*held_out(), settings, 0)
    assert 0.258 <= divided[0] <= 0.280
    assert 0.278 <= undivided[0] <= 0.304
    assert min(divided[1], undivided[1]) > 0.95


def imported(node: ast.AST) -> list[str]:
    """The packages that a statement imports from."""
    match node:
        case ast.Import(names=names):
            return [name.name.partition(".")[0] for name in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module.partition(".")[0]]
        case _:
            return []
