"""Every advisory lock that a statement, a routine or the program takes is in the list of them, and no other."""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import venn_admit
import venn_admit_workers
from venn_admit.resources import bundled_folder
from venn_admit.store.database.locks import ONE_KEY, TWO_KEYS

CALL = re.compile(r"\bpg_(?:try_)?advisory_(?:xact_)?(?:un)?lock(?:_shared)?\(")
# As the view pg_locks has the first of two keys.
HELD = re.compile(r"\bclassid = (\d+)")


def sources() -> Iterator[Path]:
    package = Path(venn_admit.__file__).parent
    for folder in (package, Path(venn_admit_workers.__file__).parent, bundled_folder("migrations")):
        assert folder.is_dir()
        for suffix in ("py", "sql"):
            yield from folder.resolve().rglob(f"*.{suffix}")


def arguments(source: str) -> Iterator[list[str]]:
    """What each call is given: the texts between the commas that are in no further brackets."""
    for call in CALL.finditer(source):
        found, depth = [""], 1
        for character in source[call.end() :]:
            depth += {"(": 1, ")": -1}.get(character, 0)
            if not depth:
                break
            if character == "," and depth == 1:
                found.append("")
            else:
                found[-1] += character
        yield [one.strip() for one in found]


def test_the_arguments_of_a_call_are_told_apart() -> None:
    said = "SELECT pg_try_advisory_xact_lock(7, :id), pg_advisory_unlock(hash(format('a', b), 0)), pg_advisory()"
    assert list(arguments(said)) == [["7", ":id"], ["hash(format('a', b), 0)"]]


def test_each_is_listed() -> None:
    taken = [found for path in sources() for found in arguments(path.read_text("utf-8"))]
    assert {int(found[0]) for found in taken if len(found) == 2} == set(TWO_KEYS)
    assert {found[0].partition("(")[0] for found in taken if len(found) == 1} == set(ONE_KEY)
    assert {len(found) for found in taken} == {1, 2}


def test_those_looked_for_are_listed() -> None:
    held = HELD.findall(files("venn_admit.store").joinpath("sql", "jobs.sql").read_text("utf-8"))
    assert held
    assert {int(key) for key in held} <= set(TWO_KEYS)
