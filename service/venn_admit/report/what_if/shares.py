"""What a certified policy would do in traffic with other class shares: a table, and JSON."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from venn_admit.core.calibrators.certified.shares.other_shares import UnderShares
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.report.calibration.sections import Section, TextTable
from venn_admit.report.wording import share_text


@dataclass(frozen=True, slots=True, eq=False)
class SharesTried:
    """The policy of the calibration in use under some class shares, in the order asked for.

    points: the labels that the bounds rest on. declared: what the certificate is for; None if for traffic like these.
    """

    classifier: str
    class_names: tuple[str, ...]
    calibration: int
    alpha: Decimal
    confidence: Decimal
    points: int
    declared: ClassShares | EstimatedShares | None
    tried: tuple[UnderShares, ...]

    def in_box(self, one: UnderShares) -> bool | None:
        """Return whether the certificate is for such shares; None if it is for none in particular."""
        if self.declared is None:
            return None
        bounds = zip(self.declared.least, one.shares, self.declared.most, strict=True)
        return all(least <= float(share) <= most for least, share, most in bounds)

    def holds(self, most_wrong: float) -> bool | None:
        """Return whether a bound is alpha at most; None without one."""
        return None if np.isnan(most_wrong) else most_wrong <= self.alpha


def shares_heading(found: SharesTried) -> str:
    """Return what the sections are about, in a line."""
    return f"{found.classifier}, calibration {found.calibration}: what its policy would do under other class shares"


def shares_sections(found: SharesTried) -> list[Section]:
    """Return a row for each predicted class under each of the shares."""
    rows = []
    for one in found.tried:
        in_box = found.in_box(one)
        heads = [", ".join(map(str, one.shares)) + (" (in the box)" if in_box else ""), share_text(one.admitted)]
        for name, wrong, most in zip(found.class_names, one.wrong.tolist(), one.most_wrong.tolist(), strict=True):
            words = {None: "none admitted", True: "shown", False: "promised" if in_box else "not shown"}[
                found.holds(most)
            ]
            rows.append((*heads, name, share_text(wrong), share_text(most), words))
            heads = ["", ""]
    columns = ("class shares", "admitted", "predicted\nclass", "wrong", "wrong,\nat most", f"at most\n{found.alpha}")
    of_box: tuple[str, ...] = (
        ()
        if found.declared is None
        else (
            "In the box the certificate promises it by its own tests, which show more than bounds for all shares do.",
        )
    )
    return [
        Section(
            "In traffic with these class shares",
            (TextTable(columns, tuple(rows), words=(0, 2, 5)),),
            (
                f"With confidence {found.confidence}, every bound holds, of all classes and under all shares at once, "
                "also under shares that are not listed, if points of each class are like those of the calibration data "
                f"({found.points:,} labels). Shares admitted and wrong beside them are estimates.",
                *of_box,
                "What is promised of true classes holds under any shares. Nothing is stored.",
            ),
        )
    ]


def shares_payload(found: SharesTried) -> dict[str, Any]:
    """Return the same as JSON has it."""
    return {
        "classifier": found.classifier,
        "calibration": found.calibration,
        "varied": "class_shares",
        "alpha": str(found.alpha),
        "confidence": str(found.confidence),
        "points": found.points,
        "tried": [
            {
                "class_shares": list(map(str, one.shares)),
                "in_box": found.in_box(one),
                "admitted_share": one.admitted,
                "per_predicted_class": [
                    {
                        "name": name,
                        "share_wrong": None if np.isnan(wrong) else wrong,
                        "share_wrong_at_most": None if np.isnan(most) else most,
                        "holds": found.holds(most),
                    }
                    for name, wrong, most in zip(
                        found.class_names, one.wrong.tolist(), one.most_wrong.tolist(), strict=True
                    )
                ],
            }
            for one in found.tried
        ],
    }
