"""`venn-admit what-if`: what it says, what it refuses, and that it stores nothing."""

import json
from pathlib import Path

import pytest

from tests.cli.program import Program, check_refusal, nothing_stored
from tests.cli.samples import CLASS_NAMES, NAME, SCORED_ROWS


@pytest.fixture
def scored(own_calibrated: Program, files: Path, tmp_path: Path) -> Program:
    """With decisions by the calibration in use."""
    assert own_calibrated("score", NAME, files / "scored.npz", "--out", tmp_path / "scores.parquet").code == 0
    return own_calibrated


def most_listed(program: Program) -> tuple[str, str]:
    """A training exemplar near a scored point, and its class."""
    near = program("replay", "--classifier", NAME, "--id", "scored-0", "--json").result["neighbours"][0]
    return near["external_id"], near["label_class"]


class TestTraining:
    def test_as_json(self, scored: Program) -> None:
        external_id, label = most_listed(scored)
        other = next(name for name in CLASS_NAMES if name != label)
        with nothing_stored(scored):
            found = scored("what-if", NAME, "--relabel", f"{external_id}={other}", "--json").result
        assert (found["classifier"], found["calibration"], found["method"]) == (NAME, 1, "venn-admit")
        assert found["parameters"] == "as fitted"
        assert found["training"] == [{"external_id": external_id, "label": label, "left_out": False, "becomes": other}]
        decided = found["points"]["decided"]
        assert (decided["points"], decided["d"]) == (SCORED_ROWS, 0), "a new label leaves distances as they are"
        assert 0 < decided["touched"] < SCORED_ROWS
        assert set(found["points"]) == {"mc", "vp", "decided"}
        assert set(found["snapshot"]["before"]) == {"s_hat", "omega", "usable", "singletons"}
        assert found["decisions"]["points"] == SCORED_ROWS
        assert [row["class"] for row in found["decisions"]["per_class"]] == list(CLASS_NAMES)
        assert len(found["decisions"]["listed"]) == found["decisions"]["flipped"]

    def test_in_words(self, scored: Program) -> None:
        external_id, label = most_listed(scored)
        with nothing_stored(scored):
            shown = scored("what-if", NAME, "--leave-out", external_id, "--leave-out", "train-1", "--limit", 3).stdout
        for expected in (
            f"{external_id}, labelled {label}, left out.",
            "stay as they are fitted. Nothing is stored.",
            "radius of the bands",
            f"of {SCORED_ROWS} (",
            *CLASS_NAMES,
        ):
            assert expected in shown

    def test_before_any_decision(self, calibrated: Program) -> None:
        shown = calibrated("what-if", NAME, "--leave-out", "train-1").stdout
        assert "Calibration 1 has decided on nothing yet." in shown

    def test_by_venn_abers(self, own_calibrated: Program, files: Path, tmp_path: Path) -> None:
        assert (
            own_calibrated(
                "calibrate", NAME, "--method", "venn-abers", "--promise", "pointwise", "--score", "reliability"
            ).code
            == 0
        )
        assert own_calibrated("score", NAME, files / "scored.npz", "--out", tmp_path / "scores.parquet").code == 0
        with nothing_stored(own_calibrated):
            found = own_calibrated("what-if", NAME, "--leave-out", "train-1", "--leave-out", "train-2", "--json").result
        assert set(found["points"]) == {"mc", "decided"}
        assert found["snapshot"]["before"]["score"] == "reliability"
        assert found["snapshot"]["changed"]["scores"]["changed"] > 0

    @pytest.mark.parametrize(
        ("arguments", "code", "saying"),
        [
            ((), 2, "expected one question: .* got none"),
            (("--leave-out", "train-1", "--alpha", "0.2"), 2, "expected one question: .* got several"),
            (("--kappa", "30", "--alpha", "0.2"), 2, "expected one question: .* got several"),
            (("--leave-out", "train-1", "--out", "folder"), 2, "--out: expected values of a part"),
            (("--class-shares", "1,0,0", "--out", "folder"), 2, "--out: expected values of a part"),
            (("--class-shares", "1,0,0", "--alpha", "0.2"), 2, "expected one question: .* got several"),
            (("--class-shares", "1,0,x"), 2, "class_shares: expected a decimal number"),
            (("--class-shares", "1,0,0"), 2, "calibration 1 has no certified policy that this could be asked of"),
            (("--leave-out", "nobody"), 3, "has no exemplar 'nobody'"),
            (("--leave-out", "held-out-1"), 2, "'held-out-1' is in split .*, expected a training exemplar"),
            (("--relabel", "train-1"), 2, "expected ID=CLASS, got 'train-1'"),
            (("--relabel", "train-1=violet"), 2, "relabel 'train-1': expected a class number .*, got 'violet'"),
            (("--relabel", "train-1=red", "--relabel", "train-1=blue"), 2, "'train-1' twice"),
            (("--relabel", "train-1=red", "--leave-out", "train-1"), 2, "'train-1' more than once"),
        ],
    )
    def test_refused(self, calibrated: Program, arguments: tuple[str, ...], code: int, saying: str) -> None:
        check_refusal(calibrated("what-if", NAME, *arguments), code, saying)

    def test_refused_while_a_recalibration_is_due(self, own_calibrated: Program, tmp_path: Path) -> None:
        (tmp_path / "labels.csv").write_text("external_id,label\ntrain-1,red\ntrain-2,green\ntrain-3,blue\n")
        assert own_calibrated("label", NAME, tmp_path / "labels.csv").code == 0
        check_refusal(
            own_calibrated("what-if", NAME, "--leave-out", "train-5"), 4, f"run `venn-admit recalibrate {NAME}`"
        )
        assert own_calibrated("recalibrate", NAME).code == 0
        assert own_calibrated("what-if", NAME, "--leave-out", "train-5").code == 0

    def test_refused_before_the_first_calibration(self, ingested: Program) -> None:
        check_refusal(ingested("what-if", NAME, "--leave-out", "train-5"), 4, "has no calibration yet")


