"""A classifier with logits only in Python: data in any form, the decisions of many and of one, and what is refused."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import venn_admit
from tests.cli import samples
from tests.package.conftest import filled
from tests.running import ADDED_TO_ABERS

NAME = "bare"


def bare(columns: dict[str, Any]) -> dict[str, Any]:
    return {"logits": columns["logits"], "ids": columns["external_id"]}


def make_calibrated(connection: venn_admit.Connection) -> None:
    created = connection.create(NAME, samples.CLASS_NAMES, logits_only=True)
    held_out = samples.held_out()
    created.ingest(**bare(held_out), labels=held_out["label"])
    created.calibrate(method="venn-abers", promise="pointwise", alpha="0.2")


@pytest.fixture(scope="module")
def template(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with filled(server_url, template_database, tmp_path_factory.mktemp("home"), make_calibrated) as name:
        yield name


@pytest.fixture
def calibrated(opened: venn_admit.Connection) -> venn_admit.Classifier:
    return opened.classifier(NAME)


def test_what_it_is(opened: venn_admit.Connection, calibrated: venn_admit.Classifier) -> None:
    assert (calibrated.dimension, repr(calibrated)) == (None, "<Classifier 'bare': 3 classes, logits only>")
    created = opened.create("new", ("a", "b"), logits_only=True)
    assert (created.dimension, repr(created)) == (None, "<Classifier 'new': 2 classes, logits only>")
    with pytest.raises(venn_admit.InvalidInputError, match="expected the length of the vectors, or a classifier with"):
        opened.create("other", ("a", "b"))
    with pytest.raises(venn_admit.InvalidInputError, match="expected no length of vectors"):
        opened.create("other", ("a", "b"), dimension=4, logits_only=True)


FORMS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "table": lambda columns: {"data": _table(columns)},
    "reader": lambda columns: {"data": _table(columns).to_reader(max_chunksize=100)},
    "pandas": lambda columns: {
        "data": pd.DataFrame(
            {
                "external_id": columns["external_id"],
                "logits": list(columns["logits"]),
                "label": columns["label"],
            }
        )
    },
    "tensors": lambda columns: {
        "logits": torch.from_numpy(columns["logits"]).requires_grad_(),
        "labels": torch.from_numpy(columns["label"]),
        "ids": columns["external_id"],
    },
}


def _table(columns: dict[str, Any]) -> pa.Table:
    return pa.table(
        {
            "external_id": columns["external_id"].tolist(),
            "logits": pa.array(list(columns["logits"]), pa.list_(pa.float32())),
            "label": columns["label"],
        }
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_same_data_in_any_form(calibrated: venn_admit.Classifier, form: str) -> None:
    done = calibrated.ingest(**FORMS[form](samples.held_out()))
    assert (done.rows, done.new) == (samples.HELD_OUT_ROWS, 0)


def test_it_is_calibrated_and_decides(calibrated: venn_admit.Classifier) -> None:
    made = calibrated.calibrate(method="venn-abers", promise="pointwise", alpha="0.2")
    assert (made.score, made.q_bins, made.vp_points) == ("network", (0,), 0)
    columns = samples.scored()
    decisions = calibrated.score(**bare(columns)).to_pylist()
    assert 0 < sum(row["decided_class"] is not None for row in decisions) < samples.SCORED_ROWS
    for row, logits in zip(decisions, columns["logits"], strict=True):
        one = calibrated.decide(logits=logits)
        assert (one.admitted, one.predicted, one.reason, one.lower, one.upper) == tuple(
            row[name] for name in ("decided_class", "predicted_class", "reason", "lower", "upper")
        )
        assert (one.match_count, one.distance, one.neighbours) == (None, None, ())
        assert (one.evidence["score"], one.calibration) == (row["score"], row["calibration"])


def test_labels_arrive(calibrated: venn_admit.Classifier) -> None:
    columns = samples.scored()
    calibrated.score(**bare(columns))
    labelled = calibrated.label(dict(zip(columns["external_id"], columns["label"].tolist(), strict=True)))
    assert labelled.calibrating.keys() == {"mc", "vp"}
    assert calibrated.recalibrate() == [2]
    watched = calibrated.monitor()
    assert (watched.alarm, watched.to_dict()["documents"]) == (False, samples.SCORED_ROWS)
    assert "Inside predicted classes" in str(watched)


@pytest.mark.usefixtures("blank_charts")
def test_it_is_reported_on(calibrated: venn_admit.Classifier, tmp_path: Path) -> None:
    calibrated.score(**bare(samples.scored()))
    found = calibrated.report()
    assert "score, if predicted as" in str(found)
    assert "KNN" not in str(found)
    told = found.to_dict()
    assert told["drift"]["compared"] == samples.SCORED_ROWS
    assert (told["drift"]["q"], told["drift"]["d"], told["discrepancies"]) == (None, None, None)
    assert "score, if predicted as" in found.write(tmp_path / "page").read_text(encoding="utf-8")


def test_settings_are_compared_and_varied(calibrated: venn_admit.Classifier) -> None:
    compared = calibrated.compare(alpha="0.2")
    outcome, on_average = compared.outcomes
    assert on_average.settings["promise"] == "average"
    asked = {"method": "venn-abers", "alpha": "0.2", "q_bins": (0,), "score": "network", "promise": "pointwise"}
    assert outcome.settings == ADDED_TO_ABERS | asked
    assert compared.proposal == outcome
    assert compared.left_out["Venn-ADMIT"] == "the classifier has logits only, and this needs vectors"
    assert calibrated.calibrate(**outcome.settings).score == "network"
    stricter, used = calibrated.what_if_settings(alpha=["0.1"]).outcomes
    assert stricter.admitted_share < used.admitted_share == outcome.admitted_share


@pytest.mark.usefixtures("blank_charts")
def test_it_is_evaluated(calibrated: venn_admit.Classifier, tmp_path: Path) -> None:
    columns = samples.scored()
    found = calibrated.evaluate(**bare(columns), labels=columns["label"])
    assert "The classifier has logits only, so what needs its vectors is left out" in " ".join(str(found).split())
    assert "Venn-Abers network" in found.to_dict()["methods"]
    assert found.write(tmp_path / "page").exists()


def test_what_needs_vectors_is_refused_with_the_call_that_does_not(calibrated: venn_admit.Classifier) -> None:
    logits = np.zeros((1, 3), dtype=np.float32)
    vectors = np.zeros((1, 8), dtype=np.float32)
    calls: list[Callable[[], object]] = [
        calibrated.fit,
        lambda: calibrated.calibrate(method="venn-admit"),
        lambda: calibrated.calibrate(method="venn-abers", score="reliability"),
        lambda: calibrated.score(logits=logits, weighted=True),
        lambda: calibrated.decide(logits=logits[0], require_full_match=True),
        lambda: calibrated.export("neighbours", "neighbours.parquet"),
    ]
    for call in calls:
        with pytest.raises(venn_admit.InvalidInputError, match="needs vectors, and classifier 'bare' has") as refused:
            call()
        assert refused.value.__notes__ == ['`classifier.calibrate(method="venn-abers")` needs none']
    for call in (
        lambda: calibrated.ingest(logits=logits, vectors=vectors, labels=[0]),
        lambda: calibrated.decide(vectors[0], logits=logits[0]),
        lambda: calibrated.decide(np.zeros(3), logits=logits[0]),
    ):
        with pytest.raises(venn_admit.InvalidInputError, match=r"leave (it|the vectors) out") as refused:
            call()
        assert refused.value.__notes__ == ["`connection.create(..., dimension=D)` makes a classifier that takes them"]


@pytest.mark.processes
def test_no_torch_is_imported_from_data_to_decisions(database: str, tmp_path: Path) -> None:
    program = f"""
import sys
import numpy as np
import venn_admit

label = np.arange(60) % 2
logits = 2 * np.eye(2, dtype=np.float32)[label]
with venn_admit.connect(sys.argv[1], home=sys.argv[2]) as connection:
    classifier = connection.create({NAME!r}, ["a", "b"], logits_only=True)
    classifier.ingest(logits=logits, labels=label)
    classifier.calibrate(method="venn-abers", promise="pointwise", alpha="0.2")
    print(classifier.score(logits=logits).num_rows, "torch" in sys.modules)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program, database, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "60 False\n"
