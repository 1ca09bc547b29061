"""The terminal tables, as a terminal of 100 columns shows them, and some in narrower ones."""

import re
from collections import Counter
from collections.abc import Callable
from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from venn_admit.core.evaluation.points import WEIGHTED_ADMIT
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.terminal import report_tables
from venn_admit.report.evaluation.verdicts import CANNOT_TELL_NOTE, answer, class_gap, headline
from venn_admit.report.evaluation.wording import MARKS, interval_text, size_strata, size_tally
from venn_admit.report.wording import share_text

WIDTH = 100
GLANCE, MATTERING = "All methods at a glance", "The methods that matter at a glance"
SINGLETONS, COVERED = "Share right among singletons", "What the sets cover"
OF_SIZES = f"{COVERED}, per set size"
GREEN = "\x1b[32m"


def shown(report: DatasetReport, *, width: int = WIDTH, colour: bool = False) -> str:
    output = StringIO()
    Console(file=output, width=width, force_terminal=colour, color_system="standard" if colour else None).print(
        report_tables(report, details=True)
    )
    return output.getvalue()


def line_of(text: str, name: str) -> str:
    """The line of the first table that starts with this name."""
    tables = text[text.index(SINGLETONS) :]
    return next(line for line in tables.splitlines() if line.strip().startswith(name))


def body(text: str, title: str) -> list[str]:
    """The lines of the table with this title, from under its rule to the blank line after it."""
    lines = text[text.index(title) :].splitlines()
    start = next(i for i, line in enumerate(lines) if "──" in line) + 1
    return lines[start : next(i for i, line in enumerate(lines) if i > start and not line.strip())]


def portion(tally: Tally) -> str:
    return f"({share_text(tally.portion)})"


def judged_share(tally: Tally, report: DatasetReport) -> str:
    return f"{MARKS[tally.verdict(report.alpha)]} {share_text(tally.share)}" if tally.count else "-"


def judged_text(tally: Tally, report: DatasetReport) -> str:
    return f"{judged_share(tally, report)} {portion(tally)}" if tally.count else "-"


def in_order(line: str, parts: list[str]) -> bool:
    places = line.split()
    return places[-len(" ".join(parts).split()) :] == " ".join(parts).split()


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_gets_more_parts_and_every_figure(compared: DatasetReport, width: int) -> None:
    narrow = shown(compared, width=width)
    assert max(map(cell_len, narrow.splitlines())) <= width
    assert narrow.count("…") == shown(compared).count("…")
    figures = [re.findall(r"(?:[✓✗?] )?\.\d{3}", text) for text in (narrow, shown(compared))]
    assert Counter(figures[0]) == Counter(figures[1])
    assert narrow.count("\n ──") > shown(compared).count("\n ──")


def test_without_details_the_verdict_and_the_methods_that_matter_are_shown(compared: DatasetReport) -> None:
    output = StringIO()
    Console(file=output, width=WIDTH).print(report_tables(compared))
    brief, full = output.getvalue(), shown(compared)
    assert full.startswith(brief.rstrip())
    assert MATTERING in brief
    assert GLANCE not in brief
    assert GLANCE in full
    assert "APS" in brief
    assert "RAPS size" not in brief
    assert SINGLETONS not in brief
    assert COVERED not in brief
    assert len(brief.splitlines()) < len(full.splitlines()) / 2


@pytest.mark.parametrize("which", ["selective", "of_documents", "hostile", "many_scripts"])
def test_the_glance_is_one_table_of_a_line_per_method(which: str, request: pytest.FixtureRequest) -> None:
    report: DatasetReport = request.getfixturevalue(which)
    text = shown(report)
    assert f"{GLANCE}: how much is admitted, and how much of it is right, continued" not in text
    names = [row.name for row in report.methods if not row.name.endswith("q = K")]
    lines = body(text, GLANCE)
    assert len(lines) == len(names)
    assert all(sum(line.strip().startswith(f"{name}  ") for line in lines) == 1 for name in names)


