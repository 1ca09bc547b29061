"""Vectors of every length: how they are kept, that every bit comes back, and what is refused."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from sqlalchemy import Engine, text

from tests import reference
from tests.running import Arrays, Bench
from tests.store.exemplars.test_exemplars import make_classifier, rows, store
from venn_admit.core.approximation.knn import softmax
from venn_admit.core.split_names import Split
from venn_admit.core.types import Float32Array, KnnParameters
from venn_admit.errors import DatabaseError
from venn_admit.flows.calibration.calibrate import Calibrated
from venn_admit.flows.data.export import Export
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers, exemplars

INFO = np.finfo(np.float32)
EXTREMES = np.array([0.0, -0.0, INFO.max, INFO.min, INFO.tiny, 1e-45, -1e-45, 1 / 3], dtype=np.float32)


@pytest.fixture(scope="module")
def engine(shared_engine: Engine) -> Engine:
    """A database for all tests here, each with a classifier of its own."""
    return shared_engine


def extreme_vectors(count: int, dimension: int) -> Float32Array:
    """Random bit patterns, the extreme ones first and last."""
    rng = np.random.default_rng(dimension)
    bits = rng.integers(0, 2**32, (count, dimension), dtype=np.uint32).view(np.float32)
    vectors = np.where(np.isfinite(bits), bits, np.float32(1.5))
    vectors.reshape(-1)[: min(len(EXTREMES), vectors.size)] = EXTREMES[: vectors.size]
    vectors.reshape(-1)[-min(len(EXTREMES), vectors.size) :] = EXTREMES[: vectors.size]
    return vectors


@pytest.mark.parametrize(
    ("dimension", "storage"),
    [(1, "p"), (2, "p"), (384, "p"), (1000, "p"), (2000, "p"), (2001, "e"), (4096, "e"), (16000, "e")],
)
def test_of_every_length(engine: Engine, dimension: int, storage: str) -> None:
    """PLAIN (p), in the row, up to 2000; EXTERNAL (e), beside it and uncompressed, above."""
    names = [f"{number}" for number in range(9)]
    vectors = extreme_vectors(9, dimension)
    with transaction(engine) as connection:
        classifier = make_classifier(connection, f"of length {dimension}", dimension)
        incoming = replace(rows(names, Split.TRAIN, [0] * 9), vectors=vectors)
        incoming = replace(incoming, splits=[Split.TRAIN] * 5 + [Split.VP] * 4)
        ids = store(connection, classifier, incoming).ids

    with connect(engine) as connection:
        query = text(
            "SELECT attstorage FROM pg_attribute WHERE attname = 'vector' AND attrelid::regclass::text IN"
            " (:support, :held_out)"
        )
        partitions = {side: f"exemplar_vector_{classifier.id}_{side}" for side in ("support", "held_out")}
        assert connection.execute(query, partitions).scalars().all() == [storage, storage]
        for side, count in (("support", 5), ("held_out", 4)):
            assert connection.execute(text(f"SELECT count(*) FROM {partitions[side]}")).scalar_one() == count

        found = exemplars.vectors(connection, classifier, ids[::-1])
        assert found.tobytes() == vectors[::-1].tobytes()
        support = np.concatenate(list(exemplars.support_vector_blocks(connection, classifier, ids[:5], 2)))
        assert support.tobytes() == vectors[:5].tobytes()
        # What SQL sees is the same number.
        (norm,) = connection.execute(
            text("SELECT vector_norm(vector) FROM exemplar_vector WHERE exemplar_id = :id"), {"id": int(ids[4])}
        ).one()
        with np.errstate(over="ignore"):
            expected = np.sqrt(np.square(vectors[4].astype(np.float64)).sum())
        assert norm == pytest.approx(expected, rel=1e-12)


class TestRefusals:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("split", [Split.TRAIN, Split.SCORED])
    def test_what_is_not_finite(self, engine: Engine, value: float, split: Split) -> None:
        """Files are checked before; pgvector refuses such a vector from any sender."""
        incoming = rows(["a", "b"], split, [0, 0])
        assert incoming.vectors is not None
        incoming.vectors[1, 2] = value
        with (
            pytest.raises(DatabaseError, match=r"(NaN|infinite value) not allowed in vector"),
            transaction(engine) as connection,
        ):
            store(connection, make_classifier(connection, "refused"), incoming)
        with connect(engine) as connection:
            query = text("SELECT count(*) FROM classifier WHERE name = 'refused'")
            assert connection.execute(query).scalar_one() == 0

    @pytest.mark.parametrize("side", ["true", "false"])
    @pytest.mark.parametrize("literal", ["[1,2]", "[1,2,3,4]"])
    def test_another_length(self, engine: Engine, side: str, literal: str) -> None:
        with transaction(engine) as connection:
            classifier = make_classifier(connection, f"{side} {literal}")
            ids = store(connection, classifier, rows(["a"])).ids
            connection.exec_driver_sql(f"DELETE FROM exemplar_vector WHERE classifier_id = {classifier.id}")
        insert = f"INSERT INTO exemplar_vector VALUES ({classifier.id}, {side}, {ids[0]}, '{literal}')"
        with pytest.raises(DatabaseError, match="violates check constraint"), transaction(engine) as connection:
            connection.exec_driver_sql(insert)

    def test_a_classifier_without_partitions(self, engine: Engine) -> None:
        with transaction(engine) as connection:
            store(connection, make_classifier(connection, "alone"), rows(["a"]))
        move = "UPDATE exemplar_vector SET classifier_id = classifier_id + 1000"
        with pytest.raises(DatabaseError, match="no partition of relation"), transaction(engine) as connection:
            connection.exec_driver_sql(move)


class TestNumbersOfClasses:
    """Ingest, calibrate and score, held against the procedure point by point."""

    @pytest.fixture
    def bench(self, engine: Engine, tmp_path: Path) -> Bench:
        return Bench(engine, tmp_path)

    @pytest.mark.parametrize("class_count", [2, 1000])
    def test_from_two_to_a_thousand(self, bench: Bench, class_count: int) -> None:
        settings: dict[str, Any] = {"alpha": Decimal("0.5"), "delta": np.inf, "kappa": 1, "q_bins": (0,)}
        name, done = calibrate_clusters(bench, class_count, **settings)
        scores = bench.score(name, bench.write("score.npz", clusters(class_count, 40, 4)), weighted=False)
        with connect(bench.engine) as connection:
            classifier = classifiers.by_name(connection, name)
            calibration = calibrations.by_id(connection, classifier, done.calibration_id)
            mc, vp = (calibrations.read_points(connection, calibration, split) for split in (Split.MC, Split.VP))
        sets = bench.export(name, Export.CALIBRATION).filter(pc.field("split") == "vp")
        included = {row["external_id"]: row["set"] for row in sets.to_pylist()}
        names = {row.id: row.external_id for row in bench.rows("SELECT id, external_id FROM exemplar")}
        vp_sets = np.zeros((len(vp.exemplar_ids), class_count), dtype=np.bool_)
        for row, exemplar_id in enumerate(vp.exemplar_ids.tolist()):
            vp_sets[row, included[names[exemplar_id]]] = True

        assert 5 < sum(len(members) == 1 for members in scores.table["set"].to_pylist()) <= 40
        for row in scores.table.slice(0, 5).to_pylist():
            expected = reference.admit_set(
                1.0 - softmax(np.array([row["logits"]]))[0],
                row["predicted"],
                row["q"],
                row["d"],
                mc.points,
                done.settings,
                np.inf,
            )
            assert set(row["set"]) == expected.members
            assert row["band_size"] == expected.band_size
            assert row["threshold"] == expected.threshold
            own_set = np.isin(np.arange(class_count), row["set"])
            category = reference.category(
                vp.points, vp_sets, own_set, row["predicted"], row["q"], row["d"], (0,), np.inf
            )
            assert row["category_size"] == len(category)
            if len(row["set"]) == 1:
                labels = vp.points.label[category]
                interval = reference.venn_interval(labels, row["predicted"], class_count, 1.0)
                assert (row["lower"], row["upper"]) == interval

    def test_a_threshold_for_each_class(self, bench: Bench) -> None:
        thresholds = tuple(1 - Decimal(position) / 10_000 for position in range(999))
        settings: dict[str, Any] = {"alpha": Decimal("0.5"), "delta": np.inf, "kappa": 1, "thresholds": thresholds}
        name, done = calibrate_clusters(bench, 999, **settings)
        again = bench.calibrate(name, **{**settings, "alpha": Decimal("0.50")})
        with connect(bench.engine) as connection:
            classifier = classifiers.by_name(connection, name)
            first, second = (
                calibrations.by_id(connection, classifier, calibrated.calibration_id) for calibrated in (done, again)
            )
        assert first.settings.thresholds == thresholds
        assert (second.calibrator_id, second.number) == (first.calibrator_id, 2)


def clusters(class_count: int, count: int, seed: int) -> Arrays:
    """Points around a centre for each class, labels in turn; the network sees which centre is near."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(class_count, 16))
    labels = np.arange(count) % class_count if seed < 4 else rng.integers(0, class_count, count)
    points = (centres[labels] + 0.5 * rng.normal(size=(count, 16))).astype(np.float16)
    squared = np.square(points).sum(axis=1)[:, None] - 2 * points @ centres.T + np.square(centres).sum(axis=1)
    return {
        "id": np.array([f"{seed}-{row}" for row in range(count)]),
        "r": points,
        "f": (-squared / 4).astype(np.float32),
        "y": labels,
    }


def calibrate_clusters(bench: Bench, class_count: int, **settings: Any) -> tuple[str, Calibrated]:
    """A classifier with three points a class in mc, of which no class may lack."""
    name = f"{class_count} classes"
    bench.create(name, dimension=16, class_count=class_count, neighbour_count=4)
    for seed, (split, count) in enumerate({"train": 2 * class_count, "mc": 3 * class_count, "vp": 2000}.items(), 1):
        bench.ingest(name, bench.write("rows.npz", clusters(class_count, max(count, 200), seed)), split)
    bench.adopt(name, KnnParameters(np.zeros(class_count), np.full(class_count, 4.0), 0.5))
    return name, bench.calibrate(name, **settings)
