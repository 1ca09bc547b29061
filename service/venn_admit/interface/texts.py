"""Results as text, as `print` shows them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from venn_admit.interface.results import text_of
from venn_admit.report.evaluation.glance import EACH_CLASS, MOST_SINGLE_CLASSES, NAME_WIDTH, WORST_CLASS
from venn_admit.report.evaluation.table import Cell, Column, EvaluationTable, Row
from venn_admit.report.evaluation.terminal import table_view
from venn_admit.report.evaluation.wording import PREDICTED, TRUE, interval_text, share_text
from venn_admit.report.wording import thresholds_text

if TYPE_CHECKING:
    from venn_admit.interface.results import Calibration, ClassShare, Comparison, Decision, SettingOutcome

_NEAREST = 5
_MOST_EDGES = 6


def calibration_text(made: "Calibration") -> str:
    """Return a calibration in some lines."""
    return "\n".join(_calibration_lines(made))


def _calibration_lines(made: "Calibration") -> Iterator[str]:
    own = f"score {made.score}" if made.delta is None else f"delta {made.delta:g}, kappa {made.kappa:,}"
    yield f"Calibration {made.id}: {made.method}, alpha {made.alpha}, {own}"
    certificate = made.certificate
    if certificate is None or certificate.is_certified:
        yield f"  thresholds {thresholds_text(made.thresholds)}; bins of q {_edges(made.q_bins)}"
    yield f"  {made.mc_points:,} points in mc, {made.vp_points:,} in vp"
    if made.usable_share is not None and made.singleton_share is not None:
        yield (
            f"  {made.usable_share:.1%} of vp in bands with enough points; a set with a single class for "
            f"{made.singleton_share:.1%}"
        )
    if certificate is not None:
        kinds = " and ".join(certificate.kinds)
        if certificate.is_certified:
            yield (
                f"  certified for {kinds} classes with confidence {certificate.confidence}; the policy admits "
                f"{certificate.admitted or 0:.1%} of vp"
            )
        else:
            yield f"  not certified for {kinds} classes, so that everything is rejected"


def _edges(edges: Sequence[int]) -> str:
    if len(edges) > _MOST_EDGES and tuple(edges) == tuple(range(len(edges))):
        return f"0, 1, ..., {edges[-1]}"
    return ", ".join(map(str, edges))


def decision_text(made: "Decision") -> str:
    """Return a decision in some lines, with the nearest training exemplars."""
    return "\n".join(_decision_lines(made))


def _decision_lines(made: "Decision") -> Iterator[str]:
    if made.admitted is None:
        yield f"Rejected: {made.reason}; predicted is {made.predicted}"
    else:
        yield f"Admitted: {made.admitted}"
    if made.lower is not None and made.upper is not None:
        yield f"  right with a probability of {made.lower:.3f} to {made.upper:.3f}, by calibration {made.calibration}"
    else:
        yield f"  by calibration {made.calibration}"
    if made.match_count is None or made.distance is None:
        return
    yield f"  q = {made.match_count} of the nearest training exemplars match in a row; d = {made.distance:.4g}"
    for neighbour in made.neighbours[:_NEAREST]:
        yield f"    {neighbour.distance:.4g}  {neighbour.label}  {neighbour.id}"
    if len(made.neighbours) > _NEAREST:
        yield f"    and {len(made.neighbours) - _NEAREST} more, in .neighbours"


def comparison_text(found: "Comparison") -> str:
    """Return a row for each setting that admits anything, and the proposal."""
    admitting = [one for one in found.outcomes if one.admitted_share]
    notes = [*(f"Left out: {what}: {why}." for what, why in found.left_out.items()), _proposal(found)]
    if none := len(found.outcomes) - len(admitting):
        notes.insert(0, f"{none} setting{' admits' if none == 1 else 's admit'} nothing.")
    if not admitting:
        return text_of(Group(*map(Text, notes)))
    table = EvaluationTable(
        f"What settings admit of {found.judged_points:,} points of mc by cross-fitting, and the share right of it "
        f"(alpha {found.alpha})",
        ("method", "setting"),
        _columns(admitting[0]),
        tuple(Row((str(one.settings["method"]), _setting(one)), _cells(one)) for one in admitting),
        tuple((note,) for note in notes),
    )
    return text_of(table_view(table))


def _setting(one: "SettingOutcome") -> str:
    settings = one.settings
    own = f"kappa {settings['kappa']:,}" if "kappa" in settings else f"score {settings['score']}"
    return f"{own}, q {_edges(settings['q_bins'])}"


def _columns(one: "SettingOutcome") -> tuple[Column, ...]:
    columns = [Column("admitted")]
    for kind, shares in ((TRUE, one.per_true_class), (PREDICTED, one.per_predicted_class)):
        if len(shares) <= MOST_SINGLE_CLASSES:
            columns += [Column(share.label, EACH_CLASS[kind], NAME_WIDTH) for share in shares]
        else:
            columns.append(Column("the lowest", WORST_CLASS[kind]))
    return tuple(columns)


def _cells(one: "SettingOutcome") -> tuple[Cell, ...]:
    cells = [Cell(share_text(one.admitted_share), interval_text(one.admitted_interval))]
    for shares in (one.per_true_class, one.per_predicted_class):
        if len(shares) <= MOST_SINGLE_CLASSES:
            cells += [_cell(share) for share in shares]
        else:
            known = [share for share in shares if share.share is not None]
            lowest = min(known, key=lambda share: share.share or 0, default=None)
            cells.append(Cell() if lowest is None else _cell(lowest, f" {lowest.label}"))
    return tuple(cells)


def _cell(share: "ClassShare", beside: str = "") -> Cell:
    return Cell() if share.share is None else Cell(share_text(share.share), f"{interval_text(share.interval)}{beside}")


def _proposal(found: "Comparison") -> str:
    target = 1 - found.alpha
    if found.proposal is None:
        return f"In no setting does every class reach {target}, so none is proposed."
    return (
        f"Among those in which every class reaches {target}, {found.proposal.settings['method']} with "
        f"{_setting(found.proposal)} admits most: classifier.calibrate(**comparison.proposal.settings)."
    )
