"""`score`: what it decides, and the file it writes."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.cli import samples
from tests.cli.databases import CALIBRATION
from tests.cli.program import Outcome, Program, check_refusal, nothing_stored
from tests.cli.samples import CLASS_COUNT, CLASS_NAMES, NAME, SCORED_ROWS, K
from tests.files.samples import SUFFIXES, Columns
from tests.running import ADDED_TO_ADMIT, METHODS
from venn_admit.cli.output import messages
from venn_admit.cli.tables.summaries import SHOWN_CLASSES, ScoreSummary
from venn_admit.cli.waiting import Showing
from venn_admit.core.split_names import Split
from venn_admit.files.output.exports import SCORES_SCHEMA
from venn_admit.report.wording import share_text
from venn_admit.store.database.engine import create_engine, transaction
from venn_admit.store.decisions.decisions import DecisionCount

Rows = list[dict[str, Any]]

REASONS = {"band below kappa", "set not a singleton", "probability below threshold", "q below K"}


def score(program: Program, path: Path, *options: object) -> tuple[dict[str, Any], Rows]:
    """Score a file; the result told, and the rows written."""
    out = path.with_name("scores.parquet")
    result = program("score", NAME, path, "--out", out, "--json", *options).result
    table = pq.read_table(out)
    assert table.schema.equals(SCORES_SCHEMA)
    return result, table.to_pylist()


@pytest.fixture
def scored_file(tmp_path: Path) -> Path:
    return samples.save(tmp_path, "scored.npz", samples.scored())


def check_rows(rows: Rows, alpha: float = 0.2) -> None:
    """See that every row is one that the contract allows."""
    for row in rows:
        assert row["predicted"] == int(np.argmax(row["logits"]))
        assert row["predicted"] in row["set"]
        assert row["set"] == sorted(set(row["set"]))
        assert len(row["logits"]) == len(row["band_size"]) == len(row["threshold"]) == CLASS_COUNT
        assert 0 <= row["q"] <= K
        assert row["d"] >= 0
        if len(row["set"]) > 1:
            assert (row["category_size"], row["upweight"], row["lower"], row["upper"]) == (0, None, None, None)
        else:
            assert 0 <= row["lower"] <= row["upper"] <= 1
            assert row["upweight"] >= 1
        if row["decision"] is None:
            assert row["reason"] in REASONS
        else:
            assert row["reason"] is None
            assert row["set"] == [row["decision"]] == [row["predicted"]]
            assert row["lower"] >= 1 - alpha
        assert row["predicted_class"] == CLASS_NAMES[row["predicted"]]
        assert row["decided_class"] == (None if row["decision"] is None else CLASS_NAMES[row["decision"]])


def check_told(result: dict[str, Any], rows: Rows) -> None:
    """See that the counts told are those of the rows."""
    assert result["rows"] == len(rows)
    assert result["admitted"] == dict(Counter(str(row["decision"]) for row in rows if row["reason"] is None))
    assert result["rejected"] == dict(Counter(row["reason"] for row in rows if row["reason"] is not None))
    assert [(of["label"], of["name"]) for of in result["classes"]] == list(enumerate(CLASS_NAMES))
    for of in result["classes"]:
        mine = [row for row in rows if row["predicted"] == of["label"]]
        assert of["predicted"] == len(mine)
        assert of["admitted"] == sum(row["decided_class"] == of["name"] for row in mine)
        assert of["rejected"] == dict(Counter(row["reason"] for row in mine if row["reason"] is not None))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_row_for_each_of_the_files_in_order(own_calibrated: Program, tmp_path: Path, suffix: str) -> None:
    path = samples.save(tmp_path, f"scored{suffix}", samples.scored())
    result, rows = score(own_calibrated, path)
    assert [row["external_id"] for row in rows] == samples.scored()["external_id"].tolist()
    assert {row["calibration"] for row in rows} == {result["calibration"]} == {1}
    assert result["out"] == str(path.with_name("scores.parquet"))
    check_rows(rows)
    check_told(result, rows)
    assert {"band below kappa", "probability below threshold"} <= set(result["rejected"])
    right = [
        row["decision"] == label
        for row, label in zip(rows, samples.scored()["label"], strict=True)
        if not row["reason"]
    ]
    assert len(right) > SCORED_ROWS / 4
    assert np.mean(right) > 0.8


def test_rows_that_come_twice_or_are_stored_already(own_calibrated: Program, tmp_path: Path, scored_file: Path) -> None:
    """An exemplar is scored once, whatever it was stored for; its row is written wherever it stands in the file."""
    _, before = score(own_calibrated, scored_file)
    new, known = samples.exemplars("new", 30, seed=4), samples.scored()
    order = [*range(20), 3, *range(20, 30), 3]
    columns: Columns = {
        name: np.concatenate(
            [
                known[name][[150, 4]],
                values[order],
                samples.train()[name][:3],
                samples.held_out()[name][:3],
                known[name][[4]],
            ]
        )
        for name, values in new.items()
    }
    result, rows = score(own_calibrated, samples.save(tmp_path, "mixed.parquet", columns))
    assert [row["external_id"] for row in rows] == columns["external_id"].tolist()
    check_rows(rows)
    check_told(result, rows)
    splits = own_calibrated("export", NAME, "--what", "exemplars", "--out", tmp_path / "exemplars.parquet")
    assert splits.code == 0
    split_of = {row["external_id"]: row["split"] for row in pq.read_table(tmp_path / "exemplars.parquet").to_pylist()}
    used = Counter(split_of[row["external_id"]] for row in rows)
    del used["scored"]
    assert result["in_use"] == used
    assert rows[0] == before[150]
    assert rows[1] == rows[-1] == before[4]
    assert rows[2 + 3] == rows[2 + 20] == rows[2 + 31]
    assert all(row["d"] == 0 for row in rows if row["external_id"].startswith("train"))


def test_the_same_file_again_gives_the_same_rows(own_calibrated: Program, scored_file: Path) -> None:
    first, rows = score(own_calibrated, scored_file)
    again, rows_again = score(own_calibrated, scored_file)
    assert rows_again == rows
    assert again == first | {"job": again["job"]}
    assert again["job"] != first["job"]


def test_unweighted(own_calibrated: Program, scored_file: Path) -> None:
    _, weighted = score(own_calibrated, scored_file)
    result, plain = score(own_calibrated, scored_file, "--unweighted")
    check_rows(plain)
    check_told(result, plain)
    assert {row["upweight"] for row in plain} == {None, 1.0}
    for heavy, light in zip(weighted, plain, strict=True):
        assert {name: heavy[name] for name in ("set", "band_size", "category_size", "q", "d")} == {
            name: light[name] for name in ("set", "band_size", "category_size", "q", "d")
        }
        assert heavy["lower"] is None or heavy["lower"] <= light["lower"]  # an up-weight never raises it
    assert any(heavy["lower"] != light["lower"] for heavy, light in zip(weighted, plain, strict=True))


def test_require_full_match(own_calibrated: Program, scored_file: Path) -> None:
    _, usual = score(own_calibrated, scored_file)
    result, strict = score(own_calibrated, scored_file, "--require-full-match")
    check_rows(strict)
    check_told(result, strict)
    assert result["rejected"]["q below K"] > 0
    for before, after in zip(usual, strict, strict=True):
        refused_for_q = before["reason"] is None and before["q"] < K
        expected = {"decision": None, "decided_class": None, "reason": "q below K"} if refused_for_q else {}
        assert after == before | expected


def test_an_older_calibration(own_calibrated: Program, scored_file: Path) -> None:
    _, before = score(own_calibrated, scored_file)
    assert own_calibrated("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.3", "--kappa", 5).code == 0
    current, rows = score(own_calibrated, scored_file)
    assert current["calibration"] == 2
    assert rows != before
    older, rows = score(own_calibrated, scored_file, "--calibration", 1)
    assert older["calibration"] == 1
    assert rows == before


def test_score_tells_people(own_calibrated: Program, scored_file: Path) -> None:
    out = scored_file.with_name("scores.parquet")
    outcome = own_calibrated("score", NAME, scored_file, "--out", out)
    assert outcome.code == 0
    assert "warning" not in outcome.stderr
    first, *reasons = outcome.stdout.splitlines()
    assert first.startswith(f"scored.npz: {SCORED_ROWS} rows, ")
    assert first.endswith(f"by calibration 1; decisions are in {out}.")
    assert any(line.startswith("  rejected, band below kappa: ") for line in reasons)
    counts = own_calibrated("score", NAME, scored_file, "--out", out, "--json").result
    for of in counts["classes"]:
        assert f"  admitted, {of['name']}: {of['admitted']} of {of['predicted']} predicted" in reasons
    for reason, rows in counts["rejected"].items():
        assert f"  rejected, {reason}: {rows}" in reasons


def test_rows_in_use_are_scored_with_a_warning(own_calibrated: Program, tmp_path: Path) -> None:
    """Each kind is named with its number, and the rows are written all the same."""
    train, held_out = samples.take(samples.train(), slice(7)), samples.take(samples.held_out(), slice(40))
    columns = {name: np.concatenate([train[name], held_out[name]]) for name in train}
    path = samples.save(tmp_path, "known.npz", columns)
    outcome = own_calibrated("score", NAME, path, "--out", tmp_path / "scores.csv", "--json")
    in_use = outcome.result["in_use"]
    assert in_use["train"] == 7
    assert sum(in_use.values()) == 47
    calibrating = ", ".join(f"{split} {in_use[split]}" for split in ("knn", "mc", "vp") if split in in_use)
    assert (
        "warning: some rows are exemplars that the classifier was made with: training 7 (each is its own nearest"
        in outcome.stderr
    )
    assert f"calibration 40 ({calibrating}; their own labels bear on the result). They are in" in outcome.stderr
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 48


def test_rows_that_were_labelled_since_are_no_rows_in_use(own_calibrated: Program, tmp_path: Path) -> None:
    """Their decisions are those of points that the calibration has not seen; the next one has."""
    columns = samples.take(samples.scored(), slice(8))
    ids, labels = columns["external_id"], columns["label"]
    path = samples.save(tmp_path, "new.npz", columns | {"label": np.full(8, -1)})
    scored = ("score", NAME, path, "--out", tmp_path / "scores.csv", "--json")
    assert own_calibrated(*scored).result["in_use"] == {}
    given = tmp_path / "labels.csv"
    given.write_text("\n".join(["external_id,label", *map("{},{}".format, ids, labels)]) + "\n")
    assert own_calibrated("label", NAME, given).code == 0
    again = own_calibrated(*scored)
    assert (again.result["in_use"], "warning: some rows" in again.stderr) == ({}, False)
    assert own_calibrated("recalibrate", NAME).code == 0
    assert own_calibrated(*scored).result["in_use"] == {"mc": 5, "vp": 1}, "the others joined knn after the fit"


def test_kappa_above_every_band(own_calibrated: Program, scored_file: Path) -> None:
    outcome = own_calibrated("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.2", "--kappa", 1000, "--json")
    least = outcome.result["largest_usable_kappa"]
    assert 1 < least < 1000
    assert outcome.result["vp_in_usable_bands"] == outcome.result["vp_singletons"] == 0
    assert "warning: no band holds 1000 points of every class, so everything will be rejected: " in outcome.stderr
    assert f"--kappa {least} would leave some" in outcome.stderr

    assert "admits none of its calibration points" in own_calibrated("use", NAME, outcome.result["calibration"]).stderr
    result, rows = score(own_calibrated, scored_file)
    assert result["rejected"] == {"band below kappa": SCORED_ROWS}
    assert result["admitted"] == {}
    assert {(row["decision"], row["reason"], len(row["set"])) for row in rows} == {
        (None, "band below kappa", CLASS_COUNT)
    }
    check_rows(rows)

    as_advised = own_calibrated(
        "calibrate", NAME, "--method", "venn-admit", "--alpha", "0.2", "--kappa", least, "--json"
    )
    assert as_advised.result["vp_in_usable_bands"] > 0
    assert "warning" not in as_advised.stderr
    one_more = own_calibrated(
        "calibrate", NAME, "--method", "venn-admit", "--alpha", "0.2", "--kappa", least + 1, "--json"
    )
    assert one_more.result["vp_in_usable_bands"] == 0
    assert f"--kappa {least} would leave some" in one_more.stderr


def test_labels_that_come_with_scored_rows_never_calibrate(own_calibrated: Program, scored_file: Path) -> None:
    score(own_calibrated, scored_file)
    again = own_calibrated("calibrate", NAME, *CALIBRATION, "--json").result
    assert (again["rows_closed"], again["rows_opened"]) == (0, 0)


def test_evaluate(own_calibrated: Program, scored_file: Path) -> None:
    result = own_calibrated("evaluate", NAME, scored_file, "--json").result
    assert (result["name"], result["points"]) == ("scored", SCORED_ROWS)
    calibration = result["calibration"]
    assert calibration.pop("created_at").endswith("+00:00")
    assert min(calibration.pop("mc_count"), calibration.pop("vp_count")) > 500
    assert calibration == {
        "id": 1,
        "method": "venn-admit",
        "alpha": "0.2",
        "thresholds": ["0.8"] * CLASS_COUNT,
        "kappa": 10,
        "delta": 1.0,
        **ADDED_TO_ADMIT,
        "bin_edges": [0, 1],
        "weighted": True,
    }
    told = own_calibrated("evaluate", NAME, scored_file)
    assert told.code == 0
    first = told.stdout[: told.stdout.index("The methods that matter at a glance")]
    assert first.startswith(f"scored: {SCORED_ROWS} labelled points")
    assert re.search(
        r"Calibration 1 by the method venn-admit, made 20\d\d-.* UTC: alpha 0.2, thresholds 0.8, kappa 10, ", first
    )
    assert "predicted as" in first
    assert "Accuracy of every prediction" not in told.stdout
    assert told.stdout.endswith("More tables: add --details; with charts, as a page: add --out FOLDER.\n")
    detailed = own_calibrated("evaluate", NAME, scored_file, "--details").stdout
    for title in (
        "Share right among singletons",
        "What the sets cover",
        "Accuracy of every prediction",
        "Partitions of the KNN by q",
    ):
        assert title in detailed


@pytest.mark.usefixtures("blank_charts")
def test_evaluate_puts_several_sets_side_by_side(own_calibrated: Program, scored_file: Path, tmp_path: Path) -> None:
    shifted = samples.exemplars("shifted", 150, seed=11)
    shifted["vector"] = shifted["vector"] + np.float32(0.5)
    other = samples.save(tmp_path, "shifted.npz", shifted)
    folder = tmp_path / "report"
    both = own_calibrated("evaluate", NAME, scored_file, other, "--json", "--out", folder).result
    alone = [own_calibrated("evaluate", NAME, path, "--json").result for path in (scored_file, other)]
    assert both == {"sets": alone}
    assert json.loads((folder / "evaluation.json").read_text()) == both
    told = own_calibrated("evaluate", NAME, scored_file, other).stdout
    for text in (told[told.index("The sets side by side") :], (folder / "index.html").read_text()):
        for one in alone:
            accuracy, own = one["accuracy"]["network"], one["methods"][one["own_method"]]["all"]
            for share in (accuracy["accuracy"], accuracy["f_half_macro"], own["share_correct"], own["n"] / own["N"]):
                assert share_text(share) in text
    calibration_data = alone[0]["calibration_data"]["accuracy"]["KNN"]
    assert share_text(calibration_data["accuracy"]) in told[told.index("The sets side by side") :]
    check_refusal(own_calibrated("evaluate", NAME, other, other), 2, "expected different files")


@pytest.mark.usefixtures("blank_charts")
def test_evaluate_shows_on_a_terminal_what_it_does(
    own_calibrated: Program, scored_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard error, and never elsewhere: with --json, standard output is one object."""
    assert "Reading the decisions" not in own_calibrated("evaluate", NAME, scored_file).stderr, "it is no terminal"
    steps: list[str] = []
    real = Showing.show

    def show(self: Showing, what: str, total: int | None = None) -> None:
        steps.append(what)
        real(self, what, total)

    monkeypatch.setattr(Showing, "show", show)
    monkeypatch.setattr(messages, "_force_terminal", True)
    monkeypatch.setattr(messages, "is_interactive", True)
    monkeypatch.setenv("TERM", "xterm")
    told = own_calibrated("evaluate", NAME, scored_file, "--out", scored_file.with_name("report"), "--json")
    assert told.result["points"] == SCORED_ROWS
    assert "Drawing the report" in told.stderr, "the last step; an earlier one may end before the terminal is refreshed"
    methods = ["venn-admit", "RAPS adaptiveness", "RAPS size", "APS", "LocalConf_BASE", "LocalConf corrected"]
    methods += [
        "softmax >= 1 - alpha",
        "SGR",
        "Venn-Abers network",
        "Venn-Abers reliability",
        "certified",
        "on average",
    ]
    assert steps == [
        "Storing scored.npz",
        "Reading the decisions",
        *(f"Comparing {method}" for method in methods),
        "Predicting the calibration data",
        "Counting shares and their intervals",
        "Drawing the report",
    ]


