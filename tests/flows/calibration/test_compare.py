"""Settings compared on mc: nothing of vp is read, nothing is stored, and what is foretold is found."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, event, text

from tests.cli.program import versions
from tests.flows.decisions.test_venn_abers import RELIABILITY
from tests.running import EXAMPLES, Bench
from venn_admit.cli.advice import command
from venn_admit.core.calibrators.settings import CalibratorSettings, ScoreKind, VennAbersSettings
from venn_admit.core.comparison import divisions
from venn_admit.errors import InvalidInputError, NotReadyError, OutdatedError
from venn_admit.flows.calibration.compare import compare_on_stored, request_mc
from venn_admit.flows.reports.report import report
from venn_admit.flows.reports.what_if_settings import what_if_settings
from venn_admit.report.calibration.advice import advice
from venn_admit.report.what_if.compared import ComparedSettings
from venn_admit.store.database.engine import transaction

ALPHA = Decimal("0.1")
IN_SPLIT = "SELECT count(*) FROM exemplar INNER JOIN approximation ON exemplar.id = exemplar_id WHERE split = :split"


def change(engine: Engine, statement: str) -> None:
    with transaction(engine) as connection:
        connection.execute(text(statement))


def compared(bench: Bench) -> ComparedSettings:
    job_id = request_mc(bench.workspace(), "reviews", ALPHA)
    if job_id is not None:
        bench.run(job_id)
    return compare_on_stored(bench.workspace(), "reviews", ALPHA)


def url(bench: Bench) -> str:
    return bench.engine.url.render_as_string(hide_password=False)


@pytest.fixture
def few_divisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what depends on no number of divisions, each of which is computed as the first."""
    monkeypatch.setattr(divisions, "DIVISIONS", 2)


@pytest.mark.usefixtures("few_divisions")
def test_vp_bears_on_nothing_and_nothing_is_stored(few_reviews: Bench) -> None:
    before = versions(url(few_reviews))
    found = compared(few_reviews)
    assert versions(url(few_reviews)) == before
    change(few_reviews.engine, "DELETE FROM calibration")
    for table in ("approximation", "neighbours", "exemplar_vector", "label_event", "calibration_point", "job_row"):
        change(
            few_reviews.engine,
            f"DELETE FROM {table} USING exemplar WHERE exemplar_id = exemplar.id AND exemplar.split = 'vp'",
        )
    change(few_reviews.engine, "DELETE FROM exemplar WHERE split = 'vp'")
    assert compared(few_reviews) == found
    change(few_reviews.engine, "UPDATE exemplar SET label = 1 - label WHERE split = 'mc' AND id % 7 = 0")
    changed = compared(few_reviews)
    assert changed.compared != found.compared
    # Certificates are tested on mc, so no label of it bears on what is foretold of them.
    assert changed.foretold == found.foretold
    change(few_reviews.engine, "UPDATE exemplar SET label = 1 - label WHERE split = 'knn' AND id % 7 = 0")
    assert compared(few_reviews).foretold != found.foretold


def test_no_statement_asks_for_vp(few_reviews: Bench) -> None:
    asked: list[Any] = []

    @event.listens_for(few_reviews.engine, "before_cursor_execute")
    def note(_connection: Any, _cursor: Any, said: str, parameters: Any, *_others: Any) -> None:
        asked.append((said, parameters))

    compared(few_reviews)
    splits = [given["split"] for _, given in asked if isinstance(given, dict) and "split" in given]
    listed = [given["splits"] for _, given in asked if isinstance(given, dict) and "splits" in given]
    assert set(splits) == {"knn", "mc"}
    assert listed
    assert all("vp" not in one for one in listed)
    assert not [said for said, _ in asked if "'vp'" in said]


def test_vp_is_not_approximated_before_the_first_calibration(bench: Bench) -> None:
    bench.create("reviews", dimension=128)
    bench.ingest("reviews", EXAMPLES / "train.npz", "train")
    bench.ingest("reviews", EXAMPLES / "test.npz", "held-out")
    bench.adopt("reviews")
    with pytest.raises(OutdatedError, match="have no approximation yet"):
        compare_on_stored(bench.workspace(), "reviews", ALPHA)
    compared(bench)
    assert bench.value(IN_SPLIT, split="mc") > 0
    assert bench.value(IN_SPLIT, split="vp") == 0
    bench.calibrate("reviews", kappa=30)
    assert bench.value(IN_SPLIT, split="vp") > 0


