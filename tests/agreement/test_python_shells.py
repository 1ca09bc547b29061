"""The Python interface and the client have the same records, and say the same of what both do."""

import ast
import inspect
from types import ModuleType

import pytest

import venn_admit
import venn_admit_client as client
from venn_admit_client import cascade_interface, interface, records

INTERFACES = {"Cascade": cascade_interface, "Classifier": interface, "Connection": interface}


# What one of the shells alone returns: the client does not push.
OWN_RECORDS = {"Pushed"}


@pytest.mark.parametrize("name", sorted(set(filter(records.find, venn_admit.__all__)) - OWN_RECORDS))
def test_results_are_the_same_records(name: str) -> None:
    assert issubclass(getattr(venn_admit, name), getattr(client, name))


@pytest.mark.parametrize("package", [venn_admit, client])
def test_names_that_are_imported_late_are_completed_and_checked(package: ModuleType) -> None:
    assert {name for name in dir(package) if not name.startswith("_")} == set(package.__all__)
    top, seen = ast.parse(inspect.getsource(package)).body, set[str]()
    for block in top:
        assert not (isinstance(block, ast.FunctionDef) and block.name == "__getattr__"), "mypy would take any name"
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            seen |= {name.name for each in block.body if isinstance(each, ast.ImportFrom) for name in each.names}
    assert seen == set(package.__all__)


# Arguments that one of the shells has and the other has not.
OWN = {("forget", "wait"), ("monitor", "restart"), ("monitor", "label_deadline")}


@pytest.mark.parametrize("name", INTERFACES)
def test_both_take_the_same_arguments(name: str) -> None:
    there, here = getattr(venn_admit, name), getattr(client, name)
    both = [one for one in vars(getattr(INTERFACES[name], f"{name}Interface")) if callable(getattr(there, one))]
    for one in both:
        if not one.startswith("_"):
            others, own = (inspect.signature(getattr(shell, one)).parameters for shell in (here, there))
            assert [each for each in own.values() if (one, each.name) not in OWN] == list(others.values()), one


@pytest.mark.parametrize("name", INTERFACES)
def test_what_both_do_is_said_once(name: str) -> None:
    """And each says what is its own."""
    there, here = getattr(venn_admit, name), getattr(client, name)
    both = [one for one in vars(getattr(INTERFACES[name], f"{name}Interface")) if not one.startswith("_")]
    assert len(both) > 5
    for one in both:
        assert inspect.getdoc(getattr(there, one)) == inspect.getdoc(getattr(here, one)), one
        for own in (there, here):
            redefined = vars(own).get(one)
            assert redefined is None or not redefined.__doc__, one
