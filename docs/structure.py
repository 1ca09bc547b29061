"""Print the structure of the code: its rooms, how large they are, and which room imports which.

    python docs/structure.py

A room is a folder of modules. Its lines are code, imports, docstrings, and the rest, which is blank lines and comments.
The whole product, and migrations with routines, stand at the end. The script exits with 1 if modules import each other
in a circle.
"""

import ast
import statistics
import sys
from collections import Counter
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
# The packages, and the folder that each lies in.
SOURCES = {"venn_admit": "service", "venn_admit_workers": "workers", "venn_admit_client": "client"}
LARGEST_FOLDERS = 5
KINDS = ("lines", "code", "imports", "docstrings")


def main() -> int:
    sys.path[:0] = (str(ROOT / folder) for folder in SOURCES.values())  # the checkout's own code, whatever is installed
    graph = grimp.build_graph(*SOURCES)
    files = {
        ".".join(path.relative_to(ROOT / folder).with_suffix("").parts): _counted(path.read_text("utf-8"))
        for package, folder in SOURCES.items()
        for path in sorted((ROOT / folder / package).rglob("*.py"))
    }
    modules = {name: counted for name, counted in files.items() if not name.endswith(".__init__")}
    lines = {name: counted["lines"] for name, counted in modules.items()}
    rooms = Counter(_room(module) for module in lines)

    print(f"{len(lines)} modules in {len(rooms)} rooms; room: modules, {', '.join(KINDS)} -> the rooms it imports")
    for room in sorted(rooms):
        inside = [module for module in lines if _room(module) == room]
        imported = {_room(name) for module in inside for name in graph.find_modules_directly_imported_by(module)}
        arrows = ", ".join(_shown(other) for other in sorted(imported - {room}))
        print(f"  {_shown(room)}: {rooms[room]}, {_sums(modules[module] for module in inside)} -> {arrows or '-'}")

    largest_rooms = rooms.most_common(LARGEST_FOLDERS)
    print("largest folders: " + ", ".join(f"{_shown(room)} {count}" for room, count in largest_rooms))
    sizes = sorted(lines.values())
    largest = max(lines, key=lines.__getitem__)
    ninth_decile = statistics.quantiles(sizes, n=10)[-1]
    print(
        f"lines a module: median {statistics.median(sizes):.0f}, 90th percentile {ninth_decile:.0f}, "
        f"most {lines[largest]} ({_shown(largest)})"
    )
    print(f"product: {len(files)} files, {', '.join(KINDS)} {_sums(files.values())}")
    migrations = [path for kind in ("py", "sql") for path in (ROOT / "migrations").rglob(f"*.{kind}")]
    print(f"migrations and routines: {sum(len(path.read_text('utf-8').splitlines()) for path in migrations)} lines")
    circle = _circle({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
    print(f"circle of modules: {' -> '.join(circle)}" if circle else "no circle of modules")
    return 1 if circle else 0


def _counted(source: str) -> Counter[str]:
    """The lines of a module by kind; code is what is neither import, docstring, comment nor blank."""
    lines = source.splitlines()
    kind = {
        number: "blank" if not line.strip() else "comments" if line.lstrip().startswith("#") else "code"
        for number, line in enumerate(lines, 1)
    }
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            kind |= dict.fromkeys(_rows(node), "imports")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            kind |= dict.fromkeys(_rows(node), "docstrings")
    return Counter(kind.values()) + Counter(lines=len(lines))


def _rows(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _sums(counted: Iterable[Counter[str]]) -> str:
    total = sum(counted, Counter())
    return ", ".join(f"{total[kind]:,}" for kind in KINDS)


def _room(module: str) -> str:
    return module.rpartition(".")[0] or module


def _shown(name: str) -> str:
    return name.removeprefix("venn_admit.")


def _circle(imports: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, the first again at the end; none if there is no circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


if __name__ == "__main__":
    sys.exit(main())
