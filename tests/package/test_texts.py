"""What `print` shows of results: what people read of them, in some lines."""

from dataclasses import replace
from decimal import Decimal
from unittest.mock import Mock, call

import pytest

import venn_admit
from tests.report.samples import many_classes
from venn_admit import (
    Calibration,
    CascadeReport,
    CascadeStage,
    Certificate,
    CertifiedClass,
    Decision,
    Neighbour,
    Served,
    SetAside,
    Weaker,
)
from venn_admit.interface.comparison import comparison_of
from venn_admit_client.members import Told

BANDS = Calibration(
    id=7,
    method="venn-admit",
    alpha=Decimal("0.1"),
    thresholds=(Decimal("0.9"), Decimal("0.95")),
    q_bins=tuple(range(26)),
    mc_points=7265,
    vp_points=7110,
    delta=1.0,
    kappa=1000,
    usable_share=0.5,
    singleton_share=0.25,
    score=None,
    certificate=None,
)
CERTIFICATE = Certificate(
    is_certified=True,
    kinds=("predicted", "true"),
    confidence=Decimal("0.95"),
    test="finite-sample",
    thresholds={"no": 0.9, "yes": None},
    admitted=0.4,
    classes=(),
    documents_needed=None,
    labels_needed=None,
    set_aside=None,
    document={},
)
LACKING = tuple(
    CertifiedClass(kind, name, group, is_promised, 0.1, 0.8, 0.5, None, needed)
    for kind, name, group, is_promised, needed in (
        ("predicted", "no", None, True, None),
        ("true", "yes", None, False, 1234),
        ("group:site", None, "north", False, None),
    )
)
DECISION = Decision(
    admitted="yes",
    predicted="yes",
    reason=None,
    lower=0.97654,
    upper=0.98765,
    match_count=25,
    distance=4.4567,
    neighbours=tuple(Neighbour(f"train-{place}", "yes", 4.4567 + place, {}) for place in range(25)),
    calibration=7,
    evidence={"category_counts": [1] * 100},
)


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for kind in (getattr(venn_admit, name) for name in venn_admit.__all__)
        if isinstance(kind, type) and not issubclass(kind, Exception) and kind.__str__ is not object.__str__
    ],
)
def test_a_notebook_shows_what_has_a_text(kind: type) -> None:
    assert vars(kind)["_repr_pretty_"] is Told._repr_pretty_


def test_a_calibration() -> None:
    printer = Mock()
    BANDS._repr_pretty_(printer, False)
    lines = str(BANDS).splitlines()
    assert printer.method_calls == [each for line in lines for each in (call.break_(), call.text(line))][1:]
    assert str(BANDS).splitlines() == [
        "Calibration 7: venn-admit, alpha 0.1, delta 1, kappa 1,000",
        "  thresholds 0.9 to 0.95; bins of q 0,1,...,25",
        "  7,265 points in mc, 7,110 in vp",
        "  50.0% of vp in bands with enough points; a set with a single class for 25.0%",
    ]


def test_a_calibration_with_a_certificate() -> None:
    scored = replace(
        BANDS, method="venn-abers", delta=None, kappa=None, usable_share=None, singleton_share=None, score="network"
    )
    certified = replace(scored, certificate=CERTIFICATE)
    assert str(certified).startswith("Calibration 7: venn-abers, alpha 0.1, score network\n")
    said = "with confidence 0.95; the policy admits 40.0% of mc and vp"
    assert f"  certified for predicted and true classes {said}" in str(certified)
    grouped = replace(CERTIFICATE, kinds=("predicted", "group:site"), classes=LACKING)
    assert str(replace(scored, certificate=grouped)).splitlines()[-2:] == [
        f"  certified for predicted classes and group:site {said}",
        "  nothing is promised for true yes (about 1,200 labels); group:site north (no number of labels would do)",
    ]
    together = tuple(replace(LACKING[1], name=name) for name in ("no", "yes"))
    assert str(replace(scored, certificate=replace(CERTIFICATE, classes=together))).endswith(
        "\n  nothing is promised for true no, true yes (about 1,200 labels)"
    )
    aside = replace(CERTIFICATE, is_certified=False, set_aside=SetAside(0.041, 0.199, LACKING[:1]))
    assert str(replace(scored, certificate=aside, on_average=True)).splitlines()[-2:] == [
        "  certified for predicted no and not in use: it would admit 4.1% of mc and vp, and the softmax at 1 - alpha "
        "19.9%",
        "  promised on average: at most 0.1 wrong among the admitted of each predicted class",
    ]
    failed = replace(scored, certificate=replace(CERTIFICATE, is_certified=False, thresholds=None, admitted=None))
    assert "  not certified for predicted and true classes, so that everything is rejected" in str(failed)


