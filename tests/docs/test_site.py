"""The documentation builds without a warning, which includes its links, and loads nothing from elsewhere."""

import os
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import typer

import venn_admit
import venn_admit_client as client
from venn_admit.cli.program import app
from venn_admit.errors import OutdatedError
from venn_admit.runtime.settings import FIELDS, variable
from venn_admit.store.database.tables import tables

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]


def build(site: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site), *options]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.returncode == 0, built.stderr
    return folder


class _Loaded(HTMLParser):
    """Collects what a page loads: everything that it refers to, except by a link to click on."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            follows = tag == "a" or (tag == "link" and dict(attrs).get("rel") in ("canonical", "next", "prev"))
            if name in ("src", "href", "srcset", "data", "action") and not follows:
                self.addresses.append(value or "")


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        loaded = _Loaded()
        loaded.feed(page.read_text())
        assert loaded.addresses
        elsewhere = [address for address in loaded.addresses if re.match(r"\w+:|//", address)]
        assert elsewhere == [], page
        # The theme's script would load its renderer from a CDN.
        assert 'class="mermaid"' not in page.read_text(), page
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style.read_text()), style


def test_the_references_hold_what_the_program_has(site: Path) -> None:
    def reference(name: str) -> str:
        page = (site / "reference" / f"{name}.html").read_text()
        return unescape(re.sub("</?code>", "`", page))

    program: Any = typer.main.get_command(app)
    for name, command in program.commands.items():
        assert (f">venn-admit {name}<" in reference("command-line")) != command.hidden, name
    for name, field in FIELDS.items():
        assert f"`{variable(name)}`" in reference("settings")
        assert field.metadata["description"] in reference("settings")
    for table in tables().tables.values():
        section = reference("tables").partition(f'id="{table.name}"')[2].partition("<h2")[0]
        for column in table.columns:
            assert f"`{column.name}`" in section, column
            assert str(column.comment) in section, column
    for view in (ROOT / "migrations" / "routines").rglob("*.sql"):
        # A later form of a view has its name.
        for name in re.findall(r"CREATE VIEW report\.(\w+)", view.read_text()):
            assert f">report.{name}<" in reference("views")
    assert f"`{OutdatedError.__name__}`" in reference("errors")


def test_every_public_name_of_the_package_is_in_its_reference(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text()
    for name in venn_admit.__all__:
        assert f'id="venn_admit.{name}"' in page, name
    for method in ("create", "classifier", "close"):
        assert f'id="venn_admit.Connection.{method}"' in page
    for method in ("ingest", "fit", "calibrate", "score", "decide", "evaluate", "label", "recalibrate", "report"):
        assert f'id="venn_admit.Classifier.{method}"' in page


def test_every_public_name_of_the_client_is_in_its_reference(site: Path) -> None:
    page = (site / "reference" / "client.html").read_text()
    for name in client.__all__:
        assert f'id="venn_admit_client.{name}"' in page, name
    for method in (name for name in dir(client.Classifier) if not name.startswith("_")):
        assert f'id="venn_admit_client.Classifier.{method}"' in page, method


@pytest.mark.parametrize("broken", ["[gone](gone.md)", "[gone](tutorial.md#gone)"])
def test_a_broken_link_fails_the_build(tmp_path: Path, broken: str) -> None:
    """A small site with the settings of mkdocs.yml."""
    configuration = (ROOT / "mkdocs.yml").read_text()
    validation = re.search(r"^validation:\n(?:  .*\n)+", configuration, re.MULTILINE)
    assert validation is not None
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(broken)
    (tmp_path / "docs" / "tutorial.md").write_text("# Tutorial\n")
    (tmp_path / "mkdocs.yml").write_text(f"site_name: small\n{validation.group()}")
    built = build(tmp_path / "site", "--config-file", str(tmp_path / "mkdocs.yml"))
    assert built.returncode != 0
    assert "gone" in built.stderr
