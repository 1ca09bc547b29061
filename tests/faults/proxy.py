"""A TCP proxy whose connections a test cuts."""

import itertools
import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import make_url

DEFAULT_PORTS = {"redis": 6379, "amqp": 5672}
# With it, closing a socket resets the connection, as a server that was killed or a firewall does.
_RESET = struct.pack("ii", 1, 0)


class Proxy:
    """Forwards connections on a local port to servers; `cut` resets them, `silence` lets them carry nothing more.

    If there are several servers, each takes the next connection in turn, unless it accepts none.
    """

    def __init__(self, *targets: tuple[str, int]) -> None:
        self._targets = targets
        self._turn = itertools.count()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._silent: list[socket.socket] = []
        self._refuses = False
        self._ended = False
        threading.Thread(target=self._accept, daemon=True, name="proxy").start()

    def cut(self) -> int:
        """Reset every connection; how many there were. New ones are accepted."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                _reset(end)
        return len(pairs)

    def silence(self) -> int:
        """Let every connection stay open and carry nothing more; how many there were. New ones are accepted."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
            self._silent += [end for pair in pairs for end in pair]
        return len(pairs)

    @contextmanager
    def down(self) -> Iterator[None]:
        """Reset every connection, and within the block each new one."""
        self._refuses = True
        self.cut()
        try:
            yield
        finally:
            self._refuses = False

    def close(self) -> None:
        """Reset everything, and accept nothing more."""
        self._ended = True
        self._listener.close()
        self.cut()
        for end in self._silent:
            _reset(end)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            if self._refuses or self._ended:
                _reset(client)
                continue
            server = self._connect()
            if server is None:
                _reset(client)
                continue
            pair = (client, server)
            with self._lock:
                self._pairs.append(pair)
            threading.Thread(target=self._forward, args=(pair,), daemon=True, name="proxy").start()

    def _connect(self) -> socket.socket | None:
        first = next(self._turn)
        for offset in range(len(self._targets)):
            with suppress(OSError):
                return socket.create_connection(self._targets[(first + offset) % len(self._targets)], timeout=10)
        return None

    def _forward(self, pair: tuple[socket.socket, socket.socket]) -> None:
        """Carry bytes both ways until an end closes, or the connection was cut or silenced."""
        other = {pair[0]: pair[1], pair[1]: pair[0]}
        with suppress(OSError, ValueError):  # an end that was closed meanwhile
            while pair in self._pairs:
                readable, _, _ = select.select(pair, [], [], 0.5)
                received = {end: end.recv(1 << 16) for end in readable}
                if pair not in self._pairs:
                    return
                if not all(received.values()):
                    break
                for end, data in received.items():
                    other[end].sendall(data)
        with self._lock:
            if pair not in self._pairs:
                return
            self._pairs.remove(pair)
        for end in pair:
            _reset(end)


@contextmanager
def proxied(url: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy in front of a server, and the server's URL by way of it."""
    address = make_url(url)
    assert address.host is not None
    proxy = Proxy((address.host, address.port or DEFAULT_PORTS[address.drivername]))
    try:
        yield proxy, address.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
    finally:
        proxy.close()


def _reset(end: socket.socket) -> None:
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