@pytest.mark.usefixtures("blank_charts")
def test_the_page_says_which_calibration_was_evaluated(own_calibrated: Program, scored_file: Path) -> None:
    report = scored_file.with_name("report")
    assert own_calibrated("evaluate", NAME, scored_file, "--out", report).code == 0
    html = (report / "index.html").read_text()
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html))
    assert facts.pop("Calibration").startswith("1, made 20")
    assert re.fullmatch(r"\d+ in mc, \d+ in vp", facts.pop("points"))
    assert facts == {
        "Classifier": NAME,
        "method": "venn-admit",
        "alpha": "0.2",
        "thresholds": "0.8",
        "kappa": "10",
        "delta": "1",
        "bins of q": f"0, 1-{K}",
        "verdicts on": "weighted decisions",
    }


def test_replay_of_what_was_scored(own_calibrated: Program, scored_file: Path) -> None:
    _, (first, *_) = score(own_calibrated, scored_file)
    result = own_calibrated("replay", 1, "--json").result
    assert result["differing"] == []
    assert result["class_names"] == list(CLASS_NAMES)
    names = ("external_id", "predicted_class", "decided_class")
    assert [result[name] for name in names] == [first[name] for name in names]
    assert result["label_class"] == CLASS_NAMES[samples.scored()["label"][0]]
    for near in result["neighbours"]:
        assert near["label_class"] == CLASS_NAMES[near["label"]]
    assert result["calibration"] == 1
    assert len(result["neighbours"]) == K
    assert "Computed again from its snapshot" in own_calibrated("replay", 1).stdout
    assert json.dumps(result["stored"]) == json.dumps(result["computed"])


