"""What is stored: `list`, `show`, `calibrations`, and `rename` and `retire`, which manage it."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.cli import samples
from tests.cli.databases import CALIBRATION, copied
from tests.cli.program import Program, check_refusal, nothing_stored
from tests.cli.samples import CLASS_NAMES, DIMENSION, HELD_OUT_ROWS, NAME, SCORED_ROWS, TRAIN_ROWS, K
from tests.cli.test_jobs import interrupted
from venn_admit.cli.tables.catalogue_tables import classifiers_table
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.names import check_stored_id
from venn_admit.core.split_names import Split
from venn_admit.flows.data.catalogue import Listed
from venn_admit.store.calibrations.calibrators import Calibrator
from venn_admit.store.decisions.catalogue import Counts
from venn_admit.store.exemplars.classifiers import Classifier, KnnSize

SPLITS = ("train", "knn", "mc", "vp", "scored")
DOCUMENTS = 7


@pytest.fixture(scope="module")
def busy(calibrated: Program, server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The program with two settings, a scored file without labels and a job that nobody computes; to be left so."""
    folder = tmp_path_factory.mktemp("busy")
    with copied(calibrated, server_url, folder) as program:
        assert program("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.1", "--kappa", 5).code == 0
        columns = samples.scored()
        del columns["label"]
        columns["document_id"] = [f"document {row % DOCUMENTS}" for row in range(SCORED_ROWS)]
        path = samples.save(folder, "unlabelled.parquet", columns)
        assert program("score", NAME, path, "--out", folder / "out.parquet").code == 0
        interrupted(program, samples.save(folder, "again.npz", samples.exemplars("again", 5, seed=6)))
        yield program


def is_local(text: str) -> bool:
    """Whether a time of JSON says which offset it has."""
    return datetime.fromisoformat(text).tzinfo is not None


class TestList:
    def test_counts_and_the_calibration_in_use(self, busy: Program) -> None:
        with nothing_stored(busy):
            (listed,) = busy("list", "--json").result["classifiers"]
        assert (listed["classifier"], listed["classes"]) == (NAME, list(CLASS_NAMES))
        assert (listed["dimension"], listed["k"], listed["running_jobs"]) == (DIMENSION, K, 1)
        assert is_local(listed["created_at"])
        exemplars, labelled = listed["exemplars"], listed["labelled"]
        assert (exemplars["train"], exemplars["scored"], labelled["scored"]) == (TRAIN_ROWS, SCORED_ROWS + 5, 5)
        assert sum(exemplars[split] for split in ("knn", "mc", "vp")) == HELD_OUT_ROWS
        assert all(labelled[split] == exemplars[split] for split in ("train", "knn", "mc", "vp"))
        assert (listed["in_use"]["calibration"], listed["in_use"]["alpha"]) == (2, "0.1")

    def test_people_see_a_line_a_classifier(self, busy: Program) -> None:
        told = busy("list").stdout
        (line,) = (line.split() for line in told.splitlines() if NAME in line)
        assert line[:5] == [NAME, str(len(CLASS_NAMES)), str(TRAIN_ROWS), f"{HELD_OUT_ROWS:,}", str(SCORED_ROWS + 5)]
        assert line[6:8] == ["1", "2:"]
        assert "2: venn-admit, alpha 0.1, delta 1, kappa 5" in " ".join(told.split())

    def test_it_fits_into_80_columns(self) -> None:
        now, share = datetime.now(UTC), Decimal("0.1")
        classifier = Classifier(
            1,
            "sentiment-demo",
            ("a", "b"),
            KnnSize(16_000, 25),
            share,
            share,
            0,
            uuid4(),
            1,
            1,
            now,
            None,
            1,
            True,
            1,
            "sentiment-demo@1",
        )
        counts = Counts(dict.fromkeys(Split, 99_999), dict.fromkeys(Split, 99_999), 12)
        in_use = Calibrator(1, make_settings(2, 25, alpha=Decimal("0.025")), True, None, 123_456, now, 9, 9, None, None)
        shown = StringIO()
        Console(file=shown, width=80).print(classifiers_table([Listed(classifier, counts, in_use)]))
        (line,) = (line for line in shown.getvalue().splitlines() if classifier.name in line)
        assert line.split() == ["sentiment-demo", "2", "99,999", "299,997", "99,999", "499,995", "12", "123456:"]

    def test_one_that_is_not_calibrated_and_none(self, program: Program) -> None:
        assert "There is no classifier yet" in program("list").stdout
        assert program("list", "--json").result == {"classifiers": []}
        assert program("create", "[red]b", "--classes", "a,b", "--dim", 2).code == 0
        (listed,) = program("list", "--json").result["classifiers"]
        assert (listed["in_use"], listed["exemplars"]) == (None, dict.fromkeys(SPLITS, 0))
        assert "[red]b" in program("list").stdout


