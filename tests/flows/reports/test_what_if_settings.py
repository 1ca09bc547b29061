"""The setting in use with one part of it varied: by mc alone, and nothing is stored."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import text

from tests.cli.program import versions
from tests.flows.decisions.test_venn_abers import RELIABILITY
from tests.running import Bench, Golden
from tests.templates import fresh_bench
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.errors import InvalidInputError, NotFoundError, NotReadyError, OutdatedError
from venn_admit.flows.calibration.compare import compare_on_stored
from venn_admit.flows.reports.what_if_settings import MOST_VALUES, what_if_settings
from venn_admit.report.what_if.settings import SettingsTried
from venn_admit.store.database.engine import transaction

ALPHAS = [Decimal("0.05"), Decimal("0.2")]


def what_if(bench: Bench, varied: str, values: list[Any]) -> SettingsTried:
    return what_if_settings(bench.workspace(), "reviews", varied, values)


def change(bench: Bench, statement: str) -> None:
    with transaction(bench.engine) as connection:
        connection.execute(text(statement))


def shares(found: SettingsTried) -> list[float]:
    return [one.admission.admitted.share for one in found.tried]


def test_vp_bears_on_nothing_and_nothing_is_stored(few_reviews: Bench) -> None:
    url = few_reviews.engine.url.render_as_string(hide_password=False)
    before = versions(url)
    found = what_if(few_reviews, "alpha", ALPHAS)
    assert versions(url) == before
    assert [(one.value, one.is_current) for one in found.tried] == [("0.05", False), ("0.1", True), ("0.2", False)]
    assert shares(found) == sorted(shares(found))
    change(few_reviews, "UPDATE exemplar SET label = 1 - label WHERE split = 'vp'")
    assert what_if(few_reviews, "alpha", ALPHAS) == found
    change(few_reviews, "UPDATE exemplar SET label = 1 - label WHERE split = 'mc' AND id % 7 = 0")
    assert shares(what_if(few_reviews, "alpha", ALPHAS)) != shares(found)


def test_it_agrees_with_a_comparison_of_settings(few_reviews: Bench) -> None:
    """Where both try the same settings: every kappa, with every q a bin of its own."""
    compared = {
        one.settings: one.admission
        for one in compare_on_stored(few_reviews.workspace(), "reviews", Decimal("0.1")).compared
        if isinstance(one.settings, CalibratorSettings)
        and not one.settings.undivided
        and len(one.settings.q_bins) == 26
    }
    found = what_if(few_reviews, "kappa", [one.kappa for one in compared])
    assert {one.settings: one.admission for one in found.tried} == compared
    assert [one.value for one in found.tried] == ["30", "50", "100", "300", "1,000"]
    assert (found.point_count, found.document_count) == (1832, 1832)


def test_thresholds_follow_alpha_unless_they_are_of_their_own(few_reviews: Bench) -> None:
    found = what_if(few_reviews, "alpha", ALPHAS)
    assert [one.settings.thresholds for one in found.tried] == [
        (Decimal(least),) * 2 for least in ("0.95", "0.9", "0.8")
    ]
    few_reviews.calibrate("reviews", kappa=100, thresholds=(Decimal("0.9"), Decimal("0.97")))
    found = what_if(few_reviews, "alpha", [*ALPHAS, Decimal("0.02")])
    assert [one.settings.thresholds for one in found.tried] == [
        (Decimal("0.98"), Decimal("0.98")),
        (Decimal("0.95"), Decimal("0.97")),
        (Decimal("0.9"), Decimal("0.97")),
        (Decimal("0.8"), Decimal("0.97")),
    ]
    tried = what_if(few_reviews, "thresholds", [Decimal("0.92")]).tried
    assert [(one.value, one.is_current) for one in tried] == [("0.92", False), ("as they are", True)]
    assert tried[1].settings.thresholds == (Decimal("0.9"), Decimal("0.97"))


def test_delta_and_bins(few_reviews: Bench) -> None:
    wide = what_if(few_reviews, "delta", [float("inf"), 0.5])
    assert [one.value for one in wide.tried] == ["0.5", "1", "inf"]
    assert shares(wide) == sorted(shares(wide)), "a wider band holds kappa points sooner"
    bins = what_if(few_reviews, "q_bins", [(0,), (0, 1, 25)])
    assert [one.value for one in bins.tried] == ["one bin", "0,1,25", "every q"]


def test_by_venn_abers_the_score_is_chosen_for_each_value(reviews: Bench) -> None:
    reviews.adopt("reviews", reliability=RELIABILITY)
    reviews.calibrate_abers("reviews")
    found = what_if(reviews, "alpha", ALPHAS)
    assert {str(one.settings.score) for one in found.tried} <= {"network", "reliability"}  # type: ignore[union-attr]
    assert 0 < shares(found)[0] < shares(found)[1] < shares(found)[2] < 1
    assert [one.every_class_reaches for one in found.tried] == [True, True, True]
    with pytest.raises(InvalidInputError, match="kappa: the method venn-abers has no such setting"):
        what_if(reviews, "kappa", [100])
    reviews.adopt("reviews")
    reviews.calibrate_abers("reviews", score="network")
    assert what_if(reviews, "thresholds", [Decimal("0.95")]).tried[1].admission.admitted.share > 0
    reviews.calibrate_abers("reviews", score="network", promise="average")
    average = what_if(reviews, "alpha", ALPHAS)
    assert all(one > other for one, other in zip(shares(average), shares(found), strict=True))
    with pytest.raises(InvalidInputError, match=r"thresholds: the policy of calibration \d+ sets them itself"):
        what_if(reviews, "thresholds", [Decimal("0.95")])
    reviews.calibrate_abers("reviews", score="network", certify=["predicted"])
    with pytest.raises(InvalidInputError, match="whose policies are tested on all of mc and vp"):
        what_if(reviews, "alpha", ALPHAS)


@pytest.fixture(scope="module")
def small(
    server_url: str, edge_template: tuple[str, Golden], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    """Calibrated at alpha 0.1; to be left as it is."""
    with fresh_bench(server_url, edge_template[0], tmp_path_factory.mktemp("small")) as bench:
        bench.calibrate("edge", kappa=3)
        yield bench


@pytest.mark.parametrize(
    ("varied", "values", "message"),
    [
        ("mood", [1], "expected one of alpha, kappa, delta, q_bins, thresholds to be varied, got 'mood'"),
        ("alpha", [], "alpha: expected 1 to 50 values to try, got 0"),
        ("kappa", list(range(1, MOST_VALUES + 2)), "kappa: expected 1 to 50 values to try, got 51"),
        ("alpha", [Decimal(1)], "alpha must lie strictly between 0 and 1; got 1"),
        ("kappa", [0], "kappa must be at least 1 and at most 2,147,483,647; got 0"),
        ("delta", [-1.0], "delta must be greater than 0"),
        ("delta", [float("nan")], "delta must be greater than 0"),
        ("q_bins", [(1, 2)], "the bins of q must be given by ascending lower edges"),
        ("thresholds", [Decimal("0.5")], r"must be at least 1 - alpha = 0\.9"),
    ],
)
def test_refused(small: Bench, varied: str, values: list[Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        what_if_settings(small.workspace(), "edge", varied, values)


def test_refused_without_what_it_needs(bench: Bench, edge: Bench) -> None:
    with pytest.raises(NotFoundError, match="no classifier is named 'nobody'"):
        what_if_settings(bench.workspace(), "nobody", "kappa", [1])
    bench.create("empty", dimension=2)
    with pytest.raises(NotReadyError, match="has no calibration yet"):
        what_if_settings(bench.workspace(), "empty", "kappa", [1])
    change(edge, "DELETE FROM approximation")
    with pytest.raises(OutdatedError, match="have no approximation yet"):
        what_if_settings(edge.workspace(), "edge", "kappa", [1])
