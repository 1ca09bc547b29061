"""`calibrate --compare`: settings of each method beside each other, the command to run next, and nothing stored."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from uuid import UUID

import numpy as np
import pytest
from rich.console import Console

from tests.cli.program import Program, check_refusal, contents, nothing_stored
from tests.cli.samples import CLASS_NAMES, HELD_OUT_ROWS, NAME
from venn_admit.cli.tables.compared_settings import compared_payload, compared_table, next_lines
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.measures import measure_admission
from venn_admit.flows.calibration.compare import ComparedSetting, ComparedSettings
from venn_admit.store.exemplars.classifiers import Classifier, KnnSize

PAIRS = Documents(np.arange(6000) // 2, 3000)


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
    assert "The best of 19 settings looks better on mc than it is. That is why vp exists" in said
    proposal = (
        r"Among those with no predicted class estimated below 0\.8, most is admitted by .* right: `venn-admit ([^`]*)`"
    )
    named = re.search(proposal, said)
    assert named is not None
    assert own_calibrated(*named[1].split()).code == 0
    by_default = re.search(r"less than the default, .*: `venn-admit ([^`]*--dry-run)` shows what it certifies", said)
    assert by_default is not None
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
    assert [one["method"] for one in settings] == ["venn-admit"] * 15 + ["venn-abers"] * 6
    for one in settings:
        assert one["admitted_share"] == one["admitted"] / result["mc"]
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
    assert [one["promise"] for one in settings[15:]] == ["pointwise"] * 4 + ["average"] * 2
    pointwise = [one for one in settings if one["promise"] != "average" and one["every_class_reaches"]]
    best = max(pointwise, key=lambda one: one["admitted"])
    assert result["command"] == best["command"]
    # Each command makes the setting that it stands beside.
    for one in settings[1::6]:
        made = own_calibrated(*one["command"].split()[1:], "--json").result
        known = own_calibrated("calibrations", NAME, "--json").result["settings"]
        (newest,) = [asked for asked in known if asked["calibration"] == made["calibration"]]
        for name in ("method", "alpha", "delta", "kappa", "score", "q_bins"):
            assert newest[name] == one[name]


def test_nothing_that_holds_is_said(own_calibrated: Program) -> None:
    done = own_calibrated("calibrate", NAME, "--compare", "--alpha", "0.0001")
    assert done.code == 0
    said = " ".join(done.stdout.split())
    assert "No setting is proposed: none with every predicted class estimated at 0.9999 or more admits a tenth;" in said
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


def many_classes(*admitted: int) -> ComparedSettings:
    """Six classes, of which d is right least often, in documents of two points; a setting for each share admitted."""
    label = np.arange(6000) % 6
    rng = np.random.default_rng(0)
    predicted = np.where(rng.random(6000) < np.where(label == 3, 0.7, 0.95), label, (label + 1) % 6)
    classifier = Classifier(
        1,
        "six",
        tuple("abcdef"),
        KnnSize(2, 25),
        Decimal("0.1"),
        Decimal("0.45"),
        0,
        UUID(int=0),
        0,
        0,
        datetime.now(UTC),
        None,
        1,
        True,
        1,
        "six@1",
    )
    settings = [make_settings(6, 25, kappa=100 + place) for place in range(len(admitted))]
    return ComparedSettings(
        classifier=classifier,
        alpha=Decimal("0.1"),
        point_count=6000,
        judged_count=6000,
        document_count=3000,
        compared=tuple(
            ComparedSetting(one, measure_admission(label, predicted, np.arange(6000) < count, 6, PAIRS))
            for one, count in zip(settings, admitted, strict=True)
        ),
        left_out=(("Venn-Abers, score reliability", "there is no model of it"),),
    )


def test_of_many_classes_the_lowest_is_shown() -> None:
    output = StringIO()
    Console(file=output, width=120).print(compared_table(many_classes(3000, 0), details=False))
    said = " ".join(output.getvalue().split())
    assert re.search(r"kappa 100, every q \.500 \.\d{3}-\.\d{3} ✗ \.[67]\d\d \.\d{3}-\.\d{3} d ", said)
    assert "6,000 points of mc, 3,000 documents; 95 % intervals by documents drawn again" in said
    assert "Nothing is admitted by Venn-ADMIT with kappa 101, every q." in said
    assert "Left out: Venn-Abers, score reliability: there is no model of it." in said
    assert len(compared_payload(many_classes(3000))["settings"][0]["per_true_class"]) == 6


def test_without_details_the_best_of_each_method_is_shown() -> None:
    brief, full = StringIO(), StringIO()
    found = many_classes(1000, 3000, 2000)
    Console(file=brief, width=120).print(compared_table(found, details=False))
    Console(file=full, width=120).print(compared_table(found, details=True))
    assert [f"kappa {kappa}," in brief.getvalue() for kappa in (100, 101, 102)] == [False, True, False]
    assert all(f"kappa {kappa}," in full.getvalue() for kappa in (100, 101, 102))
    assert "2 other settings: add --details." in brief.getvalue()
    assert "--details" not in full.getvalue()


def test_where_nothing_is_admitted_notes_are_left() -> None:
    output = StringIO()
    Console(file=output, width=120).print(compared_table(many_classes(0), details=False))
    assert "Nothing is admitted by Venn-ADMIT with kappa 100, every q." in output.getvalue()
    assert "What settings admit" not in output.getvalue()
    assert next_lines(many_classes(0, 3000))[0].startswith("No setting is proposed: none with every predicted")
