"""The pages of cascades: what they show, and the form that certifies one again."""

from collections.abc import Iterator

import pytest

from tests.cli.databases import on_database
from tests.conftest import fresh_database
from tests.flows.cascades.bundled import STAGES, certify, prepare, reviews
from tests.running import Bench
from tests.web.conftest import visited
from tests.web.visitor import Visitor
from venn_admit.flows.cascades import manage
from venn_admit.flows.jobs.listing import list_jobs
from venn_admit.report.cascade import promise_sentence, shown_share
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import create_engine
from venn_admit.store.work import jobs

PAGE = "/cascades/reviews"


@pytest.fixture(scope="module")
def cascade(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    folder = tmp_path_factory.mktemp("cascade")
    with fresh_database(server_url, template_database) as url:
        engine = create_engine(url)
        bench = Bench(engine, folder)
        prepare(bench, reviews().held_out)
        manage.create(engine, "reviews", STAGES)
        certify(bench, "reviews")
        engine.dispose()
        with visited(on_database(url, folder)) as made:
            yield made


def plain(text: str) -> str:
    return " ".join(text.split())


def test_a_cascade_is_listed_and_shown(cascade: Visitor) -> None:
    cascade.sign_in(Scope.READ)
    assert f'<a href="{PAGE}">reviews</a>' in cascade.open("/cascades")
    found, shown = manage.show(cascade.runtime.engine, "reviews"), plain(cascade.open(PAGE))
    for sentence in promise_sentence(found):
        assert sentence in shown
    for stage in found.stages:
        assert f"<td>{stage.reached:,}</td> <td>{stage.served:,}</td>" in shown
        for one in stage.classes:
            assert f"<td>{shown_share(one)}</td>" in shown
            assert f"<td>{one.threshold:.4f}</td>" in shown
    assert "Certify it again" not in shown, "a reader may not"
    assert cascade.client.get("/cascades/nobody").status_code == 404


def test_the_form_has_workers_certify_it(cascade: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    cascade.sign_in(Scope.WRITE)
    fields = {"alpha": "0.2", "confidence": "0.9", "test": "finite-sample", "predicted": "on"}
    refused = cascade.send(f"{PAGE}/calibrations", **fields)
    assert refused.status_code == 503
    assert "no worker is up, so nothing was recorded" in refused.text
    monkeypatch.setattr(jobs, "live_workers", lambda _: 1)
    refused = cascade.send(f"{PAGE}/calibrations", **{**fields, "alpha": "2"})
    assert refused.status_code == 422
    assert "alpha must lie strictly between 0 and 1" in refused.text
    assert 'name="alpha" inputmode="decimal" size="6" required value="2"' in refused.text
    answer = cascade.send(f"{PAGE}/calibrations", **fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/classifiers/small/jobs")
    newest = list_jobs(cascade.runtime.engine, "small", limit=1)[0]
    assert (newest.kind, newest.state) == ("certify", "running")


def test_a_key_for_one_classifier_does_not_reach_it(cascade: Visitor) -> None:
    from venn_admit.flows.keys.keys import create

    key = create(cascade.runtime.engine, "one", scope=Scope.ADMIN, classifier="small").text
    cascade.sign_in(key=key)
    assert "Cascades" not in cascade.open("/classifiers/small")
    assert cascade.client.get(PAGE).status_code == 403


def test_only_what_has_a_certificate_is_certified_again(cascade: Visitor) -> None:
    manage.create(cascade.runtime.engine, "another", STAGES)
    cascade.sign_in(Scope.WRITE)
    assert ">Certify it again</h2>" in cascade.open(PAGE)
    assert ">Certify it</h2>" in cascade.open("/cascades/another")
