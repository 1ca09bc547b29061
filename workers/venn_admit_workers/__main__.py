"""`python -m venn_admit_workers worker`, or `... beat`, runs Celery, but takes no code from the current folder."""

import gc
import os
import sys
import traceback

from venn_admit.cli.advice import advised
from venn_admit.errors import VennAdmitError
from venn_admit.runtime import interruption
from venn_admit.runtime.settings import get_settings, secret_addresses
from venn_admit.secrets import mask


def main(arguments: list[str]) -> int:
    """Run the command; a request to end that comes before Celery handles it leaves no embedded server behind."""
    interruption.raise_on_request_to_end()
    try:
        gc.disable()  # what is imported stays
        from venn_admit_workers.app import make_app

        app = make_app(get_settings(), computes=arguments[:1] != ["beat"])
        gc.freeze()
        gc.enable()
        return int(app.start(["--quiet", *arguments]) or 0)
    except interruption.Terminated as error:
        return interruption.exit_code(error)
    except VennAdmitError as error:
        sys.stderr.write(f"error: {advised(error)}\n")
        return error.exit_code
    except Exception as error:
        if isinstance(error.__cause__, interruption.Terminated):  # as Celery's command line passes it on
            return interruption.exit_code(error.__cause__)
        # Before Celery logs: a traceback shows what it passes, passwords included.
        sys.stderr.write(mask(traceback.format_exc(), *secret_addresses(os.environ)))
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
