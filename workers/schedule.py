"""What beat starts: `celery -A workers.schedule beat`.

The sweeper bounds how long a lost message or a dead worker can hold a job up.
"""

from service import broker
from workers.app import app

SWEEP_SECONDS = 30.0

app.conf.beat_schedule = {"sweep": {"task": broker.SWEEP, "schedule": SWEEP_SECONDS}}