@pytest.mark.usefixtures("few_divisions")
def test_what_is_foretold_is_found(reviews: Bench) -> None:
    """The shares of test data under a setting, beside those of mc by cross-fitting.

    With one bin, all bands of Venn-ADMIT are about .92 right: how many of them reach .9 depends on mc and vp.
    """
    reviews.adopt("reviews", reliability=RELIABILITY)
    found = compared(reviews)
    assert found.left_out == ()
    proposal = found.proposal()
    assert proposal is not None
    assert isinstance(proposal.settings, VennAbersSettings)
    assert proposal.admission.admitted.share == max(
        one.admission.admitted.share for one in found.pointwise if one.every_predicted_class_reaches(ALPHA)
    )
    with np.load(EXAMPLES / "test.npz") as arrays:
        label = arrays["y"]
    for one in found.compared:
        settings = one.settings
        if isinstance(settings, CalibratorSettings):
            if settings.kappa != 100 or len(settings.q_bins) == 1:
                continue
            reviews.calibrate("reviews", kappa=100, q_bins=settings.q_bins, undivided=settings.undivided)
        elif settings.score is ScoreKind.NETWORK:
            reviews.calibrate_abers("reviews", score="network", q_bins=settings.q_bins, promise=str(settings.promise))
        else:
            continue
        table = reviews.score("reviews", EXAMPLES / "test.npz", weighted=None).table
        decision = np.array([-1 if made is None else made for made in table.column("decision").to_pylist()])
        admitted = decision >= 0
        low, high = one.admission.admitted.interval
        assert low - 0.06 < admitted.mean() < high + 0.06
        right = (decision == label)[admitted].mean()
        assert right == pytest.approx(one.admission.right.overall.share, abs=0.03)


def test_what_is_foretold_is_what_weighted_decisions_admit(few_reviews: Bench) -> None:
    """The localizer hardly looks beyond the nearest point, so that weights reject most of what would be admitted."""
    few_reviews.adopt("reviews", eta_loc=0.002)
    few_reviews.calibrate("reviews", kappa=100, q_bins=(0, 1, 6, 16, 25))
    found = what_if_settings(few_reviews.workspace(), "reviews", "kappa", [100])
    (foretold,) = [one.admission for one in found.tried]
    assert found.is_weighted

    def admitted(*, weighted: bool | None) -> float:
        table = few_reviews.score("reviews", EXAMPLES / "test.npz", weighted=weighted).table
        return float(np.mean([made is not None for made in table.column("decision").to_pylist()]))

    plain, usual = admitted(weighted=False), admitted(weighted=None)
    low, high = foretold.admitted.interval
    assert low - 0.06 < usual < high + 0.06
    assert usual < plain / 2
    state = report(few_reviews.workspace(), "reviews", calibration_id=None)
    share = state.part.weighted
    assert share is not None
    assert share.admitted / share.points == pytest.approx(usual, abs=0.06)
    assert share.plain / share.points == pytest.approx(plain, abs=0.06)
    assert advice(state, command)[0].startswith("Weights reject most of what plain probabilities would admit")


def test_what_is_missing_is_said(bench: Bench) -> None:
    bench.create("reviews", dimension=128)
    with pytest.raises(InvalidInputError, match="alpha must lie strictly between 0 and 1"):
        request_mc(bench.workspace(chunk_rows=100), "reviews", Decimal(2))
    with pytest.raises(NotReadyError, match="has no KNN parameters yet"):
        request_mc(bench.workspace(chunk_rows=100), "reviews", ALPHA)
    bench.ingest("reviews", EXAMPLES / "train.npz", "train")
    bench.adopt("reviews")
    with pytest.raises(NotReadyError, match=r"split mc of 'reviews' holds no labelled exemplar"):
        request_mc(bench.workspace(chunk_rows=100), "reviews", ALPHA)
