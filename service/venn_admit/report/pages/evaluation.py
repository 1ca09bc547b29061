"""Reports on evaluation sets as self-contained HTML pages, without scripts or network."""

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path

from markupsafe import Markup

from venn_admit.core.evaluation.tallies import Verdict
from venn_admit.report.charts.charts import CHARTS, charts_of, save_charts, to_svg
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.sets import are_alike, sets_table
from venn_admit.report.evaluation.table import NONE_MARK
from venn_admit.report.evaluation.tables import evaluation_tables
from venn_admit.report.evaluation.verdicts import (
    CANNOT_TELL_NOTE,
    NONE_ADMITTED,
    answer,
    class_gap,
    class_verdicts,
    headline,
    overall_verdict,
    settling,
)
from venn_admit.report.evaluation.wording import (
    extent,
    hidden_classes,
    interval_note,
    interval_text,
    note_text,
    reservations,
)
from venn_admit.report.pages.environment import page_environment
from venn_admit.report.wording import share_text

FIGURES = {
    "methods": (
        CHARTS["methods"],
        "What the methods that matter admit, and how much of it is right: of all that is admitted, and of the class on "
        "which the method does worst. A disc meets the dotted target, because its whole interval lies at or above it; "
        "a cross misses it; a ring cannot tell.",
    ),
    "coverage": (
        CHARTS["coverage"],
        "Share right against admitted share. From the left, points are admitted in the order of their lower "
        "probability, the highest first; a curve shows the share right among those admitted so far, and a band its "
        "interval. A mark is what the method of the calibration admits: full if its interval meets the dotted target, "
        "a cross if it misses it, a ring if it cannot tell.",
    ),
    "risk": (
        CHARTS["risk"],
        "Share wrong against the share admitted. From the left, points are admitted in the order of a method's own "
        "confidence, the highest first; a lower curve ranks better, and the area under it sums that up. A mark is what "
        "the method admits, with its interval: at or below the dotted line it keeps the target over all, which "
        "says nothing of each class.",
    ),
    "reliability": (
        CHARTS["reliability"],
        "Venn probabilities against observed frequency. Each mark is a bin of points with a similar probability: the "
        "lower should not lie clearly below the diagonal, the upper not clearly above. Bins of too few points are "
        "small and grey. The lower panels show how many points a bin holds.",
    ),
    "heatmap": (
        CHARTS["heatmap"],
        "Accuracy of every prediction by q and d, none rejected. Upwards, more of the nearest neighbours agree; to the "
        "right, the point is further from the training data.",
    ),
}
WITH_INTERVALS = {"methods", "coverage", "risk", "reliability"}


def render_page(
    title: str, facts: Mapping[str, str], reports: Sequence[DatasetReport], next_steps: Sequence[str] = ()
) -> str:
    """HTML of the page.

    facts: name and value, in the order shown: the classifier, alpha, kappa, omega, the calibration's number.
    next_steps: what to try next, a line each; a line that starts with "venn-admit" or "make" is a command.
    The same arguments give the same text. Every name is escaped.
    """
    environment = page_environment()
    environment.filters |= {
        "share": share_text,
        "interval": interval_text,
        "note": note_text,
        "percent": lambda share: "-" if isnan(share) else f"{float(share * 100):.3g} %",
    }
    environment.tests["verdict"] = lambda part: isinstance(part, Verdict)
    environment.globals |= {
        word.__name__: word
        for word in (
            answer,
            class_gap,
            class_verdicts,
            extent,
            headline,
            hidden_classes,
            overall_verdict,
            reservations,
            settling,
        )
    }
    return environment.get_template("page.html.j2").render(
        title=title,
        facts=facts,
        reports=[
            (report, _charts(report, f"set{number}"), evaluation_tables(report))
            for number, report in enumerate(reports, start=1)
        ],
        side_by_side=sets_table(reports) if are_alike(reports) else None,
        has_knn=any(report.neighbour_count is not None for report in reports),
        next_steps=next_steps,
        none_mark=NONE_MARK,
        none_admitted=NONE_ADMITTED,
        cannot_tell_note=CANNOT_TELL_NOTE,
        verdicts=Verdict,
    )


def write_report(
    directory: Path,
    title: str,
    facts: Mapping[str, str],
    reports: Sequence[DatasetReport],
    next_steps: Sequence[str] = (),
) -> tuple[Path, ...]:
    """Write index.html and the PNG charts of every evaluation set; returns the paths, the page first.

    The directory is made if it is missing; files of the same names are replaced.
    """
    directory.mkdir(parents=True, exist_ok=True)
    page = directory / "index.html"
    page.write_text(render_page(title, facts, reports, next_steps), encoding="utf-8")
    return (page, *(path for report in reports for path in save_charts(report, directory)))


def _charts(report: DatasetReport, prefix: str) -> list[tuple[Markup, str]]:
    """The charts as SVG, each with its caption."""
    charts = []
    drawn = charts_of(report)
    for name, (draw, words) in FIGURES.items():
        if name not in drawn:
            continue
        caption = f"{words} Intervals are {interval_note(report)}." if name in WITH_INTERVALS else words
        svg = to_svg(draw(report), f"{prefix}-{name}", f"{report.name}: {caption}")
        # Safe: matplotlib escapes the text it draws, to_svg the label.
        charts.append((Markup(svg), caption))  # noqa: S704
    return charts