def test_evaluate_refuses_a_file_without_labels_before_it_stores_anything(calibrated: Program, tmp_path: Path) -> None:
    columns = samples.scored()
    path = samples.save(tmp_path, "unlabelled.npz", {**columns, "label": np.full(SCORED_ROWS, -1)})
    with nothing_stored(calibrated):
        check_refusal(calibrated("evaluate", NAME, path), 2, "expected labelled rows")


def test_evaluate_refuses_a_place_for_its_report_before_it_stores_anything(calibrated: Program, tmp_path: Path) -> None:
    path = samples.save(tmp_path, "labelled.npz", samples.scored())
    with nothing_stored(calibrated):
        check_refusal(calibrated("evaluate", NAME, path, "--out", path), 2, "expected a folder for the report")


@pytest.mark.usefixtures("blank_charts")
def test_evaluate_compares_the_methods(own_calibrated: Program, tmp_path: Path) -> None:
    path = samples.save(tmp_path, "labelled.npz", samples.scored())
    result = own_calibrated("evaluate", NAME, path, "--json", "--out", tmp_path / "report").result
    assert result["points"] == SCORED_ROWS
    assert result["class_names"] == list(CLASS_NAMES)
    assert list(result["methods"]) == METHODS
    admitted = [result["methods"][name]["all"]["n"] for name in ("KNN", "ADMIT", "Venn-ADMIT weighted")]
    assert admitted == sorted(admitted, reverse=True)
    assert admitted[0] == SCORED_ROWS
    report = tmp_path / "report"
    assert (report / "index.html").exists()
    assert json.loads((report / "evaluation.json").read_text()) == result
    assert len(list(report.glob("*.png"))) == 6


