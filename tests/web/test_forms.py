"""How much a form may bring, and how it is read."""

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.web.visitor import OWN, Visitor
from venn_admit.flows.keys.sessions import form_token
from venn_admit.web import forms
from venn_admit.web.forms import MEDIA_TYPE, MOST_BYTES, MOST_BYTES_TO_SIGN_IN
from venn_admit.web.visitors import FORM_FIELD, SIGN_IN

TRY = f"{OWN}/try"
HEADERS = {"Content-Type": MEDIA_TYPE}


def in_blocks(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), 1 << 10):
        yield content[start : start + (1 << 10)]


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize(("path", "most"), [(SIGN_IN, MOST_BYTES_TO_SIGN_IN), (TRY, MOST_BYTES)])
def test_a_form_has_a_limit_which_is_less_without_a_session(
    shared: Visitor, path: str, most: int, announced: bool
) -> None:
    shared.sign_in()
    assert shared.session is not None
    field = f"{FORM_FIELD}={form_token(shared.session)}&key="
    for content, status in ((field.ljust(most, "x"), 401 if path == SIGN_IN else 422), (field.ljust(most + 1), 413)):
        body = content.encode()
        answer = shared.client.post(path, content=body if announced else in_blocks(body), headers=HEADERS)
        assert answer.status_code == status
        assert (f"expected a form of at most {most:,} bytes" in answer.text) == (status == 413)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_a_form_is_parsed_once_and_a_long_one_beside_the_requests_of_others(
    shared: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_in_the_way: list[bool] = []

    def noted(*arguments: Any, **options: Any) -> list[tuple[str, str]]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            is_in_the_way.append(False)
        else:
            is_in_the_way.append(True)
        return parse_qsl(*arguments, **options)

    shared.sign_in()
    monkeypatch.setattr(forms, "parse_qsl", noted)
    for length in (10, 1 << 20):
        assert shared.send(TRY, external_id="x" * length).status_code in (404, 422)
    assert is_in_the_way == [True, False]