class TestSettings:
    def test_as_json(self, calibrated: Program) -> None:
        with nothing_stored(calibrated):
            found = calibrated("what-if", NAME, "--kappa", "5,20", "--json").result
        assert (found["classifier"], found["calibration"], found["varied"]) == (NAME, 1, "kappa")
        assert [(one["kappa"], one["in_use"]) for one in found["settings"]] == [(5, False), (10, True), (20, False)]
        assert {one["alpha"] for one in found["settings"]} == {"0.2"}
        for one in found["settings"]:
            assert one["admitted_share"] == one["admitted"] / found["mc"]
            for kind in ("per_true_class", "per_predicted_class"):
                assert [row["name"] for row in one[kind]] == list(CLASS_NAMES)
                assert sum(row["admitted"] for row in one[kind]) == one["admitted"]

    @pytest.mark.parametrize(
        ("options", "rows"),
        [
            (("--alpha", "0.1, 0.3"), ("0.1", "0.2 (in use)", "0.3")),
            (("--delta", "2,inf"), ("1 (in use)", "2", "inf")),
            (("--q-bins", "0", "--q-bins", "0,1,3"), ("one bin", "0,1,3", "0,1 (in use)")),
            (("--thresholds", "0.8,0.9"), ("0.8 (in use)", "0.9")),
        ],
    )
    def test_as_a_table(self, calibrated: Program, options: tuple[str, ...], rows: tuple[str, ...]) -> None:
        shown = calibrated("what-if", NAME, *options).stdout
        for expected in (*rows, *CLASS_NAMES, "admitted", "Nothing of vp was read"):
            assert expected in shown

    def test_a_picture(self, calibrated: Program, tmp_path: Path) -> None:
        shown = calibrated("what-if", NAME, "--alpha", "0.1,0.3", "--out", tmp_path / "folder").stdout
        assert f"The picture is in {tmp_path / 'folder' / 'what-if.png'}." in " ".join(shown.split())
        assert (tmp_path / "folder" / "what-if.png").read_bytes().startswith(b"\x89PNG")
        stored = json.loads((tmp_path / "folder" / "what-if.json").read_text())
        assert stored == calibrated("what-if", NAME, "--alpha", "0.1,0.3", "--json").result

    @pytest.mark.parametrize(
        ("arguments", "saying"),
        [
            (("--kappa", "many"), "--kappa: expected numbers such as 100,1000, got 'many'"),
            (("--alpha", "0.1,x"), "alpha: expected a decimal number"),
            (("--q-bins", "1,2"), "the bins of q must be given by ascending lower edges"),
            (("--thresholds", "0.1"), "must be at least 1 - alpha"),
        ],
    )
    def test_refused(self, calibrated: Program, arguments: tuple[str, ...], saying: str) -> None:
        check_refusal(calibrated("what-if", NAME, *arguments), 2, saying)