def test_evaluate_of_what_a_calibration_has_decided_on(own_calibrated: Program, scored_file: Path) -> None:
    with nothing_stored(own_calibrated):
        check_refusal(own_calibrated("evaluate", NAME), 2, "calibration 1 of 'colours' has decided on no labelled")
    score(own_calibrated, scored_file, "--unweighted", "--require-full-match")
    of_decisions = own_calibrated("evaluate", NAME, "--json").result
    assert of_decisions["name"] == "calibration 1"
    of_file = own_calibrated("evaluate", NAME, scored_file, "--json").result
    note = of_decisions["notes"][0]
    assert note.startswith("200 of the labels were selected or given in a review.")
    own = {"name": "calibration 1", "chosen": 200, "notes": [note, *of_file["notes"]]}
    assert (of_decisions, of_file["chosen"]) == (of_file | own, 0)
    assert own_calibrated("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.3", "--kappa", 5).code == 0
    with nothing_stored(own_calibrated):
        check_refusal(own_calibrated("evaluate", NAME), 2, "calibration 2 of 'colours' has decided on no labelled")
    assert own_calibrated("evaluate", NAME, "--calibration", 1, "--json").result == of_decisions


def test_evaluate_refuses_what_the_calibration_was_made_with(calibrated: Program, tmp_path: Path) -> None:
    path = samples.save(tmp_path, "held-out.npz", samples.held_out())
    with nothing_stored(calibrated):
        check_refusal(calibrated("evaluate", NAME, path), 2, "all 1,500 labelled rows are training or calibration data")


