"""What the method of a calibration promises is said alike on a terminal, in JSON and on the page."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.report.evaluation.test_terminal import shown
from tests.report.samples import ALPHA, abers_points
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.comparison.selective import certified_for
from venn_admit.report.evaluation.dataset import DatasetReport, build_dataset_report
from venn_admit.report.evaluation.payload import report_payload
from venn_admit.report.evaluation.verdicts import class_gap
from venn_admit.report.pages.evaluation import render_page


def certified_report(kinds: Sequence[ClassKind]) -> DatasetReport:
    """A calibration with a certificate for these kinds of classes, beside the rival that is certified for both."""
    points = abers_points(slice(300))
    name = certified_for(kinds)
    (own,) = (one for one in points.selective if points.calibrated_by and one.name == points.calibrated_by.name)
    assert points.calibrated_by is not None
    points = replace(
        points,
        calibrated_by=replace(points.calibrated_by, name=name),
        selective=(*(one for one in points.selective if one.name != name), replace(own, name=name)),
    )
    return build_dataset_report("test", ("negative", "positive"), points, 25, ALPHA)


@pytest.mark.usefixtures("blank_charts")
@pytest.mark.parametrize(
    ("kinds", "promise"),
    [
        ((ClassKind.PREDICTED,), Promised.PREDICTED),
        ((ClassKind.TRUE,), Promised.TRUE),
        (tuple(ClassKind), Promised.BOTH),
    ],
)
def test_a_certificate_is_shown_with_the_kinds_that_it_is_about(
    kinds: tuple[ClassKind, ...], promise: Promised
) -> None:
    report = certified_report(kinds)
    told = report_payload(report)["methods"][report.own]
    assert (told["promise"], told["promise_sentence"]) == (promise, promise.sentence)

    text = shown(report)
    row = next(line for line in text[text.index("at a glance") :].splitlines() if report.own in line)
    assert row.removeprefix(f" {report.own}").split()[0] == promise
    assert promise.sentence in " ".join(text.split())

    page = render_page("Certified", {}, [report], [])
    found = re.search(rf'scope="row">{report.own}</th>(.*?)</tr>', page, re.DOTALL)
    assert found is not None
    assert re.sub(r"<[^>]*>", " ", found[1]).split()[0] == promise
    assert promise.sentence in " ".join(page.split())


@pytest.mark.parametrize("kinds", [(ClassKind.PREDICTED,), (ClassKind.TRUE,), tuple(ClassKind)])
def test_only_a_certificate_for_true_classes_is_said_to_be_about_them(
    two_class_report: Callable[[list[tuple[int, int, int]]], DatasetReport], kinds: tuple[ClassKind, ...]
) -> None:
    report = two_class_report([(0, 0, 50), (0, 1, 20), (1, 1, 950)])
    name = certified_for(kinds)
    methods = tuple(replace(row, name=name) if row.name == report.own else row for row in report.methods)
    said = class_gap(replace(report, own=name, methods=methods))
    assert ("is about true classes too" in said) == (ClassKind.TRUE in kinds)
    assert ("promises nothing of true classes" in said) == (ClassKind.TRUE not in kinds)
