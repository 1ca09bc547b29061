"""The service as a server, and a real browser that visits it."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

from tests.cli import samples
from tests.cli.databases import copied
from tests.cli.program import Program
from tests.files.samples import Columns
from tests.patience import PATIENCE_SECONDS
from venn_admit.flows.keys.keys import create
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.keys import Scope
from venn_admit.web.site import create_site

# Another name of this machine, which browsers take for another machine: they say less over plain HTTP then.
FAR = "far.example"
CHROMIUM = "VENN_ADMIT_TEST_CHROMIUM"
WIDE: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
LOGITS_ONLY = "colours without vectors"
LONG = "<b>long " + "w" * 80
# Names that do not break, that hold HTML, and that are read from right to left; the longest that may be.
LONG_CLASSES = ("x" * 200, "<script>alert(1)</script> & 'quoted'", "اسم طويل من اليمين إلى اليسار")
DISPUTED = "scored-7"
CASCADE, NEW_CASCADE = "colours, the quick classifier first", "colours, not certified"


@dataclass(frozen=True, slots=True)
class Site:
    """The service at its address, a key for everything, and the address of its database."""

    url: str
    key: str
    database_url: str


@dataclass(slots=True)
class Visit:
    """A page that is open in a browser, and what went on behind it."""

    page: Page
    url: str
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open(self, path: str) -> int:
        """Open a page, wait until nothing of it is missing, and return its status."""
        answer = self.page.goto(self.url + path)
        self.settle()
        assert answer is not None
        return answer.status

    def settle(self) -> None:
        """Wait until htmx has loaded what it loads at once."""
        self.page.wait_for_function("() => !document.querySelector('.htmx-request, [hx-trigger=load]')")

    def barriers(self) -> dict[str, list[object]]:
        """What axe-core finds that keeps people out of the page as it is now: each rule, and what breaks it."""
        found = Axe().run(self.page).response["violations"]
        return {violation["id"]: [node["target"] for node in violation["nodes"]] for violation in found}

    def check(self) -> None:
        """See that everyone can use the page as it is now."""
        self.settle()
        assert self.barriers() == {}, self.page.url


@pytest.fixture(scope="session")
def site(scored: Program, server_url: str, session_folder: Path) -> Iterator[Site]:
    """The service with decisions by two classifiers, one of which has logits only, in a thread of its own."""
    with copied(scored, server_url, session_folder / "site") as program:
        add_logits_only(program, session_folder)
        add_cascades(program, session_folder)
        add_reviews(program)
        with served(program) as made:
            yield made


def add_logits_only(program: Program, folder: Path) -> None:
    """Make a classifier without vectors, calibrate it, and decide on a few points."""

    def without_vectors(name: str, columns: Columns) -> Path:
        return samples.save(folder, name, {key: values for key, values in columns.items() if key != "vector"})

    held_out = without_vectors("bare-held-out.npz", samples.held_out())
    scored = without_vectors("bare-scored.npz", samples.take(samples.scored(), slice(10)))
    for words in (
        ("create", LOGITS_ONLY, "--classes", ",".join(samples.CLASS_NAMES), "--logits-only"),
        ("ingest", LOGITS_ONLY, held_out, "--split", "held-out"),
        ("calibrate", LOGITS_ONLY, "--method", "venn-abers", "--promise", "pointwise", "--alpha", "0.2"),
        ("score", LOGITS_ONLY, scored, "--out", folder / "bare-scores.parquet"),
        ("create", LONG, "--classes", ",".join(LONG_CLASSES), "--logits-only"),
        ("ingest", LONG, held_out, "--split", "held-out"),
        ("calibrate", LONG, "--method", "venn-abers", "--promise", "pointwise", "--alpha", "0.2"),
        ("score", LONG, scored, "--out", folder / "long-scores.parquet"),
    ):
        done = program(*words)
        assert done.code == 0, done


def add_cascades(program: Program, folder: Path) -> None:
    """Make a cascade that has two certificates, one of which certifies nothing, and one without any."""
    for words in (
        ("create", "quick colours", "--classes", ",".join(samples.CLASS_NAMES), "--logits-only"),
        ("ingest", "quick colours", folder / "bare-held-out.npz", "--split", "held-out"),
        ("calibrate", "quick colours"),
        ("cascade", "create", CASCADE, "quick colours=1", "person=40"),
        ("cascade", "calibrate", CASCADE, "--alpha", "0.01", "--certify", "predicted,true"),
        ("cascade", "calibrate", CASCADE, "--alpha", "0.4", "--confidence", "0.8"),
        ("cascade", "create", NEW_CASCADE, "quick colours=1", f"{LOGITS_ONLY}=5"),
    ):
        done = program(*words)
        assert done.code == 0, done


def add_reviews(program: Program) -> None:
    """Make a point about which two reviewers disagree, and have the visitor hold one."""
    for words in (
        ("label", samples.NAME, f"{DISPUTED}=red", "--reviewer", "anna"),
        ("label", samples.NAME, f"{DISPUTED}=green", "--reviewer", "berta"),
        ("next", samples.NAME, "--reviewer", "browser"),
    ):
        done = program("review", *words)
        assert done.code == 0, done


@contextmanager
def served(program: Program) -> Iterator[Site]:
    """The service on the database of a program."""
    runtime = Runtime.start(Settings(database_url=program.url, home=program.home))
    key = create(runtime.engine, "browser", scope=Scope.ADMIN).text
    server = uvicorn.Server(uvicorn.Config(create_site(runtime), port=0, lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.05)
            assert thread.is_alive(), "the server ended"
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Site(f"http://127.0.0.1:{port}", key, program.url)
    finally:
        server.should_exit = True
        thread.join()
        runtime.engine.dispose()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, which must be installed for these tests."""
    expect.set_options(timeout=PATIENCE_SECONDS * 1000)
    path = os.environ.get(CHROMIUM) or shutil.which("chromium")
    assert path, f"install chromium, or have {CHROMIUM} name it"
    with sync_playwright() as playwright:
        # The sandbox needs rights that containers do not have; the only pages are ours.
        args = ["--no-sandbox", f"--host-resolver-rules=MAP {FAR} 127.0.0.1"]
        found = playwright.chromium.launch(executable_path=path, args=args)
        yield found
        found.close()


def visit(context: BrowserContext, site: Site) -> Visit:
    """Open a window, and note what the browser says and asks for."""
    context.set_default_timeout(PATIENCE_SECONDS * 1000)
    made = Visit(context.new_page(), site.url)
    made.page.on("console", lambda line: made.said.append(line.text) if line.type in ("error", "warning") else None)
    made.page.on("pageerror", lambda error: made.said.append(str(error)))
    made.page.on("request", lambda request: made.asked.append(request.url))
    return made


def sign_in(visit: Visit, site: Site) -> None:
    """Sign in by the form."""
    visit.open("/sign-in")
    visit.page.get_by_label("Key").fill(site.key)
    visit.page.get_by_role("button", name="Sign in").click()
    visit.page.wait_for_url(site.url + "/")


@pytest.fixture
def visiting(browser: Browser, site: Site) -> Iterator[Visit]:
    """A window of someone who has signed in; at its end the browser must have had no reason to complain."""
    context = browser.new_context(viewport=WIDE)
    made = visit(context, site)
    sign_in(made, site)
    yield made
    context.close()
    assert made.said == []
    assert [url for url in made.asked if not url.startswith((site.url, "data:"))] == []