def test_last_digits_are_said_to_differ_and_more_than_these_is_an_error(scored: Program) -> None:
    engine = create_engine(scored.url)

    def replayed(change: float) -> Outcome:
        with transaction(engine) as connection:
            connection.exec_driver_sql(f"UPDATE decision SET distance = distance * (1 + {change}) WHERE id = 1")
        return scored("replay", 1)

    assert "the same in every field, but for the last digits of: distance." in replayed(1e-12).stdout
    assert scored("replay", 1, "--json").result["is_rounding"] is True
    refused = replayed(1e-6)
    assert (refused.code, refused.stderr) == (1, "error: decision 1 differs from what is stored in: distance\n")
    engine.dispose()


def test_an_id_that_looks_like_markup_can_be_replayed(own_calibrated: Program, tmp_path: Path) -> None:
    columns = samples.take(samples.scored(), slice(1))
    score(own_calibrated, samples.save(tmp_path, "odd.npz", {**columns, "external_id": np.array(["[/bold]"])}))
    outcome = own_calibrated("replay", 1)
    assert outcome.code == 0, outcome
    assert "[/bold]" in outcome.stdout


def test_the_classes_that_were_predicted_most_often_have_lines() -> None:
    counts = [DecisionCount(Split.SCORED, number, number, None, 1000 - number) for number in range(1000)]
    *lines, last = ScoreSummary([f"class {number}" for number in range(1000)], counts).lines()
    assert lines == [f"  admitted, class {n}: {1000 - n:,} of {1000 - n:,} predicted" for n in range(SHOWN_CLASSES)]
    assert last == "  980 classes that were predicted less often: --json shows all"
