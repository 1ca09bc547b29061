"""What to do next, in terms of this package: what errors and reports advise is named by the calls that do it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING

from venn_admit.errors import Code, VennAdmitError
from venn_admit.flows.calibration.asked import arguments_for
from venn_admit.store.calibrations.setting_forms import MethodSettings

if TYPE_CHECKING:
    from venn_admit.flows.calibration.calibrate import NearlyNothingUsable

ADVICE: Mapping[Code, str] = {
    Code.LABEL_MISSING: "label(..., retract=True) retracts them",
    Code.UNLABELLED: "score(...) takes rows without labels",
    Code.NO_VECTORS: 'classifier.calibrate(method="venn-abers") needs none',
    Code.VECTORS_UNWANTED: "connection.create(..., dimension=D) makes a classifier that takes them",
    Code.EXTRACTOR_DIFFERS: "connection.create_generation(classifier, extractor=...) adds it; without exemplars, "
    "connection.state_extractor(classifier, extractor) corrects it",
    Code.EXTRACTOR_MISSING: "the argument extractor states it",
    Code.EXTRACTOR_UNSTATED: "connection.state_extractor(classifier, extractor) states it",
    Code.NO_CLASSIFIER: "call connection.create(...)",
    Code.SCHEMA_OUTDATED: "call venn_admit.connect(..., migrate=True)",
    Code.TOO_FEW_TRAINING_EXEMPLARS: 'call classifier.ingest(..., split="train")',
    Code.NO_HELD_OUT_DATA: "call classifier.ingest(...) with held-out data",
    Code.NOT_FITTED: "call classifier.fit()",
    Code.EQUAL_DISTANCES: 'call classifier.calibrate(delta=float("inf"))',
    Code.NOT_CALIBRATED: "call classifier.calibrate()",
    Code.RECALIBRATION_DUE: "call classifier.recalibrate()",
    Code.POINTS_FORGOTTEN: "call classifier.recalibrate()",
    Code.BEING_DELETED: "call connection.delete(classifier)",
    Code.SCHEMA_MISMATCH: "call venn_admit.connect(..., migrate=True)",
}
"""What is noted with an error of a code."""


@contextmanager
def advising() -> Iterator[None]:
    """Note, with an error that is raised in the block, the call that does what its message asks for."""
    try:
        yield
    except VennAdmitError as error:
        if error.code in ADVICE:
            error.add_note(ADVICE[error.code])
        raise


class Calls:
    """The calls that the advice of a report names."""

    def report(self, classifier: str) -> str:  # noqa: ARG002 - as every shell has it
        """Report on the current calibration."""
        return "classifier.report()"

    def fit(self, classifier: str) -> str:  # noqa: ARG002
        """Fit the KNN and the localizer again."""
        return "classifier.fit()"

    def calibrate(self, classifier: str, settings: MethodSettings, neighbour_count: int | None) -> str:  # noqa: ARG002
        """Calibrate under these settings; neighbour_count: None if the classifier has logits only.

        >>> from venn_admit.core.calibrators.settings import make_settings
        >>> Calls().calibrate("made", make_settings(2, 5, kappa=100, q_bins=(0, 1)), 5)
        'classifier.calibrate(kappa=100, q_bins=[0, 1])'
        """
        words = [
            f"{name}=" + ('float("inf")' if value == inf else json.dumps(value, default=str))
            for name, value in arguments_for(settings, neighbour_count).items()
        ]
        return f"classifier.calibrate({', '.join(words)})"

    def list_unlabelled(self, classifier: str) -> str:  # noqa: ARG002
        """List the stored points without a label, in random order."""
        return 'classifier.export("unlabelled", "unlabelled.parquet")'

    def label(self, classifier: str) -> str:  # noqa: ARG002
        """Store labels that were found for them."""
        return "classifier.label(...)"

    def monitor(self, classifier: str) -> str:  # noqa: ARG002
        """Show the monitor, which is started if there is none."""
        return "classifier.monitor()"

    def recalibrate(self, classifier: str) -> str:  # noqa: ARG002
        """Recalibrate at once under the settings that are not retired."""
        return "classifier.recalibrate()"


CALLS = Calls()


def refusal(found: "NearlyNothingUsable") -> str:
    """Say why no calibration was stored, and which settings leave more."""
    shares, classes = found.shares, found.classifier.class_names
    proposed, share = shares.proposal()
    call = CALLS.calibrate(found.classifier.name, proposed, found.classifier.neighbour_count)
    return (
        f"no calibration was stored: with kappa {shares.asked.kappa:,} only {shares.asked_share:.1%} of the points "
        "would lie in bands that hold at least kappa points of every class, and all others would be rejected. The "
        f"class that is scarcest most often is {classes[shares.scarcest_class]!r}. "
        f"{call} leaves {share:.1%}; kappa={shares.asked.kappa} stores this one all the same"
    )
