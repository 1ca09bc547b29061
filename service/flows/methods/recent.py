"""What was read of the snapshots used last, which never change."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

MOST = 16

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The values that were asked for last, at most `MOST`.

    Unlike functools.lru_cache it is told how to read a value when it is asked for one, so that reading can use the
    connection at hand, which is no part of the key. Threads may share it; if several ask for a new value at once, each
    reads it.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[K, V] = OrderedDict()
        self._changing = Lock()

    def get(self, key: K, read: Callable[[], V]) -> V:
        """Return the value of a key, as it was read before or is read now."""
        with self._changing:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = read()  # unlocked: other threads read other snapshots meanwhile
        with self._changing:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > MOST:
                self._values.popitem(last=False)
        return value