def test_what_a_dry_run_says_is_not_in_use() -> None:
    weaker = replace(BANDS, weaker=Weaker(3, 2184, 0.209, 0.798))
    said = (
        "  in use, as its setting was asked for: it would admit 20.9% of 2,184 calibration points and calibration 3, "
    )
    assert str(weaker).splitlines()[-1].startswith(said)
    assert str(replace(weaker, id=None)).splitlines()[-1].startswith(f"  would be {said.strip()}")


def test_a_decision() -> None:
    lines = str(DECISION).splitlines()
    assert lines[:4] == [
        "Admitted: yes",
        "  right with a probability of 0.977 to 0.988, by calibration 7",
        "  q = 25 of the nearest training exemplars match in a row; d = 4.457",
        "    4.457  yes  train-0",
    ]
    assert lines[-1] == "    and 20 more, in .neighbours"
    rejected = replace(DECISION, admitted=None, reason="band too small", lower=None, upper=None, neighbours=())
    assert str(rejected).splitlines()[:2] == ["Rejected: band too small; predicted is yes", "  by calibration 7"]
    bare = replace(DECISION, match_count=None, distance=None, neighbours=())
    assert len(str(bare).splitlines()) == 2


def test_text_displays_nothing_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed = Mock()
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", displayed)
    assert str(comparison_of(many_classes(3000)))
    assert not displayed.called


def test_tables_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Mock(isatty=lambda: True))
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, str(comparison_of(many_classes(3000))).splitlines())) <= 80


def test_what_a_cascade_serves_is_summed_up() -> None:
    served = Served(
        3, ids=("a",) * 9000, served=("yes",) * 9000, stage=(1,) * 9000, stages=(), cost=9.0, cost_of_last=9.0
    )
    assert repr(served) == "Served(certificate=3, stages=(), cost=9.0, cost_of_last=9.0)"


def test_a_comparison() -> None:
    compared = comparison_of(many_classes(3000, 0))
    assert len(repr(compared)) < 1000
    said = str(compared)
    assert max(map(len, said.splitlines())) <= 110
    assert said == "\n".join(line.rstrip() for line in said.rstrip().split("\n")), "nothing that a terminal wraps"
    words = " ".join(said.split())
    assert "kappa 100, every q .500" in words
    assert "Nothing is admitted by Venn-ADMIT with kappa 101, every q." in words
    assert words.endswith("so none is proposed.")
    assert "It is foretold" not in words
    proposed = comparison_of(replace(many_classes(3000), alpha=Decimal("0.5")))
    assert (
        "reaches 0.5, venn-admit with kappa 100, every q admits most, .500: "
        "classifier.calibrate(**comparison.proposal.settings)." in " ".join(str(proposed).split())
    )


def test_a_cascade() -> None:
    stages = (CascadeStage(1, "small", 1.0, 7, 900, 510, ()), CascadeStage(2, None, 100.0, None, 390, 390, ()))
    certified = CascadeReport(
        cascade="reviews",
        classes=("no", "yes"),
        stages=stages,
        number=3,
        certified_at=None,
        alpha=Decimal("0.1"),
        confidence=Decimal("0.95"),
        kinds=("predicted",),
        is_certified=True,
        points=900,
        documents=900,
        served=510,
        promised=(),
        labels_needed=None,
        looks=1,
        joint_confidence=Decimal("0.95"),
        cost=44.33,
        cost_of_last=100.0,
        withheld=None,
    )
    assert str(certified).splitlines() == [
        "Cascade reviews: certificate 3, certified for predicted classes with confidence 0.95, alpha 0.1",
        "  stage 1, small: cost 1; reached by 900 points, serves 510",
        "  stage 2, a person: cost 100; reached by 390 points, serves 390",
        "  classifiers serve 510 of 900 points of evidence",
        "  a point costs 44.33 on average, and 100 by the last stage alone",
    ]
    begun = replace(certified, number=None, is_certified=False, cost=None, stages=(replace(stages[0], served=None),))
    assert str(begun).splitlines() == [
        "Cascade reviews: not certified yet, and serves nothing until then",
        "  stage 1, small: cost 1",
    ]
