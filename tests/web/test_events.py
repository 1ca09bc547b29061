"""Streams of events that pages open."""

import threading
from pathlib import Path

from tests.api.service import Service
from tests.api.test_batches import events, noting, submit
from tests.cli import samples
from tests.patience import PATIENCE_SECONDS
from tests.web.visitor import OWN, Visitor
from venn_admit.flows.jobs.control import cancel
from venn_admit.flows.keys.sessions import end
from venn_admit.web.visitors import COOKIE


def test_a_stream_ends_with_its_session(visitor: Visitor, tmp_path: Path) -> None:
    service, engine = Service(visitor.client, visitor.runtime, visitor.keys), visitor.runtime.engine
    job = submit(service, samples.save(tmp_path, "batch.parquet", samples.scored()))["job"]
    visitor.sign_in()
    session, has_begun = visitor.session, threading.Event()
    assert session is not None

    def sign_out_and_cancel() -> None:
        assert has_begun.wait(PATIENCE_SECONDS)
        end(engine, session)
        cancel(engine, job)

    signing_out = threading.Thread(target=sign_out_and_cancel)
    signing_out.start()
    watching = noting(service, b"event: progress", has_begun).client
    told = events(watching.get(f"{OWN}/jobs/{job}/events", headers={"Cookie": f"{COOKIE}={session}"}))
    signing_out.join()
    assert [kind for _, kind, _ in told] == ["progress"], "how the job ended is not told"
