"""`calibrate --compare`: settings of each method beside each other, the command to run next, and nothing stored."""

import re

import pytest

from tests.cli.program import Program, check_refusal, contents, nothing_stored
from tests.cli.samples import CLASS_NAMES, HELD_OUT_ROWS, NAME
from venn_admit.core.comparison.divisions import DIVISIONS


def test_it_shows_what_each_setting_admits_and_what_to_run(own_calibrated: Program) -> None:
    with nothing_stored(own_calibrated):
        done = own_calibrated("calibrate", NAME, "--compare", "--alpha", "0.2", "--details")
    assert done.code == 0
    said = " ".join(done.stdout.split())
    assert "What settings admit of split mc by cross-fitting, and the share right of it (alpha 0.2)" in said
    assert re.search(r"kappa 50, q 0,1,3,5 \.\d{3} ✓ ", said)
    assert re.search(r"venn-abers score network, q 0,1,3,5 \.\d{3} ✓ ", said)
    assert re.search(r"score reliability, one bin \.\d{3} ✓ ", said)
    assert "per true class" in said
    assert "per predicted class" in said
    assert all(name in said for name in CLASS_NAMES)
    assert "Nothing is admitted by Venn-ADMIT with kappa 1,000, every q; kappa 300, every q;" in said
    assert "With the average promise instead, Venn-Abers with score" in said
    assert "The best of 34 settings looks better on mc than it is. That is why vp exists" in said
    named = re.search(
        r"Pointwise, among those with no predicted class estimated below 0\.8, most is admitted by .* right: "
        r"`venn-admit ([^`]*)`\.",
        said,
    )
    assert named is not None, said
    assert own_calibrated(*named[1].split()).code == 0
    by_default = re.search(
        r"It is foretold that the default .*, [.\d]{4}, of .* right: `venn-admit ([^`]*--dry-run[^`]*)` shows", said
    )
    assert by_default is not None, said
    assert own_calibrated(*by_default[1].split()).code == 0


def test_details_belong_to_a_comparison(own_calibrated: Program) -> None:
    with nothing_stored(own_calibrated):
        refused = own_calibrated("calibrate", NAME, "--details")
    check_refusal(refused, 2, "details: expected only together with --compare")


def test_programs_get_every_setting_and_class(own_calibrated: Program) -> None:
    result = own_calibrated("calibrate", NAME, "--compare", "--alpha", "0.2", "--json").result
    assert (result["classifier"], result["alpha"], result["left_out"]) == (NAME, "0.2", [])
    assert 0 < result["mc"] == result["documents"] < HELD_OUT_ROWS
    settings = result["settings"]
    assert [one["method"] for one in settings] == ["venn-admit"] * 30 + ["venn-abers"] * 6
    assert [one["undivided"] for one in settings[:30]] == [False] * 15 + [True] * 15
    for one in settings:
        assert one["admitted_share"] == one["admitted"] / result["mc"]
        assert len(one["division_shares"]) == (DIVISIONS if one["method"] == "venn-admit" else 0)
        low, high = one["admitted_interval"]
        assert 0 <= low <= one["admitted_share"] <= high <= 1
        for kind in ("per_true_class", "per_predicted_class"):
            shares = one[kind]
            assert [share["name"] for share in shares] == list(CLASS_NAMES)
            assert sum(share["admitted"] for share in shares) == one["admitted"]
            for share in shares:
                known = share["right"] / share["admitted"] if share["admitted"] else None
                assert share["share_right"] == known
        shares = [share["share_right"] for share in one["per_predicted_class"]]
        reached = [share >= 0.8 for share in shares if share is not None]
        assert one["every_class_reaches"] == (all(reached) if reached else None)
    assert any(one["admitted"] == 0 for one in settings)
    assert any(len(set(one["division_shares"])) > 1 for one in settings), "other divisions admit other shares"
    assert [one["promise"] for one in settings[30:]] == ["pointwise"] * 4 + ["average"] * 2
    pointwise = [one for one in settings if one["promise"] != "average" and one["every_class_reaches"]]
    best = max(pointwise, key=lambda one: one["admitted"])
    assert result["command"] == best["command"]
    foretold = result["foretold"]
    assert [one["promise"] for one in foretold] == ["strongest", "pointwise", "pointwise"]
    for one in foretold:
        assert one["admitted_share"] == one["admitted"] / result["proposing"]
        assert sum(share["admitted"] for share in one["per_true_class"]) == one["admitted"]
        assert (one["admitted"] == 0) == (one["promises"] == "none")
    # Each command makes the setting that it stands beside.
    for one in (*settings[1::9], foretold[0]):
        made = own_calibrated(*one["command"].split()[1:], "--json").result
        known = own_calibrated("calibrations", NAME, "--json").result["settings"]
        (newest,) = [asked for asked in known if asked["calibration"] == made["calibration"]]
        for name in ("method", "alpha", "delta", "kappa", "score", "q_bins", "undivided"):
            assert newest[name] == one[name]


def test_nothing_that_holds_is_said(own_calibrated: Program) -> None:
    done = own_calibrated("calibrate", NAME, "--compare", "--alpha", "0.0001")
    assert done.code == 0
    said = " ".join(done.stdout.split())
    assert (
        "No pointwise setting is proposed: none with every predicted class estimated at 0.9999 or more admits a tenth;"
        in said
    )
    result = own_calibrated("calibrate", NAME, "--compare", "--alpha", "0.0001", "--json").result
    assert result["command"] is None


def test_before_the_first_calibration(own_ingested: Program) -> None:
    check_refusal(own_ingested("calibrate", NAME, "--compare"), 4, "has no KNN parameters yet")
    assert own_ingested("fit", NAME).code == 0
    before = contents(own_ingested.url)
    assert own_ingested("calibrate", NAME, "--compare").code == 0
    after = contents(own_ingested.url)
    changed = {table for table in after if after[table] != before[table]}
    assert {"job", "approximation"} <= changed
    assert not {table for table in changed if "calibrat" in table or "step" in table}
    with nothing_stored(own_ingested):
        assert own_ingested("calibrate", NAME, "--compare").code == 0


@pytest.mark.parametrize(
    ("options", "saying"),
    [
        (("--kappa", 5, "--method", "venn-admit"), r"got --method, --kappa; leave out one or the other"),
        (("--q-bins", "0,1"), "takes no other option than --alpha, --details and --json.* got --q-bins"),
        (("--alpha", "2"), "alpha must lie strictly between 0 and 1; got 2"),
    ],
)
def test_other_options_are_refused(own_calibrated: Program, options: tuple[object, ...], saying: str) -> None:
    with nothing_stored(own_calibrated):
        outcome = own_calibrated("calibrate", NAME, "--compare", *options)
    check_refusal(outcome, outcome.code, saying)
    assert outcome.code != 0
