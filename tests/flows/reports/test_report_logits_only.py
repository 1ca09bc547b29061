"""The report on a classifier with logits only: what one by Venn-Abers says, without q, d and a KNN."""

import json
from dataclasses import replace
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

from tests.flows.logits import ALPHA, CLASSES, NAME, calibrated, exemplars, make, prepared
from tests.report.pages.test_evaluation import Page
from tests.running import Arrays, Bench
from venn_admit.cli.advice import command
from venn_admit.core.reasons import Reason
from venn_admit.core.types import KnnParameters
from venn_admit.flows.reports.folders import write_calibration_report
from venn_admit.flows.reports.report import report as flow
from venn_admit.report.calibration.advice import advice
from venn_admit.report.calibration.cells.part import CellsPart
from venn_admit.report.calibration.payload import calibration_payload
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import TextTable
from venn_admit.report.calibration.wording import advice_text, sections, settings_text
from venn_admit.store.decisions import reports

COUNT = 400


def report(bench: Bench, name: str = NAME) -> CalibrationReport:
    return flow(bench.workspace(), name, calibration_id=None)


def cells(found: CalibrationReport) -> CellsPart:
    assert isinstance(found.part, CellsPart)
    return found.part


def told(found: CalibrationReport) -> dict[str, Any]:
    return calibration_payload(found, command)


def tables(found: CalibrationReport) -> list[TextTable]:
    return [part for section in sections(found, command) for part in section.parts if isinstance(part, TextTable)]


def text_of(found: CalibrationReport) -> str:
    parts = sections(found, command)
    said = [line for section in parts for line in (section.title, *map(str, section.parts), *section.notes)]
    return "\n".join((settings_text(found), *said, *advice_text(found, command)))


def unlabelled(prefix: str, count: int, seed: int) -> Arrays:
    return exemplars(prefix, count, seed) | {"y": np.full(count, -1)}


@pytest.fixture
def logits(bench: Bench) -> Bench:
    """The classifier, calibrated, and traffic that is like its calibration data."""
    prepared(bench)
    bench.score(NAME, bench.write("new.npz", unlabelled("new", COUNT, seed=2)), weighted=None)
    return bench


def test_traffic_is_that_of_plain_sql(logits: Bench) -> None:
    found = report(logits)
    assert found.traffic is not None
    comparison = found.traffic.comparison
    assert comparison is not None
    decided = logits.rows("SELECT * FROM decision INNER JOIN abers_evidence ON decision.id = decision_id")
    points = logits.rows("SELECT predicted, label, score FROM calibration_point WHERE split = 'mc'")
    assert (comparison.points, list(comparison.shifts)) == (COUNT, ["score"])
    shift = comparison.shifts["score"].test.statistic
    assert shift == pytest.approx(ks_2samp([row.score for row in points], [row.score for row in decided]).statistic)
    admitted = sum(row.decision is not None for row in decided)
    assert 0 < comparison.shares["admitted"].recent.count == admitted < COUNT
    (outcome,) = found.traffic.outcomes
    by_reason = {reason: sum(row.reason == reason for row in decided) for reason in Reason}
    assert (outcome.admitted, outcome.rejected) == (admitted, by_reason)
    states = cells(found).states
    assert [state.points for state in states] == [sum(row.predicted == c for row in points) for c in range(CLASSES)]
    assert {part.kind for part in cells(found).parts} == {"score"}
    for c in range(CLASSES):
        mine = [part for part in cells(found).parts if part.predicted == c]
        assert sum(part.calibrated for part in mine) == states[c].points
        assert sum(part.right for part in mine) == sum(row.predicted == row.label == c for row in points)
        assert sum(part.recent for part in mine) == sum(row.predicted == c for row in decided)
        assert sum(part.recent_admitted for part in mine) == sum(row.decision == c for row in decided)


