"""The entry point, which imports the command line when the process is ready for it."""

import gc
import os
import sys
from typing import Any

from venn_admit.runtime import interruption

# A command that only shows something makes fewer objects than the first, and hardly any of them is garbage.
_BEFORE_FIRST_COLLECTION, _BETWEEN_COLLECTIONS = 200_000, 50_000


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit codes: 0 done; 2 bad input; 3 not found; 4 not ready; 5 database; 6 job; 7 alarm.

    Args:
        arguments: Those after the program's name; None: those of this process, whose signals are then handled too.
    """
    if arguments is None:
        interruption.raise_on_request_to_end()
        gc.set_threshold(_BEFORE_FIRST_COLLECTION)
        gc.callbacks.append(_settle)
    # NumPy multiplies small tiles here: on shared cores, each further thread would mostly wait for the others.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from venn_admit.cli import program

        program.run(arguments)
    except KeyboardInterrupt as error:  # as the program is imported, or before its verb begins
        sys.stderr.write(f"{interruption.outcome_text(error)}\n")
        sys.exit(interruption.exit_code(error))
    finally:
        interruption.ignore_further_requests()
        if arguments is None:
            gc.freeze()  # the process ends: it need not look for garbage in what it imported


def _settle(_phase: str, _counts: dict[str, Any]) -> None:
    """Instead of the first collection, leave what was made before it alone; collect from then on.

    No callback may be left when a collection ends: what a signal raises in one is lost, and so is that Ctrl-C.
    """
    gc.callbacks.remove(_settle)
    gc.freeze()
    gc.set_threshold(_BETWEEN_COLLECTIONS)
