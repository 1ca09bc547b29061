"""What `calibrate` says if the default kappa leaves nearly nothing usable: a table of settings, and a proposal."""

from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from venn_admit.cli.steps import COMMANDS
from venn_admit.core.calibrators.usable_bands import NEARLY_NOTHING, UsableShares
from venn_admit.store.exemplars.classifiers import Classifier


def usable_table(shares: UsableShares) -> Table:
    """Return a table of the shares of usable points, kappa by bins of q."""
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"Share of points in usable bands, by kappa and bins of q (delta {shares.asked.delta:g})",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("kappa", justify="right")
    for edges in shares.q_bins:
        table.add_column(Text(_bins_name(edges, shares)), justify="right")
    for kappa, row in zip(shares.kappas, shares.shares, strict=True):
        table.add_row(f"{kappa:,}", *(f"{share:.1%}" for share in row))
    return table


def usable_payload(classifier: Classifier, shares: UsableShares) -> dict[str, Any]:
    """The same for programs."""
    proposed, share = shares.proposal()
    return {
        "calibration": None,
        "alpha": str(shares.asked.alpha),
        "delta": shares.asked.delta,
        "kappa": shares.asked.kappa,
        "q_bins": list(shares.asked.q_bins),
        "usable_share": shares.asked_share,
        "least_usable_share": NEARLY_NOTHING,
        "scarcest_class": classifier.class_names[shares.scarcest_class],
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
            "command": COMMANDS.calibrate(classifier.name, proposed, classifier.neighbour_count),
        },
    }


def refusal(classifier: Classifier, shares: UsableShares) -> str:
    """Return why nothing was stored, which class is the cause, and the command to run instead."""
    proposed, share = shares.proposal()
    command = COMMANDS.calibrate(classifier.name, proposed, classifier.neighbour_count)
    scarcest = shares.scarcest_class
    without_q = (
        "; one bin ignores q, so that inputs unlike the calibration data are less likely to be rejected"
        if len(proposed.q_bins) == 1
        else ""
    )
    return (
        f"no calibration was stored: with kappa {shares.asked.kappa:,} only {shares.asked_share:.1%} of the points "
        "would lie in usable bands, and all others would be rejected. A band is usable if it holds at least kappa "
        "points of every class in split mc, so one rare class starves the bands of all classes. The class that is "
        f"scarcest most often, in {shares.scarcest_share:.0%} of the bands below kappa, is "
        f"{classifier.class_names[scarcest]!r}, which has {int(shares.class_count[scarcest]):,} of "
        f"{int(shares.class_count.sum()):,} points. Run `{command}`, which leaves {share:.1%} "
        f"usable{without_q}, choose another setting from the table, or ingest more held-out data; "
        f"`--kappa {shares.asked.kappa}` stores this one anyway"
    )


def _bins_name(edges: tuple[int, ...], shares: UsableShares) -> str:
    """Return the name of the bins: one edge is one bin, and the most edges are one bin for each q."""
    if len(edges) == 1:
        return "one bin"
    return "every q" if edges == shares.q_bins[0] else ",".join(map(str, edges))
