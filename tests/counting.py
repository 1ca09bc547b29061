"""What goes over the wire: statements, and rows and bytes of COPY."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg.copy import LibpqWriter
from sqlalchemy import Engine, event

from venn_admit.store.database import binary_copy


@dataclass
class Traffic:
    """statements: how many other than COPY. copied_in: rows by table. bytes_in: by table. copied_out: how many rows."""

    statements: int = 0
    copied_in: Counter[str] = field(default_factory=Counter)
    bytes_in: Counter[str] = field(default_factory=Counter)
    copied_out: int = 0


@contextmanager
def traffic(engine: Engine) -> Iterator[Traffic]:
    """Count what the block does over this engine; others of its connections must not be in use."""
    counted, taken = Traffic(), list[psycopg.Copy]()

    class CountingCursor(psycopg.Cursor[Any]):
        @contextmanager
        def copy(self, statement: Any, params: Any = None, **_: Any) -> Iterator[psycopg.Copy]:
            into = re.match(rb"COPY (\w+) \(.*\) FROM STDIN", bytes(statement))
            table = into[1].decode() if into else ""

            class CountingWriter(LibpqWriter):
                def write(self, data: Any) -> None:
                    counted.bytes_in[table] += len(data)
                    super().write(data)

            with super().copy(statement, params, writer=CountingWriter(self) if into else None) as copy:
                yield copy
            if into:
                counted.copied_in[table] += self.rowcount
            elif copy not in taken:
                counted.copied_out += self.rowcount

    def on_connect(connection: Any, _record: Any) -> None:
        connection.cursor_factory = CountingCursor

    def on_statement(*_: Any) -> None:
        counted.statements += 1

    def messages(copy: psycopg.Copy) -> Iterator[Any]:
        taken.append(copy)
        counted.copied_out -= 1  # the trailer
        for message in of_copy(copy):
            counted.copied_out += 1
            yield message

    engine.dispose()
    event.listen(engine, "connect", on_connect)
    event.listen(engine, "before_cursor_execute", on_statement)
    of_copy = binary_copy._messages
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(binary_copy, "_messages", messages)
            yield counted
    finally:
        event.remove(engine, "connect", on_connect)
        event.remove(engine, "before_cursor_execute", on_statement)
        engine.dispose()
