"""Kept answers to HTTP requests that name what was forgotten.

An answer that names an exemplar is stored together with it, under the lock of ingestion, or after it was read. Once it
is gone and has a tombstone, no new answer names it, so that the answers that are there then are searched once, whatever
number of exemplars went, and while nothing is locked.
"""

import json
import re
from collections.abc import Callable, Collection

from sqlalchemy import Connection, Engine

from venn_admit.store.access import idempotency
from venn_admit.store.access.idempotency import Attempt
from venn_admit.store.database.engine import transaction
from venn_admit.store.exemplars import classifiers, forgotten
from venn_admit.store.exemplars.classifiers import Classifier

BLOCK = 1000
"""How many answers are read, and those that name something deleted rewritten, in one transaction."""

# A string as JSON writes it. Answers are searched as bytes: one that is no JSON must not stay unread.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)

# Which of some texts are ids that are forgotten.
_Gone = Callable[[Connection, Collection[str]], Collection[str]]


def forget_answers(engine: Engine, classifier: Classifier) -> int:
    """Delete kept answers that name what has a tombstone of a classifier, and return how many there were.

    What an answer is about is not kept with it, so that one about another classifier goes as well if it holds the same
    id. A request whose answer is gone is executed again if it is sent again.
    """

    def gone(connection: Connection, texts: Collection[str]) -> Collection[str]:
        marks = forgotten.tombstones_of(connection, classifiers.usable(connection, classifier))
        digests = {digest: one for one in texts for digest in (marks.of_exemplar(one), marks.of_document(one))}
        return {digests[digest] for digest in forgotten.forgotten_since(connection, digests)}

    return _search(engine, gone, idempotency.forget)


def count_answers(engine: Engine, ids: Collection[str]) -> int:
    """Return how many kept answers name one of some ids of exemplars or documents."""
    wanted = frozenset(ids)
    return _search(engine, lambda _, texts: wanted.intersection(texts), lambda *_: None)


def _search(engine: Engine, gone: _Gone, on_found: Callable[[Connection, Attempt], None]) -> int:
    """Read all answers once, in order of their keys, and return how many name what is gone."""
    count, last = 0, None
    while True:
        with transaction(engine) as connection:
            answers = idempotency.some_answers(connection, after=last, most=BLOCK)
            if not answers:
                return count
            strings = [set(_STRING.findall(body)) for _, body in answers]
            texts = {string: read for string in set().union(*strings) if (read := _read(string)) is not None}
            found = gone(connection, texts.values())
            for (attempt, _), held in zip(answers, strings, strict=True):
                if any(texts.get(string) in found for string in held):
                    on_found(connection, attempt)
                    count += 1
        last = answers[-1][0]


def _read(string: bytes) -> str | None:
    """A text from its JSON; None if it is none, or none that can be the id of anything."""
    try:
        read: str = json.loads(string)
        read.encode()
    except ValueError:
        return None
    return read
