"""A classifier with logits only on the command line, from `create` to `replay`, and what is refused with advice."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.cli import samples
from tests.cli.databases import copied, on_database
from tests.cli.program import Program, check_refusal, nothing_stored
from tests.conftest import fresh_database
from tests.files.samples import Columns
from tests.running import ADDED_TO_ABERS

NAME = "bare"
CALIBRATE = ("calibrate", NAME, "--method", "venn-abers", "--promise", "pointwise", "--alpha", "0.2")


def without_vectors(folder: Path, name: str, columns: Columns) -> Path:
    return samples.save(folder, name, {key: values for key, values in columns.items() if key != "vector"})


@pytest.fixture(scope="module")
def bare_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare")
    without_vectors(folder, "held-out.parquet", samples.held_out())
    without_vectors(folder, "scored.npz", samples.scored())
    return folder


@pytest.fixture(scope="module")
def made(server_url: str, template_database: str, session_folder: Path, bare_files: Path) -> Iterator[Program]:
    """The program with the classifier, calibrated; to be left as it is."""
    with fresh_database(server_url, template_database) as url:
        program = on_database(url, session_folder / "bare")
        assert program("create", NAME, "--classes", ",".join(samples.CLASS_NAMES), "--logits-only").code == 0
        assert program("ingest", NAME, bare_files / "held-out.parquet", "--split", "held-out").code == 0
        assert program(*CALIBRATE).code == 0
        yield program


@pytest.fixture
def own(made: Program, server_url: str, tmp_path: Path) -> Iterator[Program]:
    """As `made`, to be changed."""
    with copied(made, server_url, tmp_path) as program:
        yield program


def test_create_says_what_it_made(program: Program) -> None:
    result = program("create", NAME, "--classes", "a,b", "--logits-only", "--json").result
    assert (result["dimension"], result["k"], result["seed"]) == (None, None, 0)
    assert program("create", "other", "--classes", "a,b", "--logits-only").stdout == (
        "Created classifier other: 2 classes, logits only.\n"
    )
    shown = " ".join(program("show", NAME).stdout.split())
    assert f"{NAME}: 2 classes, logits only, seed 0" in shown
    assert "With logits only, there is nothing to fit." in shown
    assert f"run `venn-admit calibrate {NAME} --method venn-abers`" in shown


@pytest.mark.parametrize(
    ("options", "saying"),
    [
        ((), "expected the length of the vectors, or a classifier with logits only, got neither"),
        (("--logits-only", "--dim", 8), "expected no length of vectors of a classifier with logits only, got 8"),
        (("--logits-only", "--k", 5), "expected no number of neighbours of a classifier with logits only, got 5"),
    ],
)
def test_create_takes_one_or_the_other(program: Program, options: tuple[object, ...], saying: str) -> None:
    with nothing_stored(program):
        check_refusal(program("create", NAME, "--classes", "a,b", *options), 2, saying)


def test_the_way_to_decisions(own: Program, bare_files: Path, tmp_path: Path) -> None:
    file, out = bare_files / "scored.npz", tmp_path / "scores.parquet"
    assert own("score", NAME, file, "--out", out).code == 0
    rows = pq.read_table(out).to_pylist()
    assert {(row["q"], row["d"], row["logits"]) for row in rows} == {(None, None, None)}
    assert 0 < sum(row["decision"] is not None for row in rows) < len(rows)
    names = ("predicted", "score", "upweight", "lower", "upper", "decision", "reason", "logits")
    logits = samples.scored()["logits"]
    for number in (0, 7):
        given = ",".join(map(str, logits[number].tolist()))
        for asked in ((file, "--row", number), ("--logits", given)):
            decided = own("decide", NAME, *asked, "--json").result
            assert {name: decided[name] for name in names} == {name: rows[number][name] for name in names}
            assert (decided["match_count"], decided["distance"], decided["neighbours"]) == (None, None, [])
            assert decided["external_id"] == (None if asked[0] == "--logits" else rows[number]["external_id"])
    said = own("decide", NAME, "--logits", "9,0,0").stdout
    assert "logits 9,0,0, calibration 1" in said
    assert "predicted class" in said
    assert not [words for words in ("matching", "distance", "Nearest", "not computed") if words in said]
    replayed = own("replay", "--classifier", NAME, "--id", rows[3]["external_id"], "--json").result
    assert (replayed["differing"], replayed["neighbours"]) == ([], [])
    assert "the same in every field" in own("replay", "--classifier", NAME, "--id", rows[3]["external_id"]).stdout


def test_labels_and_recalibration(own: Program, bare_files: Path, tmp_path: Path) -> None:
    assert own("score", NAME, bare_files / "scored.npz", "--out", tmp_path / "scores.parquet").code == 0
    labels = tmp_path / "labels.csv"
    labels.write_text("external_id,label\n" + "".join(f"scored-{row},green\n" for row in range(50)))
    assert own("label", NAME, labels, "--json").result["recalibrations_due"] == 1
    (served,) = own("recalibrate", NAME, "--json").result["recalibrations"]
    assert (served["calibration"], served["error"]) == (2, None)
    assert served["rows_opened"] > 0


def test_what_is_listed(made: Program) -> None:
    (listed,) = made("list", "--json").result["classifiers"]
    assert (listed["dimension"], listed["k"], listed["exemplars"]["knn"]) == (None, None, 0)
    assert NAME in made("list").stdout
    assert made("jobs", "list", "--json").result["jobs"] == []


def test_calibrate_says_which_score_it_is(own: Program) -> None:
    said = " ".join(own(*CALIBRATE).stdout.split())
    assert "The classifier has logits only, so the score is the network's: there is no other." in said
    result = own(*CALIBRATE, "--json").result
    assert (result["score"], result["chosen_score"], result["network_share"]) == ("network", "network", None)


def test_exports(made: Program, tmp_path: Path) -> None:
    points = tmp_path / "calibration.csv"
    assert made("export", NAME, "--what", "calibration", "--out", points).code == 0
    columns = pd.read_csv(points)
    assert columns[["q", "d", "set"]].isna().all().all()
    assert (set(columns["split"]), columns["score"].between(0, 1).all()) == ({"mc"}, True)
    parameters = tmp_path / "parameters.json"
    assert made("export", NAME, "--what", "parameters", "--out", parameters).code == 0
    assert json.loads(parameters.read_text()).keys() == {"alpha", "thresholds", "q_bins", *ADDED_TO_ABERS}


@pytest.mark.usefixtures("blank_charts")
def test_report(own: Program, bare_files: Path, tmp_path: Path) -> None:
    """Text, JSON and the page say what there is, and leave out what comes of vectors."""
    assert own("score", NAME, bare_files / "scored.npz", "--out", tmp_path / "scores.parquet").code == 0
    result = own("report", NAME, "--json").result
    assert (result["calibration"]["method"], result["calibration"]["score"]) == ("venn-abers", "network")
    assert (result["discrepancies"], result["calibration"]["parameters_are_current"]) == (None, None)
    drift = result["drift"]
    assert (drift["points"], drift["compared"], drift["q"], drift["d"]) == (samples.SCORED_ROWS,) * 2 + (None, None)
    assert drift["score"].keys() == {"mc", "decided", "statistic", "p_value", "at_least", "shifted"}
    assert {part["kind"] for part in drift["parts"]} == {"score"}
    assert {cell["predicted_class"] for cell in result["cells"]} == set(samples.CLASS_NAMES)
    page = tmp_path / "page"
    shown = own("report", NAME, "--out", page)
    assert shown.code == 0
    said = " ".join(shown.stdout.split())
    assert "score network, logits only;" in said
    assert "score, if predicted as" in said
    assert "What to do next" in said
    assert not [words for words in ("KNN", "q below", "d is cut", "nan") if words in said]
    assert "score, if predicted as" in (page / "index.html").read_text(encoding="utf-8")
    assert json.loads((page / "report.json").read_text()) == result


def test_settings_are_compared_and_varied(made: Program) -> None:
    with nothing_stored(made):
        result = made("calibrate", NAME, "--compare", "--alpha", "0.2", "--json").result
        said = " ".join(made("calibrate", NAME, "--compare", "--alpha", "0.2").stdout.split())
    setting, on_average = result["settings"]
    assert (on_average["promise"], on_average["admitted"] > setting["admitted"]) == ("average", True)
    assert (setting["method"], setting["score"], setting["q_bins"]) == ("venn-abers", "network", [0])
    assert setting["admitted"] > 0
    command = f"venn-admit calibrate {NAME} --method venn-abers --alpha 0.2 --score network --promise pointwise"
    assert (setting["command"], result["command"]) == (command, command)
    assert re.search(rf"Venn-Abers with score network, .* right: `{command}`\.", said)
    assert "Left out: Venn-ADMIT: the classifier has logits only, and this needs vectors." in said
    assert not [words for words in ("weighted", "looks better") if words in said]
    with nothing_stored(made):
        tried = made("what-if", NAME, "--alpha", "0.1,0.3", "--json").result["settings"]
        check_refusal(made("what-if", NAME, "--kappa", 100), 2, "kappa: the method venn-abers has no such setting")
    assert [one["alpha"] for one in tried] == ["0.1", "0.2", "0.3"]
    assert tried[1]["in_use"]
    assert tried[1]["admitted"] == setting["admitted"]


@pytest.mark.usefixtures("blank_charts")
def test_evaluation(own: Program, bare_files: Path, tmp_path: Path) -> None:
    """The methods on the network are compared, and what is left out is said: in text, JSON and the page."""
    page = tmp_path / "page"
    shown = own("evaluate", NAME, bare_files / "scored.npz", "--out", page, "--details")
    assert shown.code == 0
    saying = "The classifier has logits only, so what needs its vectors is left out: KNN, Conf_BASE,"
    assert saying in " ".join(shown.stdout.split())
    assert saying in " ".join((page / "index.html").read_text(encoding="utf-8").split())
    result = own("evaluate", NAME, "--json").result
    assert (result["points"], result["own_method"]) == (samples.SCORED_ROWS, "Venn-Abers network")
    assert list(result["methods"]) == [
        "network",
        "RAPS adaptiveness",
        "RAPS size",
        "APS",
        "softmax >= 1 - alpha",
        "SGR",
        "Venn-Abers network",
        "certified",
        "on average",
    ]
    assert (result["partitions"], result["median_d"]) == (None, None)
    assert list(result["accuracy"]) == ["network"]
    assert any(note.startswith(saying) for note in result["notes"])
    assert len(list(page.glob("*.png"))) == 5


def test_it_is_watched(own: Program, bare_files: Path, tmp_path: Path) -> None:
    """Partitions are predicted classes, so that nothing is said of q: in tables, JSON, metrics and views."""
    assert own("score", NAME, bare_files / "scored.npz", "--out", tmp_path / "scores.parquet").code == 0
    labels, metrics = tmp_path / "labels.csv", tmp_path / "venn.prom"
    wrong = (samples.scored()["label"] + 1) % samples.CLASS_COUNT
    lines = [f"scored-{row},{label}" for row, label in enumerate(wrong.tolist())]
    labels.write_text("\n".join(["external_id,label", *lines]) + "\n")
    assert own("label", NAME, labels).code == 0
    told = own("monitor", NAME)
    assert told.code == 7
    said = " ".join(told.stdout.split())
    assert "Inside predicted classes: are predictions wrong more often" in said
    assert re.search(r"ALARM: predictions of '\w+' are wrong more often than on the calibration data\.", said)
    assert not re.search(r"\bq\b|partition", said)
    found = json.loads(own("monitor", NAME, "--json", "--prometheus", metrics).stdout)
    assert (found["documents"], found["points"]) == (samples.SCORED_ROWS, samples.SCORED_ROWS)
    assert {row["lamp"] for row in found["readings"]} == {
        "promise",
        "true_classes",
        "early_promise",
        "early_true_classes",
        "partitions",
        "mix",
    }
    assert [row for row in (*found["readings"], *found["alarms"]) if "q" in row] == []
    assert 'lamp="partitions",class="' in metrics.read_text()
    assert 'q="' not in metrics.read_text()


@pytest.mark.parametrize(
    "verb",
    [
        ("fit", NAME),
        ("calibrate", NAME, "--method", "venn-admit"),
        ("calibrate", NAME, "--method", "venn-abers", "--score", "reliability"),
        ("calibrate", NAME, "--method", "venn-abers", "--q-bins", "0,1"),
        ("score", NAME, "FILE", "--out", "OUT", "--weighted"),
        ("score", NAME, "FILE", "--out", "OUT", "--require-full-match"),
        ("decide", NAME, "FILE", "--weighted"),
        ("decide", NAME, "FILE", "--ef-search", 100),
        ("what-if", NAME, "--q-bins", "0,1"),
        ("index", "show", NAME),
        ("index", "create", NAME),
        ("index", "audit", NAME),
        ("ingest", NAME, "FILE", "--split", "train"),
        ("export", NAME, "--what", "neighbours", "--out", "OUT"),
        ("export", NAME, "--what", "approximations", "--out", "OUT"),
    ],
    ids=lambda verb: " ".join(map(str, verb[:1] + verb[2:])),
)
def test_what_needs_vectors_is_refused_with_what_does_not(
    made: Program, bare_files: Path, tmp_path: Path, verb: tuple[object, ...]
) -> None:
    stands_for = {"FILE": bare_files / "scored.npz", "OUT": tmp_path / "out.parquet"}
    with nothing_stored(made):
        outcome = made(*(stands_for.get(str(part), part) for part in verb))
    saying = (
        f"needs vectors, and classifier '{NAME}' has logits only, .*; `venn-admit calibrate {NAME} --method venn-abers"
    )
    check_refusal(outcome, 2, saying)


def test_a_file_with_vectors_is_refused_with_what_takes_it(made: Program, files: Path) -> None:
    with nothing_stored(made):
        outcome = made("ingest", NAME, files / "held-out.parquet", "--split", "held-out")
    check_refusal(
        outcome,
        2,
        "column 'vector': expected none.*leave the vectors out; `venn-admit create NAME --classes NAMES --dim D`",
    )


@pytest.mark.parametrize(
    ("options", "saying"),
    [
        ((), "expected either a file, and a row of it, or logits"),
        (("FILE", "--logits", "1,2,3"), "expected either a file, and a row of it, or logits"),
        (("--logits", "1,2,3", "--row", 2), "expected either a file, and a row of it, or logits"),
        (("--logits", "1,x,3"), "logits: expected numbers such as 2.5,-1.5, got '1,x,3'"),
        (("--logits", "1,2"), "logits: expected 3 numbers, got 2"),
        (("--logits=-1e60,2,3",), "logits: expected 3 finite numbers that float32 can hold"),
    ],
)
def test_what_is_no_point(made: Program, bare_files: Path, options: tuple[object, ...], saying: str) -> None:
    given = [bare_files / "scored.npz" if part == "FILE" else part for part in options]
    check_refusal(made("decide", NAME, *given), 2, saying)


def test_negative_logits_are_read(made: Program) -> None:
    assert made("decide", NAME, "--logits", "-1.5,-2,4", "--json").result["predicted_class"] == "blue"


def test_logits_alone_are_too_little_for_a_classifier_with_vectors(calibrated: Program) -> None:
    check_refusal(calibrated("decide", samples.NAME, "--logits", "1,2,3"), 2, "expected a vector, which classifier")
