"""`python -m workers worker` or `... beat` runs Celery's command, but takes no code from the current folder."""

import sys

import workers.schedule  # noqa: F401 - tells the application what beat starts
from workers.app import app

if __name__ == "__main__":
    sys.exit(app.start(["--quiet", *sys.argv[1:]]))
