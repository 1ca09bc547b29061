"""What ids and names may consist of."""

import unicodedata

import pytest

from venn_admit.core.names import check_new_id, check_stored_id, is_name


def is_new_id(value: str) -> bool:
    try:
        check_new_id(value)
    except ValueError:
        return False
    return True


def test_an_id_has_any_character_that_can_be_stored_and_is_no_control_character() -> None:
    refused = {number for number in range(0x110000) if not is_new_id(chr(number))}
    assert refused == {number for number in range(0x110000) if unicodedata.category(chr(number)) in ("Cc", "Cs")}


def test_a_stored_id_may_have_control_characters() -> None:
    check_stored_id("a\tb\n")
    for value in ("", "a" * 1001, "a\0b", "\ud800"):
        with pytest.raises(ValueError, match=r"characters|UTF-8"):
            check_stored_id(value)


@pytest.mark.parametrize("name", ["/", "film/tv", ".", "..", " ", "a ", "a\tb", "a\u2028b", "\ud800", "a" * 101])
def test_a_name_that_no_path_can_have(name: str) -> None:
    assert not is_name(name)


@pytest.mark.parametrize("name", ["...", ".a", "a b", "a%2Fb", "ünï 你好", "a" * 100])
def test_a_name_that_a_path_can_have(name: str) -> None:
    assert is_name(name)