def test_the_glance_says_of_two_classes_what_holds(selective: DatasetReport) -> None:
    lines = body(shown(selective), GLANCE)
    for row in selective.methods:
        if row.name.endswith("q = K"):
            continue
        measured = row.singletons
        tallies = [measured.overall, *measured.per_true_class, *measured.per_predicted_class]
        (line,) = (line for line in lines if line.strip().startswith(f"{row.name}  "))
        shares = " ".join(judged_share(tally, selective) for tally in tallies)
        assert f"{share_text(measured.overall.portion)} {shares} " in " ".join(line.split())
    assert " ".join(lines[-1].split()) == "certified both .000 - - - - - -"


@pytest.mark.parametrize("which", ["sentiment", "compared", "selective", "by_abers", "of_documents"])
def test_every_figure_of_two_classes_is_on_the_page_uncut(which: str, request: pytest.FixtureRequest) -> None:
    report: DatasetReport = request.getfixturevalue(which)
    text = shown(report)
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= WIDTH
    for row in report.methods:
        admitted, covered = row.singletons, row.coverage
        for tally in (*admitted.per_true_class, *admitted.per_predicted_class, admitted.overall):
            assert judged_text(tally, report) in text
        for tally in (*covered.per_true_class, *covered.per_predicted_class, covered.overall):
            assert row.name not in report.set_methods or judged_share(tally, report) in text
    for partition in report.partitions.rows if report.partitions else ():
        for cell in (*partition.per_class, partition.overall):
            assert f"{share_text(cell.tally.share)} {portion(cell.tally)}" in text
            assert share_text(cell.threshold) in text
    assert "true class" in text
    assert "predicted as" in text
    assert " ".join(headline(report).split()) in " ".join(text.split())


@pytest.mark.parametrize("which", ["compared", "of_documents"])
def test_the_interval_of_a_share_stands_below_it(which: str, request: pytest.FixtureRequest) -> None:
    report: DatasetReport = request.getfixturevalue(which)
    text = shown(report)
    selective, covered = body(text, SINGLETONS), body(text, COVERED)
    assert len(selective) == len(covered) == 2 * len(report.methods)
    for i, row in enumerate(report.methods):
        for lines, measured, cell in ((selective, row.singletons, judged_text), (covered, row.coverage, judged_share)):
            tallies = [measured.overall, *measured.per_true_class, *measured.per_predicted_class]
            assert lines[2 * i].strip().startswith("and q = K" if row.name.endswith("q = K") else row.name)
            assert in_order(lines[2 * i], [cell(tally, report) for tally in tallies])
            assert in_order(lines[2 * i + 1], [interval_text(tally.interval) for tally in tallies])


def test_coverage_by_set_size(compared: DatasetReport) -> None:
    lines = body(shown(compared), OF_SIZES)
    assert len(lines) == 2 * len(compared.methods)
    for figures, below, row in zip(lines[::2], lines[1::2], compared.methods, strict=True):
        tallies = [size_tally(row, stratum) for stratum in size_strata(compared)]
        assert in_order(figures, [f"{row.mean_size:.2f}", *(judged_text(tally, compared) for tally in tallies)])
        assert in_order(below, [interval_text(tally.interval) for tally in tallies if tally.count])
    assert lines[0].rstrip().endswith(" -")


def test_sizes_beyond_one_table_go_on_in_the_next(ten_classes: DatasetReport) -> None:
    text = shown(ten_classes)
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= WIDTH
    assert f"{OF_SIZES}, continued" in text
    for size in range(1, 11):
        assert f"size {size} " in text


def test_the_interval_is_named(compared: DatasetReport, of_documents: DatasetReport) -> None:
    assert "? cannot tell: it contains 0.9, or under 10 points" in " ".join(shown(compared).split())
    assert "? cannot tell: it contains 0.9, or under 10 documents" in " ".join(shown(of_documents).split())
    assert " ".join(shown(compared).split()).count("95 % Wilson intervals") == 4
    assert "resampled documents" not in shown(compared)
    assert " ".join(shown(of_documents).split()).count("95 % intervals from 100 resampled documents") == 4
    assert "Wilson" not in shown(of_documents)
    said = "Verdicts judge the share right by 95 % intervals from 100 resampled documents. "
    assert said in " ".join(shown(of_documents).split())


