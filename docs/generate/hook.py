"""The hook by which MkDocs adds the generated pages and pictures to those that are written by hand."""

from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from docs.generate.command_line import command_line_page
from docs.generate.errors import errors_page
from docs.generate.openapi import http_page, openapi_text
from docs.generate.settings import settings_page
from docs.generate.tables import tables_page
from docs.generate.views import views_page
from docs.generate.worked_example import worked_example_picture, worked_example_table

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"

GENERATED: dict[str, Callable[[], str]] = {
    "reference/command-line.md": command_line_page,
    "reference/http.md": http_page,
    "reference/openapi.json": openapi_text,
    "reference/settings.md": settings_page,
    "reference/views.md": views_page,
    "reference/tables.md": tables_page,
    "reference/errors.md": errors_page,
    "explanation/architecture.md": ARCHITECTURE.read_text,
    "explanation/worked-example.svg": worked_example_picture,
}

WORKED_EXAMPLE = "<!-- worked example: numbers -->"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every generated file, under the name by which the navigation or a page refers to it."""
    for name, write in GENERATED.items():
        files.append(File.generated(config, name, content=write()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the numbers of the worked example where a page asks for them."""
    return markdown.replace(WORKED_EXAMPLE, worked_example_table()) if WORKED_EXAMPLE in markdown else markdown
