"""What `print` shows of results: what people read of them, in some lines."""

from dataclasses import replace
from decimal import Decimal

from venn_admit import (
    Calibration,
    Certificate,
    ClassShare,
    Comparison,
    Decision,
    Neighbour,
    SettingOutcome,
)

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
    document={},
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


def test_a_calibration() -> None:
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
    assert "  certified for predicted and true classes with confidence 0.95; the policy admits 40.0% of vp" in str(
        certified
    )
    failed = replace(scored, certificate=replace(CERTIFICATE, is_certified=False, thresholds=None, admitted=None))
    assert "  not certified for predicted and true classes, so that everything is rejected" in str(failed)


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


def comparison(classes: int) -> Comparison:
    def outcome(admitted: float, **own: object) -> SettingOutcome:
        shares = tuple(
            ClassShare(f"class-{number}", 80, 76 - number, (76 - number) / 80, (0.85, 0.99))
            for number in range(classes)
        )
        return SettingOutcome(
            settings={"alpha": "0.1", "q_bins": (0,), **own},
            admitted_share=admitted,
            admitted_interval=(admitted - 0.05, admitted + 0.05) if admitted else (0.0, 0.05),
            per_true_class=shares,
            per_predicted_class=shares,
            every_class_reaches=True if admitted else None,
        )

    outcomes = (
        outcome(0.6, method="venn-abers", score="network"),
        outcome(0.3, method="venn-admit", delta=1.0, kappa=1000),
        outcome(0.0, method="venn-admit", delta=1.0, kappa=2000),
    )
    return Comparison(Decimal("0.1"), 400, 400, 400, outcomes, {"score reliability": "it was not fitted"}, outcomes[0])


def test_a_comparison() -> None:
    for classes, header in ((2, "class-1"), (10, "the lowest")):
        said = str(comparison(classes))
        assert max(map(len, said.splitlines())) <= 110
        assert header in said
        words = " ".join(said.split())
        assert "venn-abers" in words
        assert "score network, q 0" in words
        assert ".550-.650" in words
        assert "1 setting admits nothing." in words
        assert "Left out: score reliability: it was not fitted." in words
        assert (
            "venn-abers with score network, q 0 admits most, .600: classifier.calibrate(**comparison.proposal" in words
        )
    none = replace(comparison(2), proposal=None, outcomes=comparison(2).outcomes[2:])
    assert "No setting in which every predicted class reaches 0.9 admits a tenth, so none is proposed." in " ".join(
        str(none).split()
    )
