"""What calibrating shows: bands that other settings would leave usable, and cells with their certificate."""

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from venn_admit.advice import Step, Verb
from venn_admit.cli.advice import command
from venn_admit.cli.output import output, print_result
from venn_admit.cli.tables.rows import facts, table
from venn_admit.core.calibrators.usable_bands import NEARLY_NOTHING, UsableShares
from venn_admit.flows.calibration.calibrate import Calibrated, NearlyNothingUsable
from venn_admit.methods.method import CellBasis
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.report.calibration.cells.average import average_section
from venn_admit.report.calibration.cells.average import outcome_text as average_text
from venn_admit.report.calibration.cells.certified import certificate_section, unpromised_text
from venn_admit.report.calibration.cells.certified import outcome_text as certified_text
from venn_admit.report.calibration.cells.wording import chosen_by_text
from venn_admit.report.calibration.wording import drawn_section
from venn_admit.report.wording import counted
from venn_admit.results import calibrated_json, far_less_of

if TYPE_CHECKING:  # counts are tried by fits, which bring torch
    from venn_admit.core.approximation.neighbour_counts import TriedCount


def usable_table(shares: UsableShares) -> RenderableType:
    """Return a table of the shares of usable points, kappa by bins of q."""
    names = [_bins_name(edges, shares) for edges in shares.q_bins]
    rows = [
        (kappa, *(f"{share:.1%}" for share in row)) for kappa, row in zip(shares.kappas, shares.shares, strict=True)
    ]
    title = f"Share of points in usable bands, by kappa and bins of q (delta {shares.asked.delta:g})"
    return table(("kappa", *names), rows, title=title, right=names)


def usable_payload(found: NearlyNothingUsable) -> dict[str, Any]:
    """The same for programs."""
    shares = found.shares
    proposed, share = shares.proposal()
    return {
        "calibration": None,
        "alpha": str(shares.asked.alpha),
        "delta": shares.asked.delta,
        "kappa": shares.asked.kappa,
        "q_bins": list(shares.asked.q_bins),
        "usable_share": shares.asked_share,
        "least_usable_share": NEARLY_NOTHING,
        "scarcest_class": found.classifier.class_names[shares.scarcest_class],
        "scarcest_share": shares.scarcest_share,
        "table": [
            {"kappa": kappa, "q_bins": list(edges), "usable_share": float(cell)}
            for kappa, row in zip(shares.kappas, shares.shares, strict=True)
            for edges, cell in zip(shares.q_bins, row, strict=True)
        ],
        "proposal": {
            "kappa": proposed.kappa,
            "q_bins": list(proposed.q_bins),
            "usable_share": share,
            "command": command(found.step),
        },
    }


def _bins_name(edges: tuple[int, ...], shares: UsableShares) -> str:
    """Return the name of the bins: one edge is one bin, and the most edges are one bin for each q."""
    if len(edges) == 1:
        return "one bin"
    return "every q" if edges == shares.q_bins[0] else ",".join(map(str, edges))


def print_cells(done: Calibrated, made: MadeByAbers, as_json: bool) -> None:
    """Print what Venn-Abers made."""
    choice, asked, certificate = made.choice, done.method_settings, made.certificate
    points = f"{done.mc_count:,} mc" + (f", {done.vp_count:,} vp" if asked.has_policy else "")
    lines = [
        f"{standing_text(done)}: method venn-abers, alpha {asked.alpha}, score {choice.score}; "
        f"points: {points}{written_text(done)}."
    ]
    if done.classifier.knn is None:
        lines.append("The classifier has logits only, so the score is the network's: there is no other.")
    if chosen_by := chosen_by_text(asked, choice.network_share, choice.reliability_share):
        lines.append(chosen_by)
    print_result(as_json, calibrated_json(done), *lines, *far_less_lines(done))
    if certificate is not None and not as_json:
        output.print(
            drawn_section(
                certificate_section(certificate, done.classifier.class_names, has_average=made.average is not None)
            )
        )
    if made.average is not None and not as_json:
        output.print(drawn_section(average_section(made.average, done.classifier.class_names)))


