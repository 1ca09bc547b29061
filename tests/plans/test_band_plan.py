"""The one-point band query reads its covering index, and of that its band, however many points there are."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection, Engine, text

from tests.conftest import fresh_database
from tests.plans.plans import buffers, explain, kinds, scans
from venn_admit.core.calibrators.bands import BandRadius
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.snapshot_rows import join_rows, rows_of_split
from venn_admit.core.split_names import Split
from venn_admit.core.types import CalibrationPoints, KnnParameters
from venn_admit.store.calibrations import calibrations, calibrators
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.statements import statement
from venn_admit.store.exemplars import approximations, classifiers

POINTS = 100_000
CLASSES, K = 3, 25
BAND_INDEX = "calibration_point_band_idx"
QUERY = str(statement("bands.band_evidence"))
# Bands of usual width, of all distances of a q, and past every point.
RADII = (0.05, 3.0, np.inf)


@dataclass(frozen=True)
class Filled:
    """A database with a calibration of `POINTS` points."""

    engine: Engine
    calibration: Calibration

    def parameters(self, omega: float, q: int = 20) -> dict[str, Any]:
        return {
            "calibrator_id": self.calibration.calibrator_id,
            "class_count": CLASSES,
            "alpha": self.calibration.settings.alpha,
            "omega": omega,
            "predicted": 1,
            "bin": q,
            "distance": 1.0,
        }

    def count(self, split: str, omega: float, q: int = 20) -> int:
        """How many points of a split are in the band, by looking at every one."""
        with connect(self.engine) as connection:
            query = text(
                "SELECT count(*) FROM calibration_point WHERE split = :split AND bin = :bin"
                " AND distance BETWEEN :distance - CAST(:omega AS float8) AND :distance + CAST(:omega AS float8)"
            )
            found: int = connection.execute(query, self.parameters(omega, q) | {"split": split}).scalar_one()
        return found


def publish_points(connection: Connection, count: int) -> Calibration:
    """A classifier with as many calibration points, half in mc and half in vp, through the store."""
    classifier = classifiers.create(
        connection,
        name="large",
        class_names=("helix", "strand", "other"),
        dimension=4,
        neighbour_count=K,
        knn_share=Decimal("0.1"),
        mc_share=Decimal("0.4"),
        seed=0,
    )
    connection.execute(
        text(
            "INSERT INTO exemplar (classifier_id, external_id, split, network_logits, network_predicted, label,"
            " content_digest) SELECT :classifier_id, 'made up ' || n, 'mc', '{0,0,0}', 0, 0, ''"
            " FROM generate_series(1, :count) AS n"
        ),
        {"classifier_id": classifier.id, "count": count},
    )
    ids = np.array(connection.execute(text("SELECT id FROM exemplar ORDER BY id")).scalars().all())
    rng = np.random.default_rng(5)
    parts = []
    for split, rows in ((Split.MC, ids[0::2]), (Split.VP, ids[1::2])):
        n = len(rows)
        predicted = rng.integers(0, CLASSES, n)
        match_count = rng.integers(0, K + 1, n)
        points = CalibrationPoints(
            label=np.where(rng.random(n) < 0.8, predicted, rng.integers(0, CLASSES, n)),
            predicted=predicted,
            match_count=match_count,
            distance=rng.gamma(4.0, 0.25, n),
            score=rng.random(n),
        )
        sets = rng.random((n, CLASSES)) < 0.3
        sets[np.arange(n), predicted] = True
        included = sets if split == Split.VP else None
        parts.append(rows_of_split(rows, points, match_count, included, class_count=CLASSES))
    parameters = approximations.add_parameters(
        connection, classifier, KnnParameters(np.zeros(CLASSES), np.ones(CLASSES), 1.0), 1.0, None
    )
    calibration_id, _ = calibrations.store(
        connection,
        calibrators.add(connection, classifier, make_settings(CLASSES, K)),
        join_rows(parts),
        knn_parameters_id=parameters.id,
        reason="test",
    )
    calibrations.add_band_radius(connection, calibration_id, BandRadius(s_hat=0.05, omega=0.05))
    return calibrations.by_id(connection, classifier, calibration_id)


@contextmanager
def filled(url: str, count: int) -> Iterator[Filled]:
    engine = create_engine(url)
    try:
        with transaction(engine) as connection:
            calibration = publish_points(connection, count)
        yield Filled(engine, calibration)
    finally:
        engine.dispose()


@pytest.fixture(scope="module")
def large(server_url: str, template_database: str) -> Iterator[Filled]:
    """100,000 points, vacuumed and analysed, as the server does by itself after a while."""
    with fresh_database(server_url, template_database) as url, filled(url, POINTS) as found:
        with found.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM (ANALYZE) calibration_point")
        yield found


@pytest.mark.parametrize("omega", RADII)
def test_is_an_index_only_scan(large: Filled, omega: float) -> None:
    with connect(large.engine) as connection:
        nodes = explain(connection, QUERY, large.parameters(omega))
    reads = scans(nodes, "calibration_point")
    assert kinds(reads) == {("Index Only Scan", BAND_INDEX)}
    assert len(reads) == 2


@pytest.mark.parametrize("omega", RADII)
def test_reads_its_band_alone(large: Filled, omega: float) -> None:
    with connect(large.engine) as connection:
        nodes = explain(connection, QUERY, large.parameters(omega), analyze=True)
    mc, vp = (large.count(split, omega) for split in ("mc", "vp"))
    assert 0 < mc < POINTS / 20
    reads = scans(nodes, "calibration_point")
    assert [node["Heap Fetches"] for node in reads] == [0, 0]
    touched = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in reads
    )
    assert touched == mc + vp
    # Some 60 to 110 entries fit a page, and either scan descends through three or four.
    assert sum(buffers(node) for node in reads) <= 2 * 4 + (mc + vp) / 60


def test_of_a_prepared_statement_is_the_same(large: Filled) -> None:
    """The driver prepares what it sends often; from then on the server may plan without looking at values."""
    names = list(dict.fromkeys(re.findall(r"(?<!:):(\w+)", QUERY)))
    types = {
        "calibrator_id": "int",
        "class_count": "int",
        "alpha": "numeric",
        "omega": "float8",
        "predicted": "int",
        "bin": "int",
        "distance": "float8",
    }
    numbered = re.sub(r"(?<!:):(\w+)", lambda match: f"${names.index(match[1]) + 1}", QUERY)
    values = ", ".join(str(large.parameters(0.05)[name]) for name in names)
    with connect(large.engine) as connection:
        connection.exec_driver_sql("SET plan_cache_mode = force_generic_plan")
        declared = ", ".join(types[name] for name in names)
        connection.exec_driver_sql(f"PREPARE band_evidence ({declared}) AS {numbered}")
        reads = scans(explain(connection, f"EXECUTE band_evidence ({values})", {}, analyze=True), "calibration_point")
    assert kinds(reads) == {("Index Only Scan", BAND_INDEX)}
    assert [node["Heap Fetches"] for node in reads] == [0, 0]


@pytest.fixture(scope="module")
def fresh(server_url: str, template_database: str) -> Iterator[Filled]:
    """Points that were never vacuumed; the index needs statistics, though."""
    with fresh_database(server_url, template_database) as url, filled(url, 20_000) as found:
        with transaction(found.engine) as connection:
            connection.exec_driver_sql("ANALYZE calibration_point")
        yield found


@pytest.mark.parametrize("omega", RADII)
def test_before_the_first_vacuum_the_index_serves_too(fresh: Filled, omega: float) -> None:
    """Then pages of the table that are looked at are those of the band."""
    with connect(fresh.engine) as connection:
        nodes = explain(connection, QUERY, fresh.parameters(omega), analyze=True)
        pages = connection.execute(text("SELECT pg_relation_size('calibration_point') / 8192")).scalar_one()
    reads = scans(nodes, "calibration_point")
    assert {index for kind, index in kinds(reads) if kind != "Bitmap Heap Scan"} == {BAND_INDEX}
    assert "Seq Scan" not in {node["Node Type"] for node in nodes}
    assert buffers(nodes[0]) < pages / 3
