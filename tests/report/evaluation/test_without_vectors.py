"""An evaluation of a classifier with logits only: what is left of it, and what is said of the rest."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.report.samples import ALPHA, bare_points
from venn_admit.errors import InvalidInputError
from venn_admit.report.charts.charts import save_png, summary_figure
from venn_admit.report.evaluation.dataset import DatasetReport, build_dataset_report
from venn_admit.report.evaluation.payload import report_payload
from venn_admit.report.evaluation.terminal import report_tables
from venn_admit.report.evaluation.wording import reservations
from venn_admit.report.pages.evaluation import render_page, write_report

OF_NETWORK = [
    "RAPS adaptiveness",
    "RAPS size",
    "APS",
    "softmax >= 1 - alpha",
    "SGR",
    "Venn-Abers network",
    "certified",
    "on average",
]
SAID = "The classifier has logits only, so what needs its vectors is left out: KNN, Conf_BASE, LocalConf, ADMIT"


def test_the_methods_on_the_network_are_as_they_are_with_vectors(
    logits_only: DatasetReport, by_abers: DatasetReport
) -> None:
    assert [row.name for row in logits_only.methods] == ["network", *OF_NETWORK]
    for name in ("network", *OF_NETWORK):
        assert logits_only.method(name) == by_abers.method(name), name
    assert [row.name for row in logits_only.accuracy] == ["network"]
    assert (logits_only.partitions, logits_only.grid) == (None, None)
    assert [one.name for one in logits_only.risk_curves] == ["softmax >= 1 - alpha", "Venn-Abers network"]


@pytest.mark.usefixtures("blank_charts")
def test_it_is_said_what_is_left_out_and_why(logits_only: DatasetReport, by_abers: DatasetReport) -> None:
    assert reservations(by_abers) == ()
    (said,) = reservations(logits_only)
    assert said.startswith(SAID)
    assert said in report_payload(logits_only)["notes"]
    console = Console(file=StringIO(), width=100)
    with console.capture() as captured:
        console.print(report_tables(logits_only, details=True))
    words = " ".join(captured.get().split())
    assert SAID in words
    rest = words.replace(said, "")
    assert not [name for name in ("KNN", "ADMIT", "q = K") if name in rest]
    # Without the sources, which name the paper.
    html = " ".join(render_page("Demo", {}, [logits_only]).partition("<footer")[0].split())
    assert html.count(SAID) == 1
    assert not [name for name in ("KNN", "ADMIT", "q = K") if name in html.replace(said, "")]


@pytest.mark.usefixtures("blank_charts")
def test_there_is_no_chart_of_q_and_d(logits_only: DatasetReport, tmp_path: Path) -> None:
    written = write_report(tmp_path, "Demo", {}, [logits_only])
    charts = ["coverage", "methods", "reliability", "risk", "summary"]
    assert sorted(path.name for path in written) == ["index.html", *(f"test-{name}.png" for name in charts)]
    sheet = summary_figure(logits_only)  # with all of them
    assert save_png(sheet, tmp_path / "sheet.png", dots_per_inch=40).stat().st_size > 10_000
    titles = [part.get_suptitle() for part in sheet.subfigs]
    assert "Accuracy of every prediction, none rejected" in titles


def test_a_report_without_vectors_has_no_k() -> None:
    with pytest.raises(InvalidInputError, match="pass both or neither"):
        build_dataset_report("test", ("negative", "positive"), bare_points(slice(50)), 25, ALPHA)


def test_points_are_checked_without_a_knn() -> None:
    points = bare_points(slice(50))
    points.label[3] = 2
    with pytest.raises(InvalidInputError, match=r"label must lie in \[0, 2\), got 2 in row 3"):
        build_dataset_report("test", ("negative", "positive"), points, None, ALPHA)
