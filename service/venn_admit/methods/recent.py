"""What was read of the snapshots used last, which never change."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

MOST = 16

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Entry(Generic[V]):
    """A value, once it is read."""

    def __init__(self) -> None:
        self.reading = Lock()
        self.values: list[V] = []


class Recent(Generic[K, V]):
    """The values that were asked for last.

    Unlike functools.lru_cache it is told how to read a value when it is asked for one, so that reading can use the
    connection at hand, which is no part of the key. Threads may share it; if several ask for a new value at once, one
    reads it, and the others wait. A caller that holds a connection must therefore read with that one, and open no
    other.
    """

    def __init__(self, *, most: int | None = None) -> None:
        """Make an empty one.

        Args:
            most: How many values are kept; None: `MOST`.
        """
        self._most = most
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._changing = Lock()

    def get(self, key: K, read: Callable[[], V]) -> V:
        """Return the value of a key, as it was read before or is read now."""
        with self._changing:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            if len(self._entries) > (MOST if self._most is None else self._most):
                self._entries.popitem(last=False)
        with entry.reading:
            if not entry.values:
                entry.values.append(read())
            return entry.values[0]

    def known(self, key: K) -> V | None:
        """Return the value of a key if it was read before."""
        with self._changing:
            entry = self._entries.get(key)
        return entry.values[0] if entry is not None and entry.values else None