def test_it_says_what_one_with_vectors_says_without_its_evidence(bench: Bench) -> None:
    """With the same method and score, on the same points: every figure but those of q, d and the KNN is the same."""
    generator = np.random.default_rng(3)
    bench.create("vectors", dimension=2, class_count=CLASSES, neighbour_count=3)
    make(bench)
    for split, count in (("train", 30), ("mc", 400), ("vp", 50)):
        rows = exemplars(split, count, seed=count)
        vectors = generator.normal(size=(len(rows["y"]), 2)).astype(np.float32)
        bench.ingest("vectors", bench.write("rows.npz", rows | {"r": vectors}), split)
        if split != "train":
            bench.ingest(NAME, bench.write("rows.npz", rows), split)
    bench.adopt("vectors", KnnParameters(np.zeros(CLASSES), np.ones(CLASSES), 1.0), 1.0)
    bench.calibrate_abers("vectors", score="network", alpha=ALPHA)
    calibrated(bench)
    new = unlabelled("new", 100, seed=2)
    vectors = generator.normal(size=(100, 2)).astype(np.float32)
    bench.score("vectors", bench.write("new.npz", new | {"r": vectors}), weighted=None)
    bench.score(NAME, bench.write("new.npz", new), weighted=None)
    whole, bare = told(report(bench, "vectors")), told(report(bench))
    for document in (whole, bare):
        for name in ("classifier", "stored", "advice", "history"):
            del document[name]
        for name in ("number", "created_at"):
            del document["calibration"][name]
        del document["drift"]["decided_by"]
    assert whole["calibration"].pop("parameters_are_current") is True
    assert bare["calibration"].pop("parameters_are_current") is None
    assert bare.pop("discrepancies") is None
    assert whole.pop("discrepancies")["scored"]["points"] == 100
    assert bare.pop("map") is None
    assert (
        bare.pop("monitor") == whole.pop("monitor") == {"in_use": True, "started": False, "behind": False, "said": None}
    )
    assert sum(cell["points"] for cell in whole.pop("map")["cells"]) == 400
    assert (
        whole.pop("queries").keys() - {"partition_map", "discrepancies", "parts_by_q", "parts_by_d"}
        == bare.pop("queries").keys()
    )
    for name in ("q", "d"):
        assert bare["drift"].pop(name) is None
        assert whole["drift"].pop(name)["statistic"] >= 0
    assert [cell.pop("q") for cell in whole["cells"]] == ["0-3"] * CLASSES
    assert [cell.pop("q") for cell in bare["cells"]] == [None] * CLASSES
    for cell in (*whole["cells"], *bare["cells"]):
        # The rate of random labels depends on the share of them that goes to mc, which differs.
        del cell["labels"]
    whole["drift"]["parts"] = [part for part in whole["drift"]["parts"] if part["kind"] == "score"]
    np.testing.assert_equal(bare, whole)


def test_nothing_is_shown_where_there_is_nothing(logits: Bench, tmp_path: Path) -> None:
    found = report(logits)
    text = text_of(found)
    for title in ("What is stored", "What ranks the predictions", "Predicted classes", "Recent traffic", "Labels"):
        assert title in text
    assert "score network, logits only; " in text
    assert "Quantiles of score. difference" in text
    for words in ("KNN", " q ", "of q", " d ", "of d", "q below", "nan", "discrepanc"):
        assert words not in text
    assert all(table.rows and any(table.columns) for table in tables(found))
    assert not any("q" in table.columns or "d" in table.columns for table in tables(found))
    assert advice_text(found, command) == ["Nothing: no labels wait to be used and recent traffic is like mc."]
    html = write_calibration_report(tmp_path / "report", found, command).read_text(encoding="utf-8")
    assert len(Page(html).all("svg")) == 3
    assert "neighbours and network differ" not in html
    # JSON has no NaN, which would stand for a figure of something that is not there.
    written = json.loads((tmp_path / "report" / "report.json").read_text(), parse_constant=pytest.fail)
    assert (written["discrepancies"], written["calibration"]["parameters_are_current"]) == (None, None)
    assert all(isfinite(value) for value in written["drift"]["score"]["mc"])


def test_where_nothing_was_decided(bench: Bench) -> None:
    prepared(bench)
    found = report(bench)
    assert (found.traffic, told(found)["drift"]) == (None, None)
    assert {(part.kind, part.recent) for part in cells(found).parts} == {("score", 0)}
    assert "Nothing else has been decided yet." in text_of(found)
    assert advice_text(found, command) == ["Nothing: no labels wait to be used."]


