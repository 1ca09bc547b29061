"""Databases as a user would have them after the first verbs, made once by the program itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import make_url

from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import NAME, SCORED_ROWS
from tests.conftest import fresh_database

# Under which the classifier admits some and rejects some for each reason.
CALIBRATION = ("--method", "venn-admit", "--alpha", "0.2", "--kappa", 10, "--q-bins", "0,1")


def on_database(url: str, folder: Path) -> Program:
    return Program({"VENN_ADMIT_DATABASE_URL": url, "VENN_ADMIT_HOME": str(folder / "home")})


@contextmanager
def copied(program: Program, server_url: str, folder: Path) -> Iterator[Program]:
    """The program on a copy of its database."""
    with fresh_database(server_url, make_url(program.url).database or "") as url:
        yield on_database(url, folder)


@pytest.fixture
def program(database: str, tmp_path: Path) -> Program:
    """The program on a migrated, empty database."""
    return on_database(database, tmp_path)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the three files of the classifier."""
    folder = tmp_path_factory.mktemp("files")
    samples.save(folder, "train.npz", samples.train())
    samples.save(folder, "held-out.parquet", samples.held_out())
    samples.save(folder, "scored.npz", samples.scored())
    return folder


@pytest.fixture(scope="session")
def ingested(server_url: str, template_database: str, session_folder: Path, files: Path) -> Iterator[Program]:
    """The program with the classifier and its exemplars; to be left as it is."""
    with fresh_database(server_url, template_database) as url:
        program = on_database(url, session_folder / "cli")
        classes = ",".join(samples.CLASS_NAMES)
        assert program("create", NAME, "--classes", classes, "--dim", samples.DIMENSION, "--k", samples.K).code == 0
        assert program("ingest", NAME, files / "train.npz", "--split", "train").code == 0
        assert program("ingest", NAME, files / "held-out.parquet", "--split", "held-out").code == 0
        yield program


@pytest.fixture(scope="session")
def calibrated(ingested: Program, server_url: str, session_folder: Path) -> Iterator[Program]:
    """The program with the classifier calibrated, by snapshot 1; to be left as it is."""
    with copied(ingested, server_url, session_folder / "cli") as program:
        assert program("fit", NAME).code == 0
        assert program("calibrate", NAME, *CALIBRATION).code == 0
        yield program


@pytest.fixture
def own_ingested(ingested: Program, server_url: str, tmp_path: Path) -> Iterator[Program]:
    """As `ingested`, to be changed."""
    with copied(ingested, server_url, tmp_path) as program:
        yield program


@pytest.fixture
def own_calibrated(calibrated: Program, server_url: str, tmp_path: Path) -> Iterator[Program]:
    """As `calibrated`, to be changed."""
    with copied(calibrated, server_url, tmp_path) as program:
        yield program


@pytest.fixture(scope="session")
def scored_once(
    calibrated: Program, server_url: str, session_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Program]:
    """The program after a file without labels was scored; to be left as it is."""
    folder = tmp_path_factory.mktemp("scored")
    path = samples.save(folder, "scored.npz", samples.scored() | {"label": np.full(SCORED_ROWS, -1)})
    with copied(calibrated, server_url, session_folder / "cli") as program:
        assert program("score", NAME, path, "--out", folder / "scores.parquet").code == 0
        yield program


@pytest.fixture
def scored(scored_once: Program, server_url: str, tmp_path: Path) -> Iterator[Program]:
    """As `scored_once`, to be changed."""
    with copied(scored_once, server_url, tmp_path) as program:
        yield program
