"""Which calibration is in use, on the page of a classifier, and putting another in use."""

from tests.cli.samples import NAME
from tests.web.visitor import OWN, Visitor
from venn_admit.flows.calibration.calibrate import calibrate_on_stored, settings_for
from venn_admit.flows.data.catalogue import find
from venn_admit.store.access.keys import Scope

USE = f"{OWN}/use"


def test_the_page_shows_what_was_in_use_and_puts_another_in_use(visitor: Visitor) -> None:
    visitor.sign_in(Scope.WRITE)
    known = find(visitor.runtime.engine, NAME)
    nothing = settings_for(known, "venn-abers", {"certify": "predicted", "alpha": "0.001"})
    made = calibrate_on_stored(visitor.runtime, known, nothing, reason="test").calibration_id
    before = " ".join(visitor.open(OWN).split())
    assert "it would admit 0.0% of" in before
    assert "venn-abers, alpha 0.001, score auto, certify predicted with confidence 0.95" in before, "the setting"
    assert "1 certificate looked at the labels of mc and vp; it holds with confidence 0.95" in before
    assert 'aria-label="Use calibration 1"' not in before, "it is in use"
    answer = visitor.send(USE, calibration=str(made), reason="to <b>see</b> it")
    assert (answer.status_code, answer.headers["location"]) == (303, OWN)
    after = " ".join(visitor.open(OWN).split())
    assert "to &lt;b&gt;see&lt;/b&gt; it" in after
    assert 'aria-label="Use calibration 1"' in after
    assert after.count(">kept current</td>") == 2, "of its setting and of itself"
    assert visitor.send(USE, calibration="99").status_code == 404
    assert visitor.send(USE, calibration="one").status_code == 422


def test_a_reader_has_no_form_for_it(visitor: Visitor) -> None:
    visitor.sign_in(Scope.READ)
    assert 'aria-label="Use calibration' not in visitor.open(OWN)
    assert visitor.send(USE, calibration="1").status_code == 403