def test_without_comparable_points_the_keys_are_the_same(logits: Bench) -> None:
    found = report(logits)
    assert found.traffic is not None
    apart = told(replace(found, traffic=replace(found.traffic, comparison=None)))["drift"]
    assert set(apart) == set(told(found)["drift"])
    assert [apart[name] for name in ("score", "q", "d", "admitted", "unlike_mc")] == [None] * 5


def test_decisions_of_earlier_calibrations_stay_comparable(logits: Bench) -> None:
    logits.ingest(NAME, logits.write("more.npz", exemplars("more", 200, seed=7)), "held-out")
    (due,) = advice(report(logits), command)
    assert due.endswith(f"labelled points arrived, changed or left: `venn-admit recalibrate {NAME}` uses them.")
    calibrated(logits)
    logits.score(NAME, logits.write("later.npz", unlabelled("later", 50, seed=8)), weighted=None)
    traffic = report(logits).traffic
    assert traffic is not None
    assert traffic.comparison is not None
    assert (traffic.decided_by, traffic.comparison.points) == ({1: COUNT, 2: 50}, COUNT + 50)


def test_rows_of_a_large_file_are_sampled_in_all_places(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third row is one of the surest, as the first point of documents may be, and all of those are admitted."""
    prepared(bench)
    rows = unlabelled("new", 3 * COUNT, seed=2)
    surest_first = np.argsort(np.partition(rows["f"], -2)[:, -2] - rows["f"].max(axis=1), kind="stable")
    order = surest_first.reshape(3, -1).T.ravel()
    bench.score(NAME, bench.write("new.npz", {name: of[order] for name, of in rows.items()}), weighted=None)
    everything = report(bench).days[-1]
    share = everything.admitted / everything.decided
    assert share < 0.9
    monkeypatch.setattr(reports, "SAMPLED", COUNT)
    monkeypatch.setattr(reports, "RECENT", COUNT)
    sampled = report(bench)
    day, traffic = sampled.days[-1], sampled.traffic
    assert traffic is not None
    assert (day.decided, traffic.points) == (COUNT, COUNT)
    assert day.admitted / COUNT == pytest.approx(share, abs=0.08)
    admitted = sum(outcome.admitted for outcome in traffic.outcomes)
    assert admitted / COUNT == pytest.approx(share, abs=0.08)


def test_a_shift_is_advised_upon(bench: Bench) -> None:
    prepared(bench)
    rows = unlabelled("new", COUNT, seed=2)
    rows["f"] = rows["f"] * np.float32(0.3)
    bench.score(NAME, bench.write("new.npz", rows), weighted=None)
    (said,) = [line for line in advice(report(bench), command) if "Recent traffic is unlike mc" in line]
    assert "the distributions of score differ by " in said
    assert f"`venn-admit export {NAME} --what unlabelled" in said


def test_advice_names_no_other_score(logits: Bench) -> None:
    found = report(logits)
    nothing = replace(cells(found), states=tuple(replace(state, admitted=0) for state in cells(found).states))
    (said,) = [line for line in advice(replace(found, part=nothing), command) if line.startswith("Everything is")]
    assert said.endswith("A larger alpha, more held-out data or a better network would admit more.")
    lacking = replace(cells(found).states[0], lacking=2, labels=9.0)
    starved = replace(cells(found), states=(lacking, *cells(found).states[1:]))
    *_, budget = sections(replace(found, part=starved), command)
    assert budget.notes[0].endswith("no number of labels helps: a better network does.")


def test_the_certificate_is_shown(bench: Bench) -> None:
    make(bench)
    bench.ingest(NAME, bench.write("held-out.npz", exemplars("held-out", 4000, seed=1)), "held-out")
    calibrated(bench, certify=["predicted"], alpha=Decimal("0.1"))
    found = report(bench)
    titles = [section.title for section in sections(found, command)]
    assert titles.index("Certificate") + 1 == titles.index("Policies tested")
    assert "Certified with confidence 0.95: of what is admitted, at least 0.9 is right in every predicted" in text_of(
        found
    )
    certificate = told(found)["certificate"]
    assert (certificate["certified"], certificate["classes"]) == (True, [f"class {c}" for c in range(CLASSES)])