def test_parameters_and_rows_left_out_are_said(compared: DatasetReport) -> None:
    text = " ".join(shown(compared).split())
    assert "temperature 0.697; RAPS size k_reg 2, lambda 0.01." in text
    assert "12 rows are left out" in text


def test_variants_stand_under_their_method(sentiment: DatasetReport) -> None:
    text = shown(sentiment)
    lines = [line.strip() for line in text[text.index(SINGLETONS) :].splitlines()]
    weighted = next(i for i, line in enumerate(lines) if line.startswith(WEIGHTED_ADMIT) and "(" in line)
    assert lines[weighted + 2].startswith("and q = K")


def test_many_classes_fit_and_say_what_is_left_out(hostile: DatasetReport) -> None:
    text = shown(hostile)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= WIDTH
    assert "6 of 8 classes shown" in text
    assert "per predicted class" in text
    assert "a" * 20 not in text


def test_wide_characters_take_two_columns(many_scripts: DatasetReport) -> None:
    text = shown(many_scripts)
    assert max(cell_len(line.rstrip()) for line in text.splitlines()) <= WIDTH
    assert "正面…评价" in text
    assert "Rech…ften" in text


def test_names_are_not_read_as_markup(hostile: DatasetReport) -> None:
    text = shown(hostile)
    assert "<i>$set$: 160 labelled points" in text
    assert "[red…red]" in text
    assert "<b>$x [red]1 & $2." in text
    assert "\x1b[31msea" not in shown(hostile, colour=True)


def test_cells_are_coloured_and_marked(two_class_report: Callable[..., DatasetReport]) -> None:
    # True rare 12 of 22, true common 95 of 95, predicted rare 12 of 12; both kinds over all 107 of 117.
    report = two_class_report([(0, 0, 12), (0, 1, 10), (1, 1, 95)])
    row = line_of(shown(report, colour=True), WEIGHTED_ADMIT)
    assert "\x1b[1;31m✗ .545 (.188)" in row
    assert f"{GREEN}✓ 1.00 (.812)" in row
    assert "? 1.00 (.103)" in row.replace("\x1b[0m", "")
    assert "? .915 (1.00)" in row.replace("\x1b[0m", "")


def test_the_verdict_comes_first(two_class_report: Callable[..., DatasetReport]) -> None:
    report = two_class_report([(0, 0, 12), (0, 1, 1), (1, 1, 95), (1, -1, 10)])
    text = shown(report)
    words = " ".join(text.split())
    before = words[: words.index(MATTERING)]
    assert words.startswith(f"made: 118 labelled points {answer(report)}")
    for line in ("? cannot tell rare 1.00 of 12", "✓ met common .990 of 96"):
        assert line in before
    assert "about 23 more points would settle it" in before
    assert headline(report) in before
    assert CANNOT_TELL_NOTE in before
    assert len(text[: text.index(MATTERING)].splitlines()) < 15
    settled = two_class_report([(0, 0, 60), (1, 1, 95)])
    assert CANNOT_TELL_NOTE not in " ".join(shown(settled).split())


def test_shares_of_few_documents_are_never_green(of_few_documents: DatasetReport) -> None:
    text = shown(of_few_documents, colour=True)
    assert GREEN not in text
    assert "\x1b[2m? 1.00 (1.00)" in line_of(text, WEIGHTED_ADMIT)
    plain = shown(of_few_documents)
    for lines in (body(plain, SINGLETONS)[::2], body(plain, COVERED)[::2], body(plain, "Accuracy of every")[::2]):
        assert all(line.count("? 1.00") >= 4 for line in lines)
    assert line_of(plain, "any q").count("?") == 3


def test_the_gap_between_true_and_predicted_is_said(two_class_report: Callable[..., DatasetReport]) -> None:
    report = two_class_report([(0, 0, 12), (0, 1, 5), (1, 1, 95)])
    assert class_gap(report) in " ".join(shown(report).split())
    fine = two_class_report([(0, 0, 12), (1, 1, 95)])
    assert "true class rare" not in " ".join(shown(fine).split())
