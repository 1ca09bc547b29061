"""A streaming replica of the embedded server: readers of schema `report` and the verbs that write nothing use it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import make_url, text

from tests.cli import samples
from tests.cli.databases import CALIBRATION, on_database
from tests.cli.program import Program
from tests.cli.samples import NAME
from tests.conftest import administration, open_folder
from tests.patience import wait_until
from venn_admit.store.database.engine import connect, create_engine
from venn_admit.store.embedded.programs import make_private, run_program, server_programs, server_user
from venn_admit.store.embedded.users import start_embedded, stop_embedded

VIEWS = """
SELECT 'report.' || relname FROM pg_class WHERE relnamespace = 'report'::regnamespace AND relkind = 'v' ORDER BY 1
"""
FUNCTIONS = "SELECT proname FROM pg_proc WHERE pronamespace = 'report'::regnamespace"
CALLS = {"band_v1": f"report.band_v1('{NAME}', 1, 0.5)", "snapshot_diff_v1": "report.snapshot_diff_v1(1, 2)"}
BEHIND = "SELECT pg_last_wal_replay_lsn() IS NULL OR pg_last_wal_replay_lsn() < CAST(:written AS pg_lsn)"


@dataclass(frozen=True, slots=True)
class Pair:
    """The program on a server and on its standby; reader: the standby's URL for a member of venn_admit_reader."""

    primary: Program
    standby: Program
    reader: str


@pytest.fixture(scope="module")
def pair(files: Path) -> Iterator[Pair]:
    with open_folder() as folder:
        home, copy = folder / "home", folder / "copy"
        primary = on_database(start_embedded(home), folder)
        owner = server_user()
        programs, socket = server_programs(home, owner), make_url(primary.url).query["host"]
        make_private(copy, owner)
        data = copy / "data"
        try:
            standby = on_database(f"postgresql+psycopg://postgres@/postgres?host={quote(str(copy))}", folder)
            base = ("pg_basebackup", "-h", socket, "-U", "postgres", "-D", data, "-R", "-C", "-S", "copy", "-c", "fast")
            run_program(programs, base, owner)
            start = ("pg_ctl", "-w", "-o", f'-h "" -k {copy}', "-l", copy / "log", "-D", data, "start")
            run_program(programs, start, owner)
            try:
                # The standby was there before the schema: all of it is streamed.
                prepare(primary, files, folder)
                reader = make_url(standby.url).set(username="analyst").render_as_string()
                catch_up(primary.url, standby.url)
                yield Pair(primary, standby, reader)
            finally:
                run_program(programs, ("pg_ctl", "-w", "-m", "immediate", "-D", data, "stop"), owner)
        finally:
            stop_embedded(home)


def prepare(primary: Program, files: Path, folder: Path) -> None:
    """Snapshots of both methods with decisions, labels of some of them, and a monitor."""
    classes = ",".join(samples.CLASS_NAMES)
    labels = folder / "labels.csv"
    known = samples.scored()["label"].tolist()
    labels.write_text("\n".join(["external_id,label", *(f"scored-{row},{known[row]}" for row in range(60))]) + "\n")
    unlabelled = samples.save(folder, "unlabelled.npz", samples.scored() | {"label": samples.scored()["label"] * 0 - 1})
    for verb in (
        ("db", "upgrade"),
        ("create", NAME, "--classes", classes, "--dim", samples.DIMENSION, "--k", samples.K),
        ("ingest", NAME, files / "train.npz", "--split", "train"),
        ("ingest", NAME, files / "held-out.parquet", "--split", "held-out"),
        ("fit", NAME),
        ("calibrate", NAME, "--method", "venn-abers", "--promise", "pointwise", "--alpha", "0.2"),
        ("score", NAME, unlabelled, "--out", folder / "first.parquet"),
        ("calibrate", NAME, *CALIBRATION),
        ("score", NAME, unlabelled, "--out", folder / "second.parquet"),
        ("label", NAME, labels),
        ("monitor", NAME),
        ("recalibrate", NAME),
        ("score", NAME, unlabelled, "--out", folder / "third.parquet"),
    ):
        assert primary(*verb).code == 0, verb
    with administration(primary.url) as execute:
        execute("CREATE ROLE analyst LOGIN")
    assert primary("db", "grant-reader", "analyst").code == 0


def catch_up(primary: str, standby: str) -> None:
    """Wait until the standby has all that the server has written."""
    server, copy = create_engine(primary), create_engine(standby)
    with connect(server) as connection:
        written = connection.execute(text("SELECT pg_current_wal_lsn()::text")).scalar_one()
    with connect(copy) as connection:
        assert connection.execute(text("SELECT pg_is_in_recovery()")).scalar_one()
        wait_until(
            lambda: not connection.execute(text(BEHIND), {"written": written}).scalar_one(), "the standby catches up"
        )
    server.dispose()
    copy.dispose()


def answers(url: str) -> dict[str, list[str]]:
    """The rows of every view and function of schema `report`, as text."""
    engine = create_engine(url)
    with connect(engine) as connection:
        assert set(connection.execute(text(FUNCTIONS)).scalars()) == CALLS.keys()
        asked = [*connection.execute(text(VIEWS)).scalars(), *CALLS.values()]
        found = {
            source: sorted(
                connection.execute(text(f"SELECT row_to_json(asked)::text FROM {source} AS asked")).scalars()
            )
            for source in asked
        }
    engine.dispose()
    return found


def test_a_reader_gets_the_answers_of_the_server(pair: Pair) -> None:
    found = answers(pair.reader)
    assert found == answers(pair.primary.url)
    empty = {source for source, rows in found.items() if not rows}
    unused = (
        "alarm_v1",
        "alarm_v2",
        "cascade_stage_v1",
        "label_budget_v1",
        "audit_v1",
        "withheld_calibration_v1",
        "average_policy_v1",
    )
    of_certificates = (
        "policy_v2",
        "policy_v3",
        "policy_test_v1",
        "policy_test_v2",
        "audit_draw_v1",
        "certificate_look_v1",
        "certificate_look_v2",
    )
    assert empty <= {f"report.{view}" for view in (*unused, *of_certificates, "group_accuracy_v1")}


@pytest.mark.parametrize(
    "verb",
    [
        ("list",),
        ("show", NAME),
        ("calibrations", NAME),
        ("report", NAME),
        ("what-if", NAME, "--leave-out", "train-1"),
        ("replay", "--classifier", NAME, "--id", "scored-3"),
        ("jobs", "list"),
        ("db", "status"),
        ("db", "check"),
    ],
    ids=" ".join,
)
def test_what_writes_nothing_says_the_same(pair: Pair, verb: tuple[object, ...]) -> None:
    expected = pair.primary(*verb, "--json").result
    assert pair.standby(*verb, "--json").result == expected


def test_what_writes_is_refused(pair: Pair) -> None:
    outcome = pair.standby("rename", NAME, "other")
    assert outcome.code != 0
    assert "read-only transaction; the session may only read, as on a standby" in outcome.stderr
