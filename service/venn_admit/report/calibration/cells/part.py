"""The part of a report on a calibration by Venn-Abers; see the protocol `MethodPart`."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from venn_admit.advice import Render, Step, Verb
from venn_admit.core.calibrators.arguments import json_settings, setting_words
from venn_admit.core.calibrators.certification import DocumentTest, GroupKind
from venn_admit.core.calibrators.promises import AskedPromise, Promised
from venn_admit.core.calibrators.usable_bands import NEARLY_NOTHING
from venn_admit.core.monitoring.cells import CellState
from venn_admit.core.reasons import Reason
from venn_admit.core.split_names import Split
from venn_admit.report.calibration.cells.average import average_payload, average_section, never_text
from venn_admit.report.calibration.cells.certified import (
    certificate_payload,
    certificate_section,
    certified_text,
    departure_text,
    lacking_texts,
    outcome_text,
    section_of_tests,
)
from venn_admit.report.calibration.cells.wording import CellsContents, cells_section, lacking_text, score_section
from venn_admit.report.calibration.common.history import chains_picture
from venn_admit.report.calibration.report import CalibrationReport, HowDecided
from venn_admit.report.calibration.sections import Finding, Picture, Section
from venn_admit.report.wording import share_text
from venn_admit_client.records.calibrations import thresholds_text

MOST_FINDINGS = 3
"""Advice names at most this many cells that can admit nothing."""

CAPTION = (
    "The probability that a prediction is right by its score, for each predicted class: between the lower bound p0 and "
    "the upper bound p1, which step up at the scores of mc. A prediction is admitted where {reached} the dotted "
    "threshold; that range of scores is tinted. Below, how many points of mc have such a score."
)


class CellsPart(CellsContents):
    """Cells as a report shows them."""

    __slots__ = ()

    reference = Split.MC
    weighted = None
    compared = ("score", "q", "d", "admitted")

    @property
    def promised(self) -> Promised:
        if self.is_uncertified:
            return Promised.NONE
        kinds = None if self.average is not None or self.certificate is None else self.certificate.kinds
        return self.settings.promised(kinds, self.settings.promise)

    @property
    def certified(self) -> str | None:
        found = self.certificate
        return None if found is None or found.policy is None else certified_text(found)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return (
            (self._usual_reason,) if self.neighbour_count is None else (self._usual_reason, Reason.MATCH_COUNT_BELOW_K)
        )

    @property
    def _usual_reason(self) -> Reason:
        if self.is_uncertified:
            return Reason.POLICY_NOT_CERTIFIED
        return Reason.SCORE_BELOW_THRESHOLD if self.bounds_scores else Reason.PROBABILITY_BELOW_THRESHOLD

    @property
    def deciding(self) -> HowDecided:
        if self.is_uncertified:
            return HowDecided("the certificate", "no policy passed its tests", "no policy passed its tests")
        if self.bounds_scores:
            apart = "its thresholds rest on points of mc too"
            return HowDecided("the policy", apart, apart)
        return HowDecided(
            "plain probabilities",
            "each point of mc is decided on by the bounds of the other folds",
            "by the bounds of the calibration itself, which rest on these very points",
        )

    @property
    def admitted_of_reference(self) -> int:
        return self.admitted

    def settings_text(self) -> str:
        settings, names = self.settings, self.bin_names
        thresholds = "of the policy" if settings.has_policy else thresholds_text(settings.thresholds)
        if names is None:
            bins = "logits only"
        else:
            bins = "one bin of q" if len(names) == 1 else f"bins of q {', '.join(names)}"
        added = "".join(f", {name} {text}" for name, text in setting_words(settings).items())
        return f"alpha {settings.alpha}, thresholds {thresholds}, score {self.score}, {bins}{added}"

    def settings_payload(self) -> dict[str, Any]:
        settings = self.settings
        return {
            **json_settings(settings, "alpha", "thresholds", "q_bins"),
            "asked_score": self.asked,
            "score": str(self.score),
            "network_share": self.network_share,
            "reliability_share": self.reliability_share,
            "steps": len(self.steps.cell),
        }

    def sections(self, report: CalibrationReport) -> list[Section]:
        found = self.certificate
        names = report.class_names
        certified = (
            ()
            if found is None
            else (
                certificate_section(
                    found,
                    names,
                    has_average=self.average is not None,
                    has_ended=bool(report.snapshot.chain_has_ended),
                    later=report.snapshot.later,
                ),
                section_of_tests(found, names),
            )
        )
        average = () if self.average is None else (average_section(self.average, names),)
        return [score_section(self), *certified, *average, cells_section(report, self)]

    def rejected_of_reference(self, report: CalibrationReport) -> Mapping[Reason, int]:
        found = self.certificate if self.average is None else self.average
        never = {} if found is None or found.policy is None else found.policy.never
        rejected = {
            why: sum(state.points for state in self.states if state.predicted in classes)
            for why, classes in never.items()
            if classes
        }
        return rejected | {self._usual_reason: report.snapshot.mc_count - self.admitted - sum(rejected.values())}

    def traffic_notes(self) -> tuple[str, ...]:
        by_distance = "" if self.neighbour_count is None else "; d is cut at its quartiles over mc"
        by, apart = self.deciding.by, self.deciding.apart
        return (
            f"would be admitted: by {by} under this calibration, whatever calibration and options decided; {apart}.",
            "The columns mc and recent by score are shares of the points of the predicted class, whose scores are cut "
            f"at their quartiles over mc{by_distance}.",
            f"Shares admitted, and rejected by reason, as they were decided; of mc by {by}.",
        )

    def rejections(self, report: CalibrationReport, render: Render) -> Iterator[Finding]:
        certificate = self.certificate
        if certificate is not None and certificate.policy is None:
            said = outcome_text(certificate, report.class_names, has_average=self.average is not None)
            if certificate.set_aside is not None:
                asked = replace(self.settings, promise=AskedPromise.POINTWISE, certify=certificate.kinds)
                step = report.step(Verb.CALIBRATE, settings=asked, neighbour_count=self.neighbour_count)
                said += f" To ask for a certificate all the same: `{render(step)}`."
            instead = report.later_chain(render)
            if instead is None and certificate.is_withdrawn:
                instead = f"`{render(self._begin(report))}` begins the next chain, once there are labels since then."
            yield Finding(said if instead is None else f"{said} {instead}", needs_sample=False)
        elif certificate is not None:
            texts = lacking_texts(certificate, report.class_names)
            yield from (Finding(text, needs_sample=False) for text in texts)
        if self.is_uncertified:
            return
        if self.average is not None:
            never = never_text(self.average, report.class_names)
            if never:
                yield Finding(never, needs_sample=False)
            return
        admitted, mc_count = self.admitted, report.snapshot.mc_count
        if admitted < NEARLY_NOTHING * mc_count:
            everything = "Nearly everything" if admitted else "Everything"
            other_score = "" if self.neighbour_count is None else "the other score, "
            yield Finding(
                f"{everything} is rejected: {share_text(admitted / mc_count)} of mc would be admitted, because too few "
                f"predictions of any score are right. A larger alpha, {other_score}more held-out data or a better "
                "network would admit more.",
                needs_sample=False,
            )
        for state in [state for state in self.states if state.lacking and state.points][:MOST_FINDINGS]:
            yield Finding(lacking_text(report, self, state), needs_sample=False)

    def unlike(self, report: CalibrationReport, render: Render) -> Iterator[Finding]:
        if self.departure is None:
            return
        remedy = "declare the shares that it has"
        if self.settings.class_shares_estimated:
            remedy = f"`{render(self._begin(report))}` estimates them again"
        yield Finding(
            "Recent traffic does not have the class shares that the certificate is for, so that nothing is promised: "
            f"{departure_text(self.departure, report.class_names)}; {remedy}.",
            needs_sample=False,
        )

    def again(self, report: CalibrationReport) -> Step:
        return self._begin(report) if report.snapshot.chain_has_ended else report.step(Verb.RECALIBRATE)

    def following(self, report: CalibrationReport) -> tuple[int, Step] | None:
        standing = None if self.certificate is None else self.certificate.standing
        if standing is None or standing.following is None:
            return None
        if report.snapshot.chain_has_ended or report.snapshot.later is not None:
            return None
        return standing.following.chain, self._begin(report)

    def standing_instead(self, report: CalibrationReport) -> Step | None:
        found = self.certificate
        if found is None or found.standing is not None or found.policy is None:
            return None
        if found.loss or found.class_shares or found.test is DocumentTest.ASYMPTOTIC:
            return None
        if any(isinstance(kind, GroupKind) for kind in found.kinds):
            return None
        asked = replace(self.settings, promise=AskedPromise.POINTWISE, certify=found.kinds, standing=True, family=False)
        return report.step(Verb.CALIBRATE, settings=asked, neighbour_count=self.neighbour_count)

    def _begin(self, report: CalibrationReport) -> Step:
        """The step that calibrates under the settings as they were asked for."""
        return report.step(Verb.CALIBRATE, settings=self.settings, neighbour_count=self.neighbour_count)

    def payload(self, report: CalibrationReport) -> dict[str, Any]:
        names = self.bin_names

        def cell(state: CellState) -> dict[str, Any]:
            columns = asdict(state)
            q_bin: int = columns.pop("q_bin")
            return {
                "predicted_class": report.class_names[columns.pop("predicted")],
                "q": None if names is None else names[q_bin],
                **columns,
                "threshold": None if state.threshold is None else str(state.threshold),
            }

        cells = [cell(state) for state in self.states]
        short = [found for found in cells if found["lacking"]]
        found = self.certificate
        return {
            "cells": cells,
            "mc_admitted": self.admitted,
            "label_budget": short or None,
            "certificate": None if found is None else certificate_payload(found, report.class_names),
            "average": None if self.average is None else average_payload(self.average, report.class_names),
        }

    def drift_payload(self, report: CalibrationReport) -> dict[str, Any]:
        def named(predicted: int | None) -> str | None:
            return None if predicted is None else report.class_names[predicted]

        return {"parts": [{**asdict(found), "predicted": named(found.predicted)} for found in self.parts]}

    def pictures(self, report: CalibrationReport) -> tuple[Picture, ...]:
        from venn_admit.report.charts.drawn_calibration import MOST_PANELS, cells_figure
        from venn_admit.report.charts.drawn_certificate import caption, certificate_figure

        names, found = self.bin_names or [], self.certificate
        said = CAPTION.format(reached="the score reaches" if self.bounds_scores else "p0 reaches")
        classes = len(report.class_names)
        if classes > MOST_PANELS:
            said += f" {MOST_PANELS} of {classes} classes shown: those of which the least is admitted."
        cells = Picture(
            "cells",
            said,
            partial(
                cells_figure,
                self.steps,
                self.mc,
                self.states,
                report.class_names,
                names,
                str(self.score),
                bounds_scores=self.bounds_scores,
            ),
        )
        if found is None or not any(chain.steps for chain in found.chains):
            return (cells,)
        certificate = Picture("certificate", caption(found), partial(certificate_figure, found, report.class_names))
        if report.chains is None or not report.chains.advances:
            return certificate, cells
        return chains_picture(report.chains, report.class_names), certificate, cells
