"""Beat: what it sends, and that a worker which is up recalibrates by it."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest
from celery import Celery
from kombu.utils.imports import symbol_by_name
from sqlalchemy import Engine

from tests.patience import PATIENCE_SECONDS, wait_until
from tests.receiver import receiving
from tests.running import Bench
from tests.workers.processes import await_workers, running_beat, running_worker
from tests.workers.samples import CLASS_COUNT, NAME, SCORED_ROWS, exemplars, rows, value
from venn_admit import broker
from venn_admit.cli.worker_process import BEAT_SECONDS, require_beat
from venn_admit.errors import NotReadyError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.label import label
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.work import jobs

SENT = "SELECT payload -> 'headers' ->> 'task' AS task, payload -> 'headers' ->> 'expires' AS expires FROM message"
HELD_OUT = 2000


@contextmanager
def pretended_worker(engine: Engine) -> Iterator[None]:
    """Within it, a worker counts as up."""
    with connect(engine) as connection:
        jobs.announce_worker(connection)
        yield
        connection.invalidate()


def change_label(engine: Engine, folder: Path) -> str:
    """Give a held-out exemplar of vp another label; its id."""
    external_id: str = value(engine, "SELECT min(external_id) FROM exemplar WHERE split = 'vp'")
    number = int(exemplars("held-out", HELD_OUT)["y"][int(external_id.rpartition("-")[2])])
    path = folder / "labels.csv"
    path.write_text(f"external_id,label\n{external_id},{(number + 1) % 3}\n")
    assert label(engine, NAME, LabelFile(path), selection="random", retract=False).recalibrations_due == 1
    return external_id


def test_nothing_is_sent_while_no_worker_is_up(worker_app: Celery, engine: Engine, tmp_path: Path) -> None:
    broker.prepare(worker_app)
    scheduler = symbol_by_name(worker_app.conf.beat_scheduler)(app=worker_app, schedule_filename=str(tmp_path / "beat"))
    entries = [scheduler.schedule[name] for name in ("sweep", "recalibrate", "monitor", "prune")]
    for entry in entries:
        scheduler.apply_entry(entry)
    assert rows(engine, SENT) == []
    with pretended_worker(engine):
        for entry in entries:
            scheduler.apply_entry(entry)
    sent = rows(engine, SENT)
    assert [message.task for message in sent] == [broker.SWEEP, broker.RECALIBRATE, broker.MONITOR, broker.PRUNE]
    assert all(message.expires for message in sent)
    scheduler.close()


def test_the_task_takes_what_is_due_a_step_further(
    make_worker_app: Callable[..., Celery], engine: Engine, tmp_path: Path
) -> None:
    recalibrate = make_worker_app().tasks[broker.RECALIBRATE]
    assert recalibrate() == 0
    change_label(engine, tmp_path)
    assert recalibrate() == 0, "more may come"
    eager = make_worker_app(recalibrate_quiet_seconds=0).tasks[broker.RECALIBRATE]
    assert eager() == 1
    assert eager() == 0
    assert value(engine, "SELECT max(number) FROM calibration") == 2


def test_the_task_keeps_monitors_up_to_date_and_sends_alarms(
    make_worker_app: Callable[..., Celery], engine: Engine, tmp_path: Path
) -> None:
    bench = Bench(engine, tmp_path)
    arrays = exemplars("scored", SCORED_ROWS)
    bench.score(NAME, bench.write("scored.npz", arrays | {"y": np.full(SCORED_ROWS, -1)}))
    with receiving() as receiver:
        monitor = make_worker_app(monitor_webhook=receiver.url).tasks[broker.MONITOR]
        assert [monitor(), monitor()] == [1, 0]
        lines = [f"{name},{(y + 1) % CLASS_COUNT}" for name, y in zip(arrays["id"], arrays["y"], strict=True)]
        path = tmp_path / "labels.csv"
        path.write_text("\n".join(["external_id,label", *lines]) + "\n")
        label(engine, NAME, LabelFile(path), selection="random", retract=False)
        receiver.statuses = [503]
        assert [monitor(), monitor(), monitor()] == [1, 1, 0], "what was not taken is sent once more"
    alarms = value(engine, "SELECT count(*) FROM monitor_alarm WHERE notified_at IS NOT NULL")
    assert len({sent["alarm"] for sent in receiver.received}) == len(receiver.received) == alarms > 1
    assert value(engine, "SELECT max(documents) FROM monitor_state") == SCORED_ROWS


@pytest.mark.processes
def test_what_beat_sends_does_not_wait_behind_chunks(url: str, engine: Engine, sender: Celery, tmp_path: Path) -> None:
    nowhere = [(10**9, ordinal) for ordinal in range(300)]
    change_label(engine, tmp_path)
    broker.send(sender, nowhere)
    sender.send_task(broker.RECALIBRATE)
    with running_worker(url, tmp_path / "worker", recalibrate_quiet_seconds=0) as worker:
        wait_until(lambda: worker.of_event("recalibrated"), "a second snapshot")
        order = [entry["event"] for entry in worker.entries()]
    assert order[: order.index("recalibrated")].count("no chunk is free") < 100


@pytest.mark.processes
def test_beat_and_a_worker_keep_a_calibration_current(url: str, engine: Engine, tmp_path: Path) -> None:
    home = tmp_path / "beat"
    with running_worker(url, tmp_path / "worker", recalibrate_quiet_seconds=0) as worker:
        await_workers(engine, 1)
        external_id = change_label(engine, tmp_path)
        with running_beat(url, home) as process:
            wait_until(lambda: value(engine, "SELECT max(number) FROM calibration") == 2, "a second snapshot")
            require_beat(home)
            loaded = {Path(one.path).name for one in psutil.Process(process.pid).memory_maps()}
            assert any("psycopg" in name or "libpq" in name for name in loaded)
            assert [name for name in loaded if "torch" in name or "multiarray" in name] == []
            process.send_signal(signal.SIGSTOP)
            long_ago = time.time() - BEAT_SECONDS - 1
            os.utime(home / "beat-tick", (long_ago, long_ago))
            with pytest.raises(NotReadyError, match=r"last looked at its schedule \d+ s ago, expected 60 s at most"):
                require_beat(home)
            process.send_signal(signal.SIGCONT)
            wait_until(lambda: (home / "beat-tick").stat().st_mtime > long_ago + 1, "it looks at its schedule again")
            require_beat(home)
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 0
        wait_until(lambda: worker.of_event("recalibrated"), "it is in the log")
        (entry,) = worker.of_event("recalibrated")
    assert (entry["classifier"], entry["reason"], entry["rows_opened"]) == (NAME, "labels", 1)
    opened = "SELECT external_id FROM calibration_point JOIN exemplar ON exemplar_id = exemplar.id WHERE valid_from = 2"
    assert [row.external_id for row in rows(engine, opened)] == [external_id]
    assert list(home.glob("beat-schedule*"))
    said = [json.loads(line) for line in (home / "log").read_text().splitlines() if line.startswith("{")]
    assert {line["level"] for line in said} <= {"info"}
    lines = [entry["event"] for entry in [*said, *worker.entries()]]
    assert [line for line in lines if "Sending" in line or line.endswith((" received", ": 0"))] == []
    assert any(line.startswith(f"Task {broker.RECALIBRATE}[") and line.endswith(": 1") for line in lines)


def test_the_task_removes_what_is_older_than_the_setting_says(
    make_worker_app: Callable[..., Celery], engine: Engine, tmp_path: Path
) -> None:
    bench = Bench(engine, tmp_path)
    arrays = exemplars("scored", SCORED_ROWS)
    path = bench.write("scored.npz", arrays | {"y": np.full(SCORED_ROWS, -1)})
    old = bench.score(NAME, path).request.job_id
    new = bench.score(NAME, path, weighted=False).request.job_id
    with transaction(engine) as connection:
        for job_id, days in ((old, 31), (new, 29)):
            connection.exec_driver_sql(
                f"UPDATE job SET created_at = created_at - interval '{days} days',"
                f" finished_at = finished_at - interval '{days} days' WHERE id = {job_id}"
            )
    count = "SELECT count(*) FROM decision WHERE weighted = :weighted"
    assert make_worker_app().tasks[broker.PRUNE]() == 0, "every decision is kept without the setting"
    assert make_worker_app(keep_decisions="30d").tasks[broker.PRUNE]() == SCORED_ROWS
    assert (value(engine, count, weighted=True), value(engine, count, weighted=False)) == (0, SCORED_ROWS)
