"""The page of a report names the classes that nothing is promised for, or that are never admitted."""

from decimal import Decimal

import pytest

from tests.cli.samples import CLASS_NAMES, NAME
from tests.web.visitor import OWN, Visitor
from venn_admit.core.calibrators.promises import Promised
from venn_admit.flows.calibration.calibrate import calibrate_on_stored, settings_for
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.reports.report import report
from venn_admit.store.access.keys import Scope


@pytest.mark.usefixtures("blank_charts")
def test_the_page_names_each_class_that_a_certificate_never_admits(visitor: Visitor) -> None:
    visitor.sign_in(Scope.WRITE)
    settings = settings_for(
        find(visitor.runtime.engine, NAME), "venn-abers", {"alpha": Decimal("0.03"), "certify": "predicted"}
    )
    made = calibrate_on_stored(visitor.runtime, find(visitor.runtime.engine, NAME), settings, reason="test")
    page = " ".join(visitor.open(f"{OWN}/report?calibration={made.calibration_id}").split())
    never = f"Never admitted, since no threshold passed: predicted {CLASS_NAMES[1]} (about "
    assert page.count(never) == 2  # what the certificate lacks, and what to do next
    assert "None: a policy is certified." not in page


@pytest.mark.usefixtures("blank_charts")
def test_the_page_names_each_class_that_nothing_is_promised_for(visitor: Visitor) -> None:
    visitor.sign_in(Scope.WRITE)
    known = find(visitor.runtime.engine, NAME)
    of_true = f"Nothing is promised for true classes: {', '.join(CLASS_NAMES)}."
    for alpha, promised, said in (
        ("0.1", Promised.BOTH, None),
        ("0.05", Promised.PREDICTED, of_true),
        ("0.03", Promised.AVERAGE, "So the average promise, which admits more, takes its place."),
    ):
        settings = settings_for(known, "venn-abers", {"alpha": Decimal(alpha)})
        made = calibrate_on_stored(visitor.runtime, known, settings, reason="test").calibration_id
        assert report(visitor.runtime, NAME, calibration_id=made).part.promised is promised
        page = " ".join(visitor.open(f"{OWN}/report?calibration={made}").split())
        for sentence in (of_true, "So the average promise, which admits more, takes its place."):
            assert (sentence in page) == (sentence == said), alpha
