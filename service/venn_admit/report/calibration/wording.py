"""What a report on a calibration says, as sections of sentences and tables, for the terminal and the page."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from venn_admit.advice import Render
from venn_admit.core.monitoring.drift import LEVEL, Discrepancies, growth_p_value
from venn_admit.core.monitoring.history import LabelSelection
from venn_admit.core.split_names import Split
from venn_admit.report.calibration.advice import advice
from venn_admit.report.calibration.common.coverage import coverage_pictures, coverage_section
from venn_admit.report.calibration.common.history import history_section
from venn_admit.report.calibration.common.partition_map import map_section
from venn_admit.report.calibration.common.watch import watch_section
from venn_admit.report.calibration.report import Agreement, CalibrationReport
from venn_admit.report.calibration.sections import Picture, Section, TextTable, listed
from venn_admit.report.calibration.traffic_wording import traffic_section
from venn_admit.report.fitted import FittedTable, fitted
from venn_admit.report.wording import (
    copies_apart_text,
    copies_text,
    counted,
    share_text,
    time_text,
    training_copies_text,
    unlikely_logits_text,
    waiting_text,
)
from venn_admit_client.records.certificates import CertificateLook, looks_text

SHOWN_LOOKS = 20
"""How many of the newest certificates that looked at the labels are listed."""


def heading(report: CalibrationReport) -> str:
    snapshot, state = report.snapshot, report.state
    if state == "kept current" and report.in_use is not None:
        state += f" while {report.in_use} is in use"
    return f"{report.classifier}: calibration {snapshot.id}, {state}, of {time_text(snapshot.created_at)}"


def settings_text(report: CalibrationReport) -> str:
    """Return how the calibration was made."""
    snapshot = report.snapshot
    counts = ", ".join(
        text
        for text, count in (
            (f"{counted(snapshot.mc_count, 'point')} in mc", snapshot.mc_count),
            (f"{snapshot.vp_count:,} in vp", snapshot.vp_count),
        )
        if count
    )
    made = f"method {snapshot.method}, {report.part.settings_text()}; {counts}; reason: {snapshot.reason}."
    if not snapshot.forgotten:
        return made
    have = "has" if snapshot.forgotten == 1 else "have"
    gone = f"{counted(snapshot.forgotten, 'point')} of the calibration {have} since been forgotten"
    return f"{made} {gone}; the figures below are of the others."


def sections(report: CalibrationReport, render: Render) -> list[Section]:
    """Return all of a report except its heading and its advice."""
    return [
        coverage_section(report),
        *(() if report.map is None else (map_section(report, report.map),)),
        *report.part.sections(report),
        traffic_section(report),
        watch_section(report.watch, report.classifier, render),
        history_section(report),
        *(() if report.agreement is None else (_discrepancies(report.agreement),)),
        _stored(report),
        *((_certificates(report.looks),) if report.looks else ()),
        report.part.budget(report),
    ]


def pictures(report: CalibrationReport) -> list[Picture]:
    """Return the charts of the page beside the map, the most telling first."""
    return [*coverage_pictures(report), *report.part.pictures(report)]


def queries_of_tables(report: CalibrationReport, render: Render) -> Iterator[tuple[str, str]]:
    """Yield the name and the SQL of the query behind each table that has one."""
    for section in sections(report, render):
        for part in section.parts:
            if isinstance(part, TextTable) and part.query is not None:
                yield part.query, report.queries[part.query]


def advice_text(report: CalibrationReport, render: Render) -> list[str]:
    """Return what to do next, or that there is nothing to do."""
    if found := advice(report, render):
        return found
    checked = ["no labels wait to be used"]
    if report.agreement is not None and report.agreement.at_fit is not None:
        checked.append("discrepancies have not grown")
    if report.traffic is not None and report.traffic.comparison is not None:
        checked.append(f"recent traffic is like {report.part.reference}")
    return [f"Nothing: {listed(checked)}."]


def _stored(report: CalibrationReport) -> Section:
    inventory, changes = report.inventory, report.changes
    rows = tuple(
        (split.value, f"{inventory.exemplars[split]:,}", f"{inventory.labelled[split]:,}")
        for split in Split
        if inventory.exemplars[split]
    )
    chosen = tuple(
        (
            label.selection if label.rule is None else f"by rule {label.rule}",
            f"{label.exemplars:,}",
            f"{label.calibrating:,}",
            time_text(label.first),
            time_text(label.newest),
        )
        for label in inventory.selections
    )
    where, hold = ("mc and vp", "hold") if report.snapshot.vp_count else ("mc", "holds")
    since = (
        f"Since the calibration, {counted(changes.arrived, 'labelled point')} arrived in {where}, {changes.changed:,} "
        f"changed and {changes.left:,} left."
        if changes.total
        else f"{where} {hold} exactly the points and labels of this calibration."
        if report.snapshot.chain_has_ended is None
        else "Every label that its chain can use has counted."
    )
    return Section(
        "What is stored",
        (
            TextTable(("split", "exemplars", "with a label"), rows, query="stored"),
            *([waiting_text(inventory.training_waiting)] if inventory.training_waiting else []),
            *([copies_text(inventory.copies)] if inventory.copies else []),
            *([copies_apart_text(inventory.copies_apart)] if inventory.copies_apart else []),
            *([training_copies_text(inventory.training_copies)] if inventory.training_copies else []),
            *([unlikely_logits_text(inventory.unlikely_logits)] if inventory.unlikely_logits else []),
            TextTable(("labels\noutside\ntrain", "exemplars", "calibrate", "first", "newest"), chosen, query="labels"),
            *(_rules_text(label) for label in inventory.selections if label.rule is not None),
            since,
        ),
    )


def _certificates(looks: Sequence[CertificateLook]) -> Section:
    newest = looks[0]
    rows = tuple(
        (
            str(look.calibration),
            str(look.setting),
            look.classifier,
            time_text(look.created_at),
            str(look.confidence),
            f"{look.looks:,}",
            str(look.joint_confidence),
        )
        for look in looks[:SHOWN_LOOKS]
    )
    columns = ("calibration", "setting", "classifier", "looked", "confidence", "certificates\nso far", "all hold with")
    older = len(looks) - len(rows)
    return Section(
        "Certificates that looked at the labels",
        (
            TextTable(columns, rows, query="certificates", words=(2,)),
            looks_text(newest.looks, newest.joint_confidence),
            *([f"{older:,} older ones are not shown here; the SQL and JSON have them."] if older else []),
        ),
    )


def _rules_text(label: LabelSelection) -> str:
    rates = " to ".join(sorted({f"{rate:.3g}" for rate in (label.least_probability, label.largest_probability)}))
    return f"Rule {label.rule} of audits drew the points of its reviews with probability {rates}."


def _discrepancies(agreement: Agreement) -> Section:
    def row(name: str, counted: Discrepancies) -> tuple[str, ...]:
        p_value = "" if agreement.at_fit is None else share_text(growth_p_value(agreement.at_fit, counted))
        return (*plain(name, counted), p_value if counted.points else "-")

    def plain(name: str, counted: Discrepancies) -> tuple[str, ...]:
        return (name, f"{counted.points:,}", f"{counted.differing:,}", share_text(counted.share))

    now = (row("mc and vp", agreement.held_out), row("scored", agreement.scored))
    columns = ("", "points", "differ", "share", "p")
    query = "discrepancies"
    title = "Where neighbours and network differ"
    if agreement.at_fit is None:
        given = "The KNN's parameters were given, not fitted, so there is no fit to compare with."
        return Section(title, (TextTable(columns[:-1], tuple(cells[:-1] for cells in now), query=query), given))
    return Section(
        title,
        (TextTable(columns, ((*plain("at the fit (dev half)", agreement.at_fit), ""), *now), query=query),),
        (
            "p: the probability of such an increase since the fit by chance (one-sided two-proportion z-test); below "
            f"{LEVEL} it counts as an increase.",
        ),
    )


def calibration_tables(report: CalibrationReport, render: Render) -> RenderableType:
    """Return the whole report; what to do next comes last, next to the prompt."""
    advice = Group(
        Text("What to do next", style="bold"), *(Text(line, style="yellow") for line in advice_text(report, render))
    )
    parts = [
        Group(Text(heading(report), style="bold"), Text(settings_text(report))),
        *map(drawn_section, sections(report, render)),
        advice,
    ]
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts))


def section_tables(title: str, sections: Sequence[Section]) -> RenderableType:
    """Return sections under a title."""
    parts = [Text(title, style="bold"), *map(drawn_section, sections)]
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts))


def drawn_section(section: Section) -> RenderableType:
    """Return one part of a report."""
    return Group(
        Text(section.title, style="bold"),
        *(Text(part) if isinstance(part, str) else _table(part) for part in section.parts),
        *(Text(note, style="dim") for note in section.notes),
    )


def _table(table: TextTable) -> FittedTable:
    rows = [list(map(Text, row)) for row in table.rows]
    return fitted(table.columns, rows, words={0, *table.words}, last_is_total=table.last_is_total)
