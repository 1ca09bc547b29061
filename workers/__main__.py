"""`python -m workers` is `celery --quiet --app workers.app worker`, but takes no code from the current folder."""

import sys

from workers.app import app

if __name__ == "__main__":
    sys.exit(app.start(["--quiet", "worker", *sys.argv[1:]]))
