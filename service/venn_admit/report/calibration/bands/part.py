"""The part of a report on a calibration by Venn-ADMIT, for people and programs; see the protocol `MethodPart`."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from venn_admit.advice import Render, Step, Verb
from venn_admit.core.calibrators.arguments import json_settings, setting_words
from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.calibrators.usable_bands import NEARLY_NOTHING
from venn_admit.core.monitoring.bands import Shortfall
from venn_admit.core.reasons import Reason
from venn_admit.core.split_names import Split
from venn_admit.report.calibration.bands.wording import (
    BandsContents,
    divisions_section,
    partitions_section,
    weights_text,
)
from venn_admit.report.calibration.report import CalibrationReport, HowDecided
from venn_admit.report.calibration.sections import Finding, Picture, Section, TextTable
from venn_admit.report.wording import share_text
from venn_admit_client.records.calibrations import thresholds_text

CAPTION = (
    "The points of vp by q: which of them the Venn predictor decides on, and why the others are rejected before. More "
    "labels, coarser bins of q or a larger delta would raise bands that are below kappa."
)


KEPT_WITH_WEIGHTS = 0.5
"""It is a finding if weighted probabilities admit less than this share of what plain ones admit."""


class BandsPart(BandsContents):
    """Bands as a report shows them."""

    __slots__ = ()

    promised = Promised.POINTWISE
    certified = None
    reference = Split.VP
    compared = ("q", "d", "usable", "admitted")
    reasons = (
        Reason.BAND_BELOW_KAPPA,
        Reason.SET_NOT_SINGLETON,
        Reason.PROBABILITY_BELOW_THRESHOLD,
        Reason.MATCH_COUNT_BELOW_K,
    )

    @property
    def admitted_of_reference(self) -> int:
        return self.admitted_of_vp

    @property
    def deciding(self) -> HowDecided:
        apart = "each point of vp is left out of its own category"
        return HowDecided("plain probabilities", apart, apart)

    def settings_text(self) -> str:
        settings = self.settings
        every = len(settings.q_bins) == self.neighbour_count + 1
        bins = "one bin for each q" if every else f"bins of q {', '.join(self.bin_names)}"
        own = ", ".join(f"{name} {text}" for name, text in setting_words(settings, "kappa", "delta").items())
        return (
            f"alpha {settings.alpha}, thresholds {thresholds_text(settings.thresholds)}, {own}, {bins}; s_hat "
            f"{self.radius.s_hat:.4g}, omega {self.radius.omega:.4g}"
        )

    def settings_payload(self) -> dict[str, Any]:
        return {
            **json_settings(self.settings, "alpha", "delta", "kappa", "thresholds", "q_bins"),
            "s_hat": self.radius.s_hat,
            "omega": self.radius.omega,
        }

    def sections(self, report: CalibrationReport) -> list[Section]:
        return [partitions_section(report, self), divisions_section(report, self)]

    def rejected_of_reference(self, report: CalibrationReport) -> Mapping[Reason, int]:
        usable = int(self.partitions.usable.sum())
        return {
            Reason.BAND_BELOW_KAPPA: report.snapshot.vp_count - usable,
            Reason.SET_NOT_SINGLETON: usable - int(self.partitions.singleton.sum()),
        }

    def traffic_tables(self, report: CalibrationReport) -> tuple[TextTable, ...]:  # noqa: ARG002 - bands have none
        return ()

    def traffic_notes(self) -> tuple[str, ...]:
        return (
            "would be admitted: by plain Venn-ADMIT under this calibration, whatever calibration and options decided; "
            "each point of vp is left out of its category.",
            "Shares admitted, and rejected by reason, as they were decided. There are no decisions on vp, only its "
            "bands and sets.",
        )

    def rejections(self, report: CalibrationReport, render: Render) -> Iterator[Finding]:
        vp_count, usable = report.snapshot.vp_count, int(self.partitions.usable.sum())
        if self.other_settings is not None:
            proposed, share = self.other_settings.proposal()
            step = report.step(Verb.CALIBRATE, settings=proposed, neighbour_count=self.neighbour_count)
            yield Finding(
                f"Nearly everything is rejected: {share_text(usable / vp_count)} of vp lie in usable bands, which hold "
                f"at least kappa = {self.settings.kappa:,} points of each class{self.where_bands_hold}. "
                f"`{render(step)}` would leave {share_text(share)} of the "
                "points usable; or ingest more held-out data.",
                needs_sample=False,
            )
        elif self.admitted_of_vp < NEARLY_NOTHING * vp_count:
            everything = "Nearly everything" if self.admitted_of_vp else "Everything"
            weighted = self.weighted
            with_weights = "" if weighted is None else f" and {share_text(weighted.share)} with weights"
            yield Finding(
                f"{everything} is rejected: {share_text(usable / vp_count)} of vp lie in usable bands, but only "
                f"{share_text(self.admitted_of_vp / vp_count)} of its points would be admitted by plain probabilities"
                f"{with_weights}, because sets hold "
                "several classes or too few points of a category are right. A larger alpha, coarser bins of q, more "
                "held-out data or a better network would admit more.",
                needs_sample=False,
            )
        elif self.weighted is not None and self.weighted.admitted < KEPT_WITH_WEIGHTS * self.weighted.plain:
            yield Finding(weights_text(self.weighted), needs_sample=False)

    def unlike(self, report: CalibrationReport, render: Render) -> Iterator[Finding]:  # noqa: ARG002 - bands are for no class shares
        return iter(())

    def again(self, report: CalibrationReport) -> Step:
        return report.step(Verb.CALIBRATE, settings=self.settings, neighbour_count=self.neighbour_count)

    def following(self, report: CalibrationReport) -> None:
        """No chain follows sets and bands."""

    def standing_instead(self, report: CalibrationReport) -> None:
        """No certificate stands for sets and bands."""

    def payload(self, report: CalibrationReport) -> dict[str, Any]:
        budget = self.lacking
        return {
            "partitions": _partitions(report, self),
            "vp_admitted": self.admitted_of_vp,
            "division_shares": list(self.divisions),
            "weights": None
            if self.weighted is None
            else {
                "points": self.weighted.points,
                "admitted_plain": self.weighted.plain,
                "admitted_weighted": self.weighted.admitted,
                "right_weighted": self.weighted.right,
            },
            "label_budget": None
            if budget is None
            else {
                "kappa": budget.kappa,
                "per_bin": [
                    {"q": self.bin_names[number], **_shortfall(report, found)}
                    for number, found in budget.per_bin.items()
                ],
                "all": _shortfall(report, budget.overall),
            },
        }

    def drift_payload(self, report: CalibrationReport) -> dict[str, Any]:  # noqa: ARG002 - bands have none
        return {}

    def pictures(self, report: CalibrationReport) -> tuple[Picture, ...]:  # noqa: ARG002 - the picture names no class
        from venn_admit.report.charts.drawn_calibration import partitions_figure

        figure = partial(partitions_figure, self.partitions, self.bin_names, self.neighbour_count)
        return (Picture("partitions", CAPTION, figure),)


def _partitions(report: CalibrationReport, part: BandsContents) -> dict[str, Any]:
    partitions = part.partitions
    return {
        "d_edges": partitions.distance_edges,
        "cells": [
            {
                "q": name,
                "d_group": group,
                "mc": _by_class(report, partitions.mc_count[number, group].tolist()),
                "vp": _by_class(report, partitions.vp_count[number, group].tolist()),
                "vp_in_usable_bands": int(partitions.usable[number, group]),
                "vp_singletons": int(partitions.singleton[number, group]),
                "vp_singletons_right": int(partitions.right[number, group]),
            }
            for number, name in enumerate(part.bin_names)
            for group in range(partitions.usable.shape[1])
        ],
    }


def _shortfall(report: CalibrationReport, shortfall: Shortfall) -> dict[str, Any]:
    return {
        "points": shortfall.points,
        "lacking": _by_class(report, shortfall.lacking.tolist()),
        "labels_per_class": _by_class(report, shortfall.labels_per_class.tolist()),
        "labels": shortfall.labels,
    }


def _by_class(report: CalibrationReport, values: Iterable[Any]) -> dict[str, Any]:
    return dict(zip(report.class_names, values, strict=True))
