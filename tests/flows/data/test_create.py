"""Classifiers that cannot be are refused before anything is asked of the database."""

from typing import Any

import pytest
from sqlalchemy import create_engine

from venn_admit.errors import InvalidInputError
from venn_admit.flows.data.create import create

NOWHERE = create_engine("postgresql+psycopg://nobody@/nothing?host=/nowhere")


def make(name: str = "other", classes: tuple[str, ...] = ("red", "green"), **changed: Any) -> None:
    create(NOWHERE, name, classes, **{"seed": 0, "dimension": 8, **changed})


@pytest.mark.parametrize(
    ("changed", "saying"),
    [
        ({"classes": ("red",)}, "classes: expected at least two names, got 1"),
        ({"classes": ()}, "classes: expected at least two names, got 0"),
        ({"classes": ("red", "", "blue")}, "classes: expected a name for each class, got an empty one"),
        ({"classes": ("red", "blue", "red")}, "classes: expected each name once, got red more than once"),
        ({"classes": ("red", "bl\x01ue")}, r"classes: expected printable characters, got 'bl\\x01ue'"),
        ({"classes": ("red", "bl\udcffue")}, r"classes: expected printable characters, got 'bl\\udcffue'"),
        ({"dimension": 0}, "dimension: expected 1 to 16000, pgvector's limit, got 0"),
        ({"dimension": 16_001}, "dimension: expected 1 to 16000, pgvector's limit, got 16001"),
        ({"neighbour_count": 0}, "k: expected 1 to 10000 neighbours, got 0"),
        ({"neighbour_count": 2**40}, "k: expected 1 to 10000 neighbours, got 1099511627776"),
        ({"seed": 2**63}, "seed: expected an integer of 64 bits, got 9223372036854775808"),
    ],
)
def test_what_it_has_is_out_of_range(changed: dict[str, Any], saying: str) -> None:
    with pytest.raises(InvalidInputError, match=saying):
        make(**changed)


@pytest.mark.parametrize(
    "name", ["", " ", " other", "ot\nher", "ot\u0085her", "ot\udcffher", "x" * 101, "film/tv", "/", ".", ".."]
)
def test_its_name_cannot_be_one(name: str) -> None:
    saying = "name: expected 1 to 100 printable characters, without / and spaces around them, and neither"
    with pytest.raises(InvalidInputError, match=saying):
        make(name)
