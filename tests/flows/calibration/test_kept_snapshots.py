"""A snapshot that a process keeps spares the next one reading its rows, and is never another than the stored one."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from tests.flows.recalibration import EDGE, Computing, give, more
from tests.running import Bench
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.snapshot_rows import changed_rows
from venn_admit.errors import OutdatedError
from venn_admit.flows.calibration.calibrate import calibrate_on_stored
from venn_admit.flows.calibration.in_use import judged, use
from venn_admit.flows.calibration.recalibrate import recalibrate
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.removal.forget import forget
from venn_admit.methods.venn_admit.make import make
from venn_admit.store.calibrations import calibration_points, calibrations
from venn_admit.store.calibrations.kept import KeptSnapshot, KeptSnapshots
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import approximations
from venn_admit.store.workspace import Workspace

STEPS = 14
BUDGET = 1 << 28


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The calibrators whose open rows were read."""
    seen: list[int] = []

    def spy(connection: Any, calibrator_id: int, *arguments: Any, **options: Any) -> Any:
        seen.append(calibrator_id)
        return calibration_points.rows_of(connection, calibrator_id, *arguments, **options)

    monkeypatch.setattr("venn_admit.flows.calibration.calibrate.rows_of", spy)
    return seen


def served(bench: Bench, workspace: Workspace) -> None:
    """Serve what is due, and compare what is kept with what is stored, and with a computation from scratch."""
    for _, step in recalibrate(workspace, "edge", shell=Computing(bench)):
        assert step is not None
        assert step.calibrated is not None, step.error
        done = step.calibrated
        with connect(bench.engine) as connection:
            classifier = find(bench.engine, "edge")
            stored = calibration_points.rows_of(connection, done.calibrator_id, classifier.class_count)
            calibration = calibrations.by_id(connection, classifier, done.calibration_id)
            parameters = approximations.require_parameters(connection, classifier)
            settings = done.method_settings
            assert isinstance(settings, CalibratorSettings)
            fresh = make(connection, classifier, parameters, settings, memory_budget=BUDGET)
            admitted = judged(connection, classifier, calibration, None)
        kept = workspace.kept.get(calibration.revision)
        assert kept is not None
        for rows in (stored, fresh.rows):
            assert_same(kept, rows)
        assert (done.by_admit.radius, done.by_admit.largest_kappa) == (fresh.radius, fresh.largest_kappa)
        if kept.vp_logits is not None:
            assert fresh.vp_logits is not None
            by_id = [np.argsort(rows.exemplar_ids[rows.in_vp]) for rows in (kept.rows, fresh.rows)]
            assert np.array_equal(kept.vp_logits[by_id[0]], fresh.vp_logits[by_id[1]])
        if kept.admitted is not None:
            both = [dict(zip(one.exemplar_ids, one.admitted, strict=True)) for one in (kept.admitted, admitted)]
            assert both[0] == both[1]


def assert_same(kept: KeptSnapshot, rows: Any) -> None:
    found = changed_rows(rows, kept.rows)
    assert not len(found.closed_ids)
    assert not len(found.opened)


@pytest.mark.usefixtures("all_replace")
@pytest.mark.parametrize("seed", range(3))
def test_after_any_changes_it_is_what_is_stored(edge: Bench, reads: list[int], seed: int) -> None:
    generator, workspace = np.random.default_rng(seed), edge.workspace()
    edge.calibrate("edge", **EDGE.settings)

    def label(part: str) -> None:
        first = int(generator.integers(40))
        give(edge, int(generator.integers(3)), range(first, first + int(generator.integers(1, 4))), part)

    def another_snapshot() -> None:
        label("vp")
        edge.calibrate("edge", **EDGE.settings)

    def rolled_back() -> None:
        label("mc")
        settings = calibrator_settings(edge)
        calibrate_on_stored(workspace, find(edge.engine, "edge"), settings, reason="looked at", dry_run=True)

    def older() -> None:
        before = edge.value("SELECT max(id) FROM calibration WHERE state <> 'current'")
        with suppress(OutdatedError):  # a point of it was forgotten
            use(edge.engine, "edge", before)

    def forgotten() -> None:
        forget(edge.workspace(), "edge", [f"vp-{int(generator.integers(50, 90))}"], missing_ok=True)

    changes: list[Callable[[], Any]] = [
        lambda: label("mc"),
        lambda: label("mc"),
        lambda: label("vp"),
        lambda: label("vp"),
        lambda: more(edge, f"more{len(reads)}{generator.integers(1000)}"),
        lambda: more(edge, f"support{len(reads)}{generator.integers(1000)}", split="train"),
        another_snapshot,
        rolled_back,
        older,
        forgotten,
    ]
    for _ in range(STEPS):
        changes[int(generator.integers(len(changes)))]()
        served(edge, workspace)
        label("vp")
        served(edge, workspace)


def calibrator_settings(bench: Bench) -> Any:
    with connect(bench.engine) as connection:
        classifier = find(bench.engine, "edge")
        return calibrations.latest(connection, classifier).method_settings


@pytest.mark.parametrize("part", ["mc", "vp"])
def test_the_next_one_reads_neither_rows_nor_logits(
    edge: Bench, reads: list[int], monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    workspace = edge.workspace()
    edge.calibrate("edge", **EDGE.settings)
    give(edge, part="mc")
    served(edge, workspace)
    assert len(reads) == 1
    give(edge, part=part, rows=range(3, 5))
    with monkeypatch.context() as patched:
        patched.setattr(approximations, "split_blocks", None)
        ((_, step),) = recalibrate(workspace, "edge", shell=Computing(edge))
    assert step is not None
    assert step.calibrated is not None
    assert len(reads) == 1


def test_another_process_made_the_snapshot_before(edge: Bench, reads: list[int]) -> None:
    workspace = edge.workspace()
    edge.calibrate("edge", **EDGE.settings)
    for count, other in enumerate((workspace, edge.workspace(), workspace), 1):
        give(edge, shift=count % 3)
        served(edge, other)
        assert len(reads) == count


def snapshot(bench: Bench) -> KeptSnapshot:
    with connect(bench.engine) as connection:
        return KeptSnapshot(calibration_points.rows_of(connection, 1, 3))


def test_two_of_a_setting_are_kept_and_no_more_than_the_limit(edge: Bench) -> None:
    one, revisions = snapshot(edge), [UUID(int=number) for number in range(4)]
    kept = KeptSnapshots(10 * one.size)
    for revision in revisions[:3]:
        kept.keep(1, revision, one)
    kept.keep(2, revisions[3], one)
    assert [kept.get(revision) is not None for revision in revisions] == [False, True, True, True]
    kept = KeptSnapshots(2 * one.size)
    for calibrator_id, revision in enumerate(revisions):
        kept.keep(calibrator_id, revision, one)
    assert [kept.get(revision) is not None for revision in revisions] == [False, False, True, True]
    kept = KeptSnapshots(one.size - 1)
    kept.keep(1, revisions[0], one)
    assert kept.get(revisions[0]) is None
