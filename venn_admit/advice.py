"""What a program should do next, said in terms of this package."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from venn_admit.service.flows.awaited import NearlyNothingUsable


def refusal(found: "NearlyNothingUsable") -> str:
    """Say why no calibration was stored, and which settings leave more."""
    shares, classes = found.shares, found.classifier.class_names
    proposed, share = shares.proposal()
    bins = f", q_bins={proposed.bin_edges}" if proposed.bin_edges != shares.asked.bin_edges else ""
    return (
        f"no calibration was stored: with kappa {shares.asked.kappa:,} only {shares.asked_share:.1%} of the points "
        "would lie in bands that hold at least kappa points of every class, and all others would be rejected. The "
        f"class that is scarcest most often is {classes[shares.scarcest_class]!r}. "
        f"calibrate(kappa={proposed.kappa}{bins}) leaves {share:.1%}; "
        f"calibrate(kappa={shares.asked.kappa}) stores this one all the same"
    )
