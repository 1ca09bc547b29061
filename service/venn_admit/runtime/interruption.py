"""Signals that ask the program to end unwind it as Ctrl-C does, so that what it started is stopped in good order."""

import signal
from types import FrameType

_REQUESTS = (signal.SIGTERM, signal.SIGHUP)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP arrived; its number is `signal_number`."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number


def outcome_text(interruption: KeyboardInterrupt) -> str:
    """What is said of a program that ends so."""
    return "terminated" if isinstance(interruption, Terminated) else "interrupted"


def exit_code(interruption: KeyboardInterrupt) -> int:
    """The code that a shell reports for a process ended by that signal."""
    return 128 + (interruption.signal_number if isinstance(interruption, Terminated) else signal.SIGINT)


def raise_on_request_to_end() -> None:
    """Let these signals raise Terminated in the main thread, the first time that one arrives.

    A signal that the parent chose to ignore, as `nohup` does, stays ignored.
    """
    for request in _REQUESTS:
        if signal.getsignal(request) is signal.SIG_DFL:
            signal.signal(request, _terminate)


def ignore_further_requests() -> None:
    """Let what cleans up run to its end."""
    for request in _REQUESTS:
        if signal.getsignal(request) is _terminate:
            signal.signal(request, signal.SIG_IGN)


def _terminate(signal_number: int, _frame: FrameType | None) -> None:
    ignore_further_requests()
    raise Terminated(signal_number)
