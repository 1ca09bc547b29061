"""The hook by which MkDocs adds the generated pages and pictures to those that are written by hand."""

from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from docs.generate.command_line import command_line_page
from docs.generate.decisions import reasons_table, scores_table
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

# What is put into pages that are written by hand, by the comment that stands there.
INSERTED: dict[str, Callable[[], str]] = {
    "<!-- worked example: numbers -->": worked_example_table,
    "<!-- scores -->": scores_table,
    "<!-- reasons -->": reasons_table,
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every generated file, under the name by which the navigation or a page refers to it."""
    for name, write in GENERATED.items():
        files.append(File.generated(config, name, content=write()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put generated tables where a page asks for them."""
    for comment, write in INSERTED.items():
        if comment in markdown:
            markdown = markdown.replace(comment, write())
    return markdown
