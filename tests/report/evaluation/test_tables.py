"""The terminal, the figure and the page show the cells of one model, all of them and no others."""

import re
from html import unescape
from io import StringIO

import pytest
from matplotlib.figure import Figure
from matplotlib.table import Table
from rich.console import Console

from venn_admit.report.charts.drawn_methods import draw_table
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.table import Cell, EvaluationTable
from venn_admit.report.evaluation.tables import evaluation_tables
from venn_admit.report.evaluation.terminal import table_view
from venn_admit.report.evaluation.wording import note_text
from venn_admit.report.pages.evaluation import render_page

pytestmark = pytest.mark.usefixtures("blank_charts")

REPORTS = ["compared", "selective", "by_abers", "of_few_documents", "hostile", "ten_classes", "many_scripts"]


def tables_of(report: DatasetReport) -> list[EvaluationTable]:
    tables = evaluation_tables(report)
    return [tables.glance, *tables.details]


def words(cells: list[Cell]) -> list[str]:
    """What is read in some cells: marks and figures in any order."""
    return sorted(f"{cell.figures()} {cell.below}".strip() for cell in cells)


def figures(text: str) -> list[str]:
    """The marks, figures and dashes of a text, sorted."""
    return sorted(re.findall(r"(?<![^\s])(?:[✓✗?]|\(?[<>]?\d*\.\d+(?:-\d*\.\d+)?\)?|-)(?![^\s])", text))


@pytest.mark.parametrize("which", REPORTS)
def test_the_three_renderings_hold_the_same_cells(which: str, request: pytest.FixtureRequest) -> None:
    report: DatasetReport = request.getfixturevalue(which)
    page = render_page("T", {}, [report])
    for table in tables_of(report):
        cells = [cell for row in table.rows for cell in row.cells]
        assert all(len(row.cells) == len(table.columns) for row in table.rows)
        expected = words(cells)
        assert words_of_page(page, table) == expected
        assert words_of_figure(table) == expected
        assert figures_of_terminal(table) == figures(" ".join(expected))


@pytest.mark.parametrize("which", REPORTS)
def test_the_three_renderings_say_the_same_below_the_cells(which: str, request: pytest.FixtureRequest) -> None:
    report: DatasetReport = request.getfixturevalue(which)
    page = plain(render_page("T", {}, [report]))
    for table in tables_of(report):
        figure = Figure(figsize=(17, 5))
        draw_table(figure, table, 17)
        drawn = " ".join(figure.axes[0].texts[-1].get_text().split())
        terminal = " ".join(on_terminal(table).split())
        for note in table.notes:
            said = " ".join("".join(map(note_text, note)).split())
            assert said in drawn
            assert said in terminal
            assert said in page


def words_of_page(page: str, table: EvaluationTable) -> list[str]:
    start = page.index(f"<caption>{table.title}</caption>")
    rows = page[start : page.index("</table>", start)]
    return sorted(plain(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", rows, flags=re.DOTALL))


def plain(html: str) -> str:
    """What is seen of some HTML."""
    seen = re.sub(r'<span class="unseen">[^<]*</span>', "", html)
    return " ".join(unescape(re.sub(r"<[^>]*>", "", seen)).split())


def words_of_figure(table: EvaluationTable) -> list[str]:
    figure = Figure(figsize=(17, 5))
    draw_table(figure, table, 17)
    drawn = next(child for child in figure.axes[0].get_children() if isinstance(child, Table))
    cells = drawn.get_celld().items()
    return sorted(
        " ".join(cell.get_text().get_text().split()) for (line, column), cell in cells if line > 0 and column >= 0
    )


def on_terminal(table: EvaluationTable) -> str:
    output = StringIO()
    Console(file=output, width=100).print(table_view(table))
    return output.getvalue()


def figures_of_terminal(table: EvaluationTable) -> list[str]:
    """Return the figures of the rows of every part, which stand between a rule and the next title or note."""
    lines, shown, within = on_terminal(table).splitlines(), [], False
    for line in lines:
        if "───" in line:
            within = True
        elif line and not line.startswith(" "):
            within = False
        elif within:
            shown.append(line.replace("1 - alpha", ""))  # the name of a method
    return figures(" ".join(shown))
