"""The application of a worker: importing it opens nothing, and each is made from settings of its own."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from celery import Celery

from venn_admit import broker

IMPORT_ALL = """
import pkgutil
import importlib
import venn_admit_workers as workers

for module in pkgutil.iter_modules(workers.__path__):
    importlib.import_module(f"venn_admit_workers.{module.name}")
"""


@pytest.mark.processes
def test_importing_does_no_input_or_output() -> None:
    nowhere = {"VENN_ADMIT_DATABASE_URL": "postgresql://127.0.0.1:9/nowhere", "VENN_ADMIT_CHUNK_ROWS": "no number"}
    subprocess.run([sys.executable, "-c", IMPORT_ALL], env=os.environ | nowhere, check=True)


def test_two_applications_share_nothing(make_worker_app: Callable[..., Celery]) -> None:
    first, second = make_worker_app(chunk_seconds=10), make_worker_app(chunk_seconds=20)
    assert (first.conf.task_time_limit, second.conf.task_time_limit) == (10, 20)
    for task in (broker.RUN_CHUNK, broker.SWEEP, broker.RECALIBRATE):
        assert first.tasks[task].app is first
        assert second.tasks[task].app is second
    assert first.life.runtime.engine is not second.life.runtime.engine