def standing_text(done: Calibrated) -> str:
    """Say what became of a calibration."""
    if not done.is_stored:
        return "Dry run, no calibration is stored"
    return f"Calibration {done.calibration_id} is {'in use' if done.withheld is None else 'stored and not in use'}"


def written_text(done: Calibrated) -> str:
    """Say how many rows were written; nothing of a dry run."""
    return f"; {counted(done.changed.opened, 'row')} written" if done.is_stored else ""


def far_less_lines(done: Calibrated) -> list[str]:
    """Say of a calibration that admits far less than the one before whether it is in use, and how to change that."""
    if done.far_less is None:
        return []
    said, is_withheld = far_less_of(done.far_less), done.far_less.is_withheld
    if not done.is_stored:
        would = "be stored and not put in use" if is_withheld else "be in use, since its setting was asked for"
        return [f"It would {would}: {said}."]
    step = Step(
        Verb.USE,
        classifier=done.classifier.name,
        calibration=done.calibration_id if is_withheld else done.far_less.before,
    )
    if is_withheld:
        return [f"It is not in use because {said}. `{command(step)}` puts it in use all the same."]
    return [f"It is in use since its setting was asked for: {said}. `{command(step)}` puts that one in use again."]


def outcome_lines(made: MadeByAbers, class_names: Sequence[str]) -> list[str]:
    """Return what is promised, and what is not, in sentences."""
    certificate, average = made.certificate, made.average
    lines = []
    if certificate is not None:
        lines.append(certified_text(certificate, class_names, has_average=average is not None))
        if certificate.policy is not None and certificate.unpromised:
            lines.append(unpromised_text(certificate, class_names))
    if average is not None:
        lines.append(average_text(average))
    return lines


def print_basis(basis: CellBasis) -> None:
    """Print the cell and the features of the score, then the steps."""
    rests_on = (
        ("score", basis.score_kind),
        *((name, f"{value:.6g}") for name, value in basis.features.items()),
        ("points of mc in the cell", basis.cell_size),
        ("of these right", basis.cell_right),
        ("threshold", "never" if basis.threshold is None else f"{basis.threshold:.6g}"),
    )
    output.print(facts("What it rests on", rests_on))
    steps = (
        (f"below {basis.step_from:.6g}", basis.before),
        (f"{_own_scores(basis)} (this one)", basis.own),
        (f"from {basis.step_below:.6g}", basis.after),
    )
    rows = [(scores, f"{of.lower:.6g}", f"{of.upper:.6g}") for scores, of in steps if of is not None]
    columns = ("scores", "lower", "upper")
    output.print(table(columns, rows, title="Plain probabilities by score", right=columns[1:]))


def _own_scores(basis: CellBasis) -> str:
    first = f"from {basis.step_from:.6g}" if isfinite(basis.step_from) else ""
    last = f"below {basis.step_below:.6g}" if isfinite(basis.step_below) else ""
    return " ".join(part for part in (first, last) if part) or "any"


def tried_table(tried: "Sequence[TriedCount]") -> RenderableType:
    """Return a row for each K."""
    rows = [
        (
            one.neighbour_count,
            f"{one.discrepancies:,} of {one.points:,}",
            f"{one.full_matches:.1%}",
            f"{one.separation:.3f}",
        )
        for one in tried
    ]
    columns = ("K", "differ from the network", "q = K", "separation")
    return table(columns, rows, title="What each K makes of split knn", right=columns)


def chosen_line(chosen: "TriedCount") -> str:
    """Return which K was taken, and what the columns mean."""
    return (
        f"K is {chosen.neighbour_count} from now on: the smallest whose separation is about the largest, of those that "
        "differ from the network about as rarely as any. separation: the share of pairs of a right and a wrong "
        "prediction in which the right one has the larger q; .5 is chance."
    )


def tried_payload(tried: "Sequence[TriedCount]", chosen: "TriedCount") -> dict[str, Any]:
    """The same for programs."""
    return {"k": chosen.neighbour_count, "tried": [asdict(one) for one in tried]}
