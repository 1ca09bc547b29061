"""`label`: labels that come for what was scored, and what the next calibration makes of them."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tests.cli import samples
from tests.cli.databases import CALIBRATION
from tests.cli.program import Program, check_refusal, nothing_stored
from tests.cli.samples import NAME


def labels(folder: Path, rows: range, *, shift: int = 0, empty: bool = False) -> Path:
    """Write labels of the scored rows, moved on by `shift` classes or left empty."""
    truth = (samples.scored()["label"] + shift) % samples.CLASS_COUNT
    lines = [f"scored-{row},{'' if empty else truth[row]}" for row in rows]
    path = folder / "labels.csv"
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    return path


def test_labels_are_taken_up_by_the_next_calibration(scored: Program, tmp_path: Path) -> None:
    before = scored("calibrate", NAME, *CALIBRATION, "--json").result
    told = scored("label", NAME, labels(tmp_path, range(100)), "--json").result
    counts = ("rows", "new", "corrected", "retracted", "put_to_use", "unchanged", "left")
    assert {key: told[key] for key in counts} == {
        "rows": 100,
        "new": 100,
        "corrected": 0,
        "retracted": 0,
        "put_to_use": 0,
        "unchanged": 0,
        "left": 0,
    }
    assert sum(told["joined"].values()) == 100
    after = scored("calibrate", NAME, *CALIBRATION, "--json").result
    assert (after["mc"], after["vp"]) == tuple(before[split] + told["joined"][split] for split in ("mc", "vp"))
    # Labelled now, they can evaluate the calibration before, also those that join knn, which was fitted without them.
    evaluated = scored("evaluate", NAME, "--calibration", 1, "--json").result
    assert (evaluated["points"], evaluated["left_out"]) == (100, 0)
    with nothing_stored(scored):
        check_refusal(scored("evaluate", NAME), 2, "has decided on no labelled exemplar")


def test_label_tells_people(scored: Program, tmp_path: Path) -> None:
    first = scored("label", NAME, labels(tmp_path, range(50)))
    assert first.code == 0
    assert "labels.csv: 50 labels, 50 new, 0 corrected, 0 retracted, 0 unchanged." in first.stdout
    assert "Exemplars that now calibrate: 50 (knn " in first.stdout
    assert f"A recalibration is due: run `venn-admit recalibrate {NAME}`, or leave it to beat." in first.stdout
    corrected = scored("label", NAME, labels(tmp_path, range(40), shift=1)).stdout
    assert "0 new, 40 corrected" in corrected
    back = scored("label", NAME, labels(tmp_path, range(30), empty=True), "--retract").stdout
    assert "30 retracted" in back
    assert "Exemplars no longer in use: 30." in back
    selected = scored("label", NAME, labels(tmp_path, range(30)), "--selection", "selected").stdout
    assert "30 new" in selected
    assert "Labels kept for evaluation alone, because selected exemplars never calibrate: 30." in selected
    assert "that now" not in selected
    assert "recalibrat" not in selected
    with nothing_stored(scored):
        again = scored("label", NAME, labels(tmp_path, range(30)), "--selection", "selected").stdout
    assert "30 unchanged" in again


def test_class_names_and_other_columns_are_taken(scored: Program, tmp_path: Path) -> None:
    truth = samples.scored()["label"]
    path = tmp_path / "named.csv"
    lines = [f"{samples.CLASS_NAMES[truth[row]]},somebody,{row},scored-{row}" for row in range(5)]
    path.write_text("\n".join(["label,who,,external_id", *lines]) + "\n")
    told = scored("label", NAME, path)
    assert "5 new" in told.stdout
    assert "warning: named.csv: these columns are ignored: who, a column without a name." in told.stderr
    with nothing_stored(scored):
        assert "5 unchanged" in scored("label", NAME, labels(tmp_path, range(5))).stdout


def test_what_is_refused_records_nothing(scored: Program, tmp_path: Path) -> None:
    path = labels(tmp_path, range(10))
    text = path.read_text()
    for line, code, saying in (
        ("nobody,1", 3, "row 10, external_id: .* has no exemplar 'nobody'; ingest or score it first"),
        ("scored-20,3", 2, "row 10, label: expected a class number 0..2 or a class name .*, got '3'"),
        (
            "scored-20,",
            2,
            "row 10, label: expected a label, .*; .*`venn-admit label NAME labels.csv --retract` retracts them$",
        ),
        ("scored-3,1", 2, "rows 3 and 10, external_id: expected every id once"),
        ("train-0,", 2, "expected a label, got nothing"),
    ):
        path.write_text(f"{text}{line}\n")
        with nothing_stored(scored):
            check_refusal(scored("label", NAME, path), code, saying)
    path.write_text(text)
    with nothing_stored(scored):
        check_refusal(scored("label", NAME, path, "--join-train"), 2, "row 0, id 'scored-0': expected a selected label")
        check_refusal(scored("label", "nothing", path), 3, "no classifier is named 'nothing'")


def test_selected_exemplars_join_the_training_data(scored: Program, tmp_path: Path) -> None:
    told = scored("label", NAME, labels(tmp_path, range(20)), "--selection", "selected", "--join-train")
    assert "Exemplars that now train the KNN: 20." in told.stdout
    assert scored("recalibrate", NAME).code == 0
    relabelled = tmp_path / "relabelled.csv"
    relabelled.write_text(f"external_id,label\ntrain-0,{(samples.train()['label'][0] + 1) % 3}\ntrain-1,\n")
    result = scored("label", NAME, relabelled, "--retract", "--json").result
    assert {key: result[key] for key in ("corrected", "retracted", "left", "recalibrations_due")} == {
        "corrected": 1,
        "retracted": 1,
        "left": 1,
        "recalibrations_due": 1,
    }


def test_known_labels_that_are_put_to_use(own_calibrated: Program, tmp_path: Path) -> None:
    """Labels that came with the rows to be scored calibrate once they are said to be of a random sample."""
    path = samples.save(tmp_path, "scored.npz", samples.scored())
    assert own_calibrated("score", NAME, path, "--out", tmp_path / "scores.parquet").code == 0
    told = own_calibrated("label", NAME, labels(tmp_path, range(60)))
    assert "labels.csv: 60 labels, 0 new, 0 corrected, 0 retracted, 0 unchanged, 60 stored before and used now" in (
        told.stdout
    )
    assert "Exemplars that now calibrate: 60 (knn " in told.stdout
    more = own_calibrated("label", NAME, labels(tmp_path, range(80)), "--json").result
    assert (more["put_to_use"], more["unchanged"], sum(more["joined"].values())) == (20, 60, 20)


def test_selected_labels_of_exemplars_that_calibrate(scored: Program, tmp_path: Path) -> None:
    """They go on calibrating, which is said along with the way out; that way leads there."""
    assert scored("label", NAME, labels(tmp_path, range(40))).code == 0
    again = labels(tmp_path, range(50))
    told = scored("label", NAME, again, "--selection", "selected")
    assert "labels.csv: 50 labels, 10 new, 0 corrected, 0 retracted, 40 unchanged." in told.stdout
    assert "still calibrate, because they were drawn at random earlier: 40. To take them out, run" in told.stdout
    assert scored("label", NAME, labels(tmp_path, range(50), empty=True), "--retract").code == 0
    result = scored("label", NAME, labels(tmp_path, range(50)), "--selection", "selected", "--json").result
    assert (result["new"], result["kept_for_evaluation"], result["selected_and_calibrating"]) == (50, 50, 0)
    assert result["joined"] == {}


def test_an_id_and_a_class_may_be_any_text(scored: Program, tmp_path: Path) -> None:
    """Stars, of which the text of each but one is the number of another class, and names with an equals sign."""
    path, ids = tmp_path / "rows.npz", ["s1", "s2", "s=3", "s4", "s5"]
    np.savez(path, f=np.eye(5, dtype=np.float32) * 4, id=np.array(ids), y=np.arange(5))
    scored("create", "stars", "--classes", "1,2,3,4,a=b", "--logits-only")
    assert scored("ingest", "stars", path, "--split", "held-out").code == 0
    assert scored("review", "label", "stars", "s1=2", "s=3=a=b", "s4=1", "--reviewer", "anna").code == 0
    out = tmp_path / "exemplars.parquet"
    assert scored("export", "stars", "--what", "exemplars", "--out", out).code == 0
    given = {row["external_id"]: row["label"] for row in pq.read_table(out).to_pylist()}
    assert (given["s1"], given["s=3"], given["s4"]) == (1, 4, 0)
    check_refusal(scored("review", "label", "stars", "s1", "--reviewer", "anna"), 2, "expected an id and a class")