class TestShow:
    def test_everything_at_once(self, busy: Program) -> None:
        with nothing_stored(busy):
            shown = busy("show", NAME, "--json").result
        truth = Counter(samples.train()["label"].tolist())
        assert shown["data"]["train"] == {
            "exemplars": TRAIN_ROWS,
            "labels": [truth[label] for label in range(len(CLASS_NAMES))],
            "shares": [truth[label] / TRAIN_ROWS for label in range(len(CLASS_NAMES))],
            "unlabelled": 0,
            "documents": 0,
        }
        scored = shown["data"]["scored"]
        assert (scored["exemplars"], scored["unlabelled"]) == (SCORED_ROWS + 5, SCORED_ROWS)
        assert (sum(scored["labels"]), scored["documents"]) == (5, DOCUMENTS)
        assert shown["parameters"]["origin"] == "fitted"
        assert shown["parameters"]["eta"] > 0
        assert shown["calibration"] == 2
        assert [(one["setting"], one["is_in_use"], one["q_bins"]) for one in shown["settings"]] == [
            (2, True, list(range(K + 1))),
            (1, False, [0, 1]),
        ]
        assert [job["state"] for job in shown["jobs"]][:2] == ["running", "done"]
        assert [one["external_id"] for one in shown["decisions"]] == [
            f"scored-{SCORED_ROWS - 1 - place}" for place in range(5)
        ]
        assert sum(shown["outcomes"].values()) == SCORED_ROWS
        assert all(is_local(one["created_at"]) for one in shown["decisions"])
        replayed = busy("replay", shown["decisions"][0]["decision_id"], "--json").result
        assert (replayed["external_id"], replayed["calibration"]) == (f"scored-{SCORED_ROWS - 1}", 2)

    def test_accuracy_on_held_out_data_is_that_of_single_points(self, busy: Program, tmp_path: Path) -> None:
        busy("export", NAME, "--what", "calibration", "--out", tmp_path / "points.parquet")
        points = pq.read_table(tmp_path / "points.parquet").to_pylist()
        network = dict(zip(samples.held_out()["external_id"], samples.held_out()["logits"], strict=True))
        by_network = by_knn = 0
        for point in points:
            logits = list(network[point["external_id"]])
            by_network += logits.index(max(logits)) == point["label"]
            by_knn += point["predicted"] == point["label"]
        assert busy("show", NAME, "--json").result["held_out_accuracy"] == {
            "points": len(points),
            "network": by_network / len(points),
            "knn_points": len(points),
            "knn": by_knn / len(points),
        }
        told = " ".join(busy("show", NAME).stdout.split())
        assert (
            f"Right on the {len(points):,} labelled points of mc and vp: the network {by_network / len(points):.1%}, "
            f"the KNN {by_knn / len(points):.1%}." in told
        )

    def test_people_see_the_same(self, busy: Program) -> None:
        shown, told = busy("show", NAME, "--json").result, busy("show", NAME).stdout
        assert f"{NAME}: 3 classes, D = 8, K = 5, seed 0; created 20" in told
        lines = [line.split() for line in told.splitlines()]
        red = [(shown["data"][split]["labels"][0], shown["data"][split]["shares"][0]) for split in SPLITS]
        assert ["red", *(word for count, share in red for word in (str(count), f"({share:.1%})"))] in lines
        assert ["scored", "205", "5", "7"] in lines
        assert "KNN parameters 1, fitted 20" in told
        assert "kept current" in told
        admitted, reason = shown["outcomes"]["admitted"], "set not a singleton"
        assert f"Rows decided last: 200; admitted: {admitted}; rejected: " in told
        assert f"{reason} {shown['outcomes'][reason]}" in told

    def test_what_would_steer_the_terminal_is_escaped(
        self, own_calibrated: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # As earlier versions took it.
        monkeypatch.setattr("venn_admit.files.records.check_new_id", check_stored_id)
        columns = samples.take(samples.scored(), slice(1))
        columns["external_id"] = ["\x1b[31mred"]
        path = samples.save(tmp_path, "escape.parquet", columns)
        assert own_calibrated("score", NAME, path, "--out", tmp_path / "out.parquet").code == 0
        told = own_calibrated("show", NAME).stdout
        assert r"\x1b[31mred" in told
        assert "\x1b" not in told

    def test_steps_that_are_missing_are_named(self, program: Program) -> None:
        assert program("create", "new", "--classes", "a,b", "--dim", 2).code == 0
        told = program("show", "new").stdout
        assert "There are no KNN parameters yet: run `venn-admit fit new`." in told
        assert "There is no calibration yet: run `venn-admit calibrate new`." in told
        shown = program("show", "new", "--json").result
        assert (shown["parameters"], shown["calibration"], shown["jobs"], shown["decisions"]) == (None, None, [], [])
        check_refusal(program("show", "old"), 3, "no classifier is named 'old'; known: new")
        assert program("create", "two words", "--classes", "a,b", "--logits-only").code == 0
        for verb in ("show", "calibrations"):
            told = program(verb, "two words").stdout
            assert "There is no calibration yet: run `venn-admit calibrate 'two words' --method venn-abers`." in told

    def test_a_table_of_many_classes_is_cut(self, program: Program) -> None:
        names = [f"class-{number}" for number in range(60)]
        assert program("create", "many", "--classes", ",".join(names), "--dim", 2).code == 0
        told = program("show", "many").stdout
        assert "class-49 " in told
        assert "class-50 " not in told
        assert "10 more classes are left out here" in told
        assert len(program("show", "many", "--json").result["data"]["vp"]["labels"]) == 60


class TestCalibrations:
    def test_each_with_its_setting(self, own_calibrated: Program) -> None:
        assert own_calibrated("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.1", "--kappa", 5).code == 0
        assert own_calibrated("calibrate", NAME, *CALIBRATION).code == 0
        told = own_calibrated("calibrations", NAME, "--json").result
        assert told["classifier"] == NAME
        assert [(one["setting"], one["alpha"], one["calibration"], one["is_in_use"]) for one in told["settings"]] == [
            (1, "0.2", 3, True),
            (2, "0.1", 2, False),
        ]
        assert [(one["calibration"], one["setting"], one["is_current"]) for one in told["calibrations"]] == [
            (3, 1, True),
            (2, 2, True),
            (1, 1, False),
        ]
        for one in told["calibrations"]:
            assert is_local(one["created_at"])
            assert (one["mc"] > 0, one["vp"] > 0, bool(one["reason"])) == (True, True, True)
        assert own_calibrated("calibrations", NAME, "--limit", 1, "--json").result["calibrations"] == [
            told["calibrations"][0]
        ]
        assert own_calibrated("retire", NAME, 2).code == 0
        shown = own_calibrated("calibrations", NAME).stdout
        lines = [line.split() for line in shown.partition("In use, the newest first")[0].splitlines()]
        states = {line[0]: " ".join(line[-2:]) for line in lines if line and line[0] in ("1", "2", "3")}
        assert states["3"].endswith("in use")
        assert states["2"].endswith("retired")
        assert states["1"].endswith("retired")
        assert [line[3][:2] for line in lines if line[:3] == ["2", "retired", "2"]] == ["20"]  # of a year

    def test_none_yet(self, ingested: Program) -> None:
        assert f"run `venn-admit calibrate {NAME}`" in ingested("calibrations", NAME).stdout
        assert ingested("calibrations", NAME, "--json").result["calibrations"] == []
        check_refusal(ingested("calibrations", "nothing"), 3, "no classifier is named 'nothing'")


class TestRetire:
    def test_it_is_asked_for_no_longer(self, own_calibrated: Program, tmp_path: Path) -> None:
        assert own_calibrated("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.1", "--kappa", 5).code == 0
        retired = own_calibrated("retire", NAME, 1, "--json").result
        assert (retired["setting"], retired["alpha"], retired["is_in_use"]) == (1, "0.2", False)
        assert is_local(retired["retired_at"])
        assert "Retired settings: 1." in own_calibrated("show", NAME).stdout
        more = samples.save(tmp_path, "more.npz", samples.exemplars("more", 100, seed=4))
        told = own_calibrated("ingest", NAME, more, "--split", "held-out", "--json").result
        assert told["recalibrations_due"] == 1
        (done,) = own_calibrated("recalibrate", "--json").result["recalibrations"]
        assert done["alpha"] == "0.1"

    def test_people_are_told_how_to_bring_it_back(self, own_calibrated: Program) -> None:
        assert own_calibrated("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.1", "--kappa", 5).code == 0
        told = own_calibrated("retire", NAME, 1).stdout
        assert f"Setting 1 of {NAME} (venn-admit, alpha 0.2, delta 1, kappa 10) is retired" in told
        assert own_calibrated("calibrate", NAME, *CALIBRATION).code == 0
        settings = own_calibrated("calibrations", NAME, "--json").result["settings"]
        assert [(one["setting"], one["retired_at"]) for one in settings] == [(1, None), (2, None)]

    def test_refusals(self, calibrated: Program) -> None:
        with nothing_stored(calibrated):
            check_refusal(calibrated("retire", NAME, 1), 2, "setting 1 of 'colours' is in use, expected another one")
            check_refusal(calibrated("retire", NAME, 9), 3, "'colours' has no setting 9; known: 1")
            check_refusal(calibrated("retire", "nothing", 1), 3, "no classifier is named 'nothing'")


class TestRename:
    def test_everything_goes_on_under_the_new_name(self, own_calibrated: Program, tmp_path: Path) -> None:
        path = samples.save(tmp_path, "scored.npz", samples.scored())
        out = tmp_path / "out.parquet"
        assert own_calibrated("score", NAME, path, "--out", out).code == 0
        before = out.read_bytes()
        job = interrupted(own_calibrated, samples.save(tmp_path, "again.npz", samples.exemplars("again", 5, seed=6)))
        assert own_calibrated("rename", NAME, "paints", "--json").result == {
            "classifier": "paints",
            "renamed_from": NAME,
        }
        check_refusal(own_calibrated("show", NAME), 3, "no classifier is named 'colours'; known: paints")
        assert own_calibrated("score", "paints", path, "--out", out).code == 0
        assert out.read_bytes() == before
        assert own_calibrated("replay", 1).code == 0
        assert own_calibrated("jobs", "resume", job, "--json").result["classifier"] == "paints"
        assert own_calibrated("rename", "paints", "paints").stdout == "Renamed paints to paints.\n"

    def test_refusals(self, own_ingested: Program) -> None:
        assert own_ingested("create", "other", "--classes", "a,b", "--dim", 2).code == 0
        with nothing_stored(own_ingested):
            check_refusal(own_ingested("rename", NAME, "other"), 2, "a classifier named 'other' exists already")
            check_refusal(own_ingested("rename", "nothing", "new"), 3, "no classifier is named 'nothing'")
            for name in ("", " a", "a" * 101, "a\nb", "a/b", ".."):
                check_refusal(own_ingested("rename", NAME, name), 2, "name: expected 1 to 100 printable characters")
