"""The terminal tables, as a terminal of 100 columns shows them."""

from collections.abc import Callable
from io import StringIO

from rich.console import Console

from service.report.dataset import RECOMMENDED, DatasetReport
from service.report.tables import report_tables
from service.report.wording import class_gap, headline, judged_text, share_text, tally_text

WIDTH = 100


def shown(report: DatasetReport, *, colour: bool = False) -> str:
    output = StringIO()
    Console(file=output, width=WIDTH, force_terminal=colour, color_system="standard" if colour else None).print(
        report_tables(report)
    )
    return output.getvalue()


def line_of(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.strip().startswith(name))


def test_every_figure_of_two_classes_is_on_the_page_uncut(sentiment: DatasetReport) -> None:
    text = shown(sentiment)
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= WIDTH
    for row in sentiment.methods:
        for tally in (*row.selective.per_true_class, *row.selective.per_predicted_class, row.selective.overall):
            assert judged_text(tally, sentiment) in text
    for partition in sentiment.partitions.rows:
        for cell in (*partition.per_class, partition.overall):
            assert f"{share_text(cell.threshold)} {tally_text(cell.tally)}" in text
    assert "true class" in text
    assert "predicted as" in text
    assert " ".join(headline(sentiment).split()) in " ".join(text.split())


def test_variants_stand_under_their_method(sentiment: DatasetReport) -> None:
    lines = [line.strip() for line in shown(sentiment).splitlines()]
    weighted = next(i for i, line in enumerate(lines) if line.startswith(RECOMMENDED) and "(" in line)
    assert lines[weighted + 1].startswith("and q = K")


def test_many_classes_fit_and_say_what_is_left_out(hostile: DatasetReport) -> None:
    text = shown(hostile)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= WIDTH
    assert "6 of 8 classes shown" in text
    assert "per predicted class" in text
    assert "a" * 20 not in text


def test_names_are_not_read_as_markup(hostile: DatasetReport) -> None:
    text = shown(hostile)
    assert "<i>$set$: 160 labelled points" in text
    assert "[red]sea…" in text
    assert "\x1b[31msea" not in shown(hostile, colour=True)


def test_cells_are_coloured_and_marked(two_class_report: Callable[..., DatasetReport]) -> None:
    # True rare 12 of 17, true common 95 of 95, predicted rare 9 of 9.
    report = two_class_report([(0, 0, 9), (0, 1, 8), (1, 1, 95)])
    row = line_of(shown(report, colour=True), RECOMMENDED)
    assert "\x1b[1;31m✗ .529 (.152)" in row
    assert "\x1b[32m✓ 1.00 (.848)" in row
    assert "\x1b[2m? 1.00 (.080)" in row


def test_the_gap_between_true_and_predicted_is_said(two_class_report: Callable[..., DatasetReport]) -> None:
    report = two_class_report([(0, 0, 12), (0, 1, 5), (1, 1, 95)])
    assert class_gap(report) in " ".join(shown(report).split())
    fine = two_class_report([(0, 0, 12), (1, 1, 95)])
    assert "Every predicted class holds" not in shown(fine)
