"""`calibrate` without --kappa: it stops if nearly nothing could be admitted, and shows what other settings leave."""

import json
import re

import pytest

from tests.cli.program import Program, contents
from tests.cli.samples import CLASS_NAMES, NAME, K
from venn_admit.core.calibrators.settings import make_settings

NOT_READY = 4


def check_no_calibration_since(program: Program, before: dict[str, str]) -> None:
    """The job that brings approximations up to date is stored, and of a calibration nothing."""
    after = contents(program.url)
    assert {table for table in after if after[table] != before[table]} <= {"job"}


def test_it_stops_and_shows_what_other_settings_leave(own_calibrated: Program) -> None:
    before = contents(own_calibrated.url)
    stopped = own_calibrated("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.2")
    check_no_calibration_since(own_calibrated, before)
    assert (stopped.code, stopped.stdout) == (NOT_READY, "")
    lines = [line.strip() for line in stopped.stderr.splitlines()]
    assert "kappa  every q  0,1,3,5  one bin" in lines
    rows = [line.split() for line in lines if re.match(r"[\d,]+ +[\d.]+%", line)]
    assert [row[0] for row in rows] == ["1,000", "300", "100", "50", "30"]
    assert rows[0][1:] == ["0.0%"] * 3

    (error,) = (line for line in lines if line.startswith("error: "))
    assert "no calibration was stored: with kappa 1,000 only 0.0% of the points would lie in usable bands" in error
    assert "one rare class starves the bands of all classes" in error
    named = "|".join(CLASS_NAMES)
    assert re.search(rf"scarcest most often, in \d+% of the bands below kappa, is '({named})', which has \d+ of", error)
    assert "`--kappa 1000` stores this one anyway" in error

    proposed = re.search(r"`venn-admit (calibrate [^`]*)` leaves ([\d.]+)% usable", error)
    assert proposed is not None
    stored = own_calibrated(*proposed[1].split(), "--json").result
    assert stored["alpha"] == "0.2"
    # Foretold by mc alone, and found in vp.
    assert stored["vp_in_usable_bands"] / stored["vp"] == pytest.approx(float(proposed[2]) / 100, abs=0.06)
    assert stored["vp_in_usable_bands"] > 0


def test_programs_get_the_table(own_calibrated: Program) -> None:
    before = contents(own_calibrated.url)
    options = ("--alpha", "0.2", "--delta", "2.5", "--q-bins", "0,1", "--thresholds", "0.8,0.8,0.9")
    stopped = own_calibrated("calibrate", NAME, "--method", "venn-admit", *options, "--json")
    check_no_calibration_since(own_calibrated, before)
    assert stopped.code == NOT_READY
    assert "error: no calibration was stored" in stopped.stderr
    said = json.loads(stopped.stdout)
    assert (said["calibration"], said["kappa"], said["alpha"], said["q_bins"]) == (None, 1000, "0.2", [0, 1])
    assert said["usable_share"] < said["least_usable_share"]
    assert said["scarcest_class"] in CLASS_NAMES
    cells = {(cell["kappa"], tuple(cell["q_bins"])): cell["usable_share"] for cell in said["table"]}
    bins = [tuple(range(K + 1)), (0, 1, 3, 5), (0, 1), (0,)]
    assert list(cells) == [(kappa, edges) for kappa in (1000, 300, 100, 50, 30) for edges in bins]
    for edges in bins:
        of_edges = [cells[kappa, edges] for kappa in (1000, 300, 100, 50, 30)]
        assert of_edges == sorted(of_edges)
        assert all(0 <= share <= 1 for share in of_edges)
    proposal = said["proposal"]
    assert cells[proposal["kappa"], tuple(proposal["q_bins"])] == proposal["usable_share"]
    for option in ("--alpha 0.2", "--delta 2.5", "--thresholds 0.8,0.8,0.9"):
        assert option in proposal["command"]
    assert own_calibrated(*proposal["command"].split()[1:]).code == 0


def test_defaults_that_leave_enough_are_stored(own_calibrated: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples are too few for kappa 1000; a smaller default serves as well."""
    assert make_settings.__kwdefaults__ is not None
    monkeypatch.setitem(make_settings.__kwdefaults__, "kappa", 10)
    stored = own_calibrated(
        "calibrate", NAME, "--method", "venn-admit", "--alpha", "0.2", "--q-bins", "0,1", "--json"
    ).result
    assert (stored["calibration"], stored["kappa"]) == (2, 10)


def test_a_setting_that_was_asked_for_is_kept_current(own_calibrated: Program, own_labels: str) -> None:
    made = own_calibrated("calibrate", NAME, "--method", "venn-admit", "--kappa", 1000, "--json").result
    assert made["withheld"]["share"] == 0, "every band is too small"
    assert own_calibrated("use", NAME, made["calibration"]).code == 0
    assert own_calibrated("label", NAME, own_labels).code == 0
    done = own_calibrated("recalibrate", NAME, "--json").result["recalibrations"]
    assert sorted(one["kappa"] for one in done) == [10, 1000]
    assert [one["error"] for one in done] == [None, None]


@pytest.fixture
def own_labels(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file that corrects the label of one held-out exemplar."""
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    path.write_text("".join(["external_id,label\n", *(f"held-out-{row},0\n" for row in range(20))]))
    return str(path)
