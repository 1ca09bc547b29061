"""The steps that reports and refusals advise, as requests."""

import json

from venn_admit.files.output.exports import finite_json
from venn_admit.flows.calibration.asked import arguments_for
from venn_admit.flows.calibration.calibrate import NearlyNothingUsable
from venn_admit.http.paths import classifier_path
from venn_admit.store.calibrations.setting_forms import MethodSettings


class Requests:
    """The requests that the advice of a report names."""

    def report(self, classifier: str) -> str:
        """Report on the current calibration."""
        return f"GET {classifier_path(classifier)}/report"

    def fit(self, classifier: str) -> str:
        """Fit the KNN and the localizer again."""
        return f"POST {classifier_path(classifier)}/fit"

    def calibrate(self, classifier: str, settings: MethodSettings, neighbour_count: int | None) -> str:
        """Calibrate under these settings; neighbour_count: None if the classifier has logits only.

        >>> from venn_admit.core.calibrators.settings import make_settings
        >>> Requests().calibrate("made", make_settings(2, 5, kappa=100, q_bins=(0, 1)), 5)
        'POST /v1/classifiers/made/calibrations {"kappa": 100, "q_bins": [0, 1]}'
        """
        body = finite_json(arguments_for(settings, neighbour_count))
        return f"POST {classifier_path(classifier)}/calibrations {json.dumps(body, default=str)}"

    def list_unlabelled(self, classifier: str) -> str:
        """List the stored points without a label, in random order."""
        return f"export the unlabelled points of {classifier} on the machine that runs the service"

    def label(self, classifier: str) -> str:
        """Store labels that were found for them."""
        return f"POST {classifier_path(classifier)}/labels"

    def monitor(self, classifier: str) -> str:
        """Show the monitor, which is started if there is none."""
        return f"GET {classifier_path(classifier)}/monitor"

    def recalibrate(self, classifier: str) -> str:
        """Recalibrate at once under the settings that are not retired."""
        return f"POST {classifier_path(classifier)}/recalibrate"


REQUESTS = Requests()


def refusal(found: NearlyNothingUsable) -> str:
    """Say why no calibration was stored, and which settings leave more."""
    shares, classifier = found.shares, found.classifier
    proposed, share = shares.proposal()
    return (
        f"no calibration was stored: with kappa {shares.asked.kappa:,} only {shares.asked_share:.1%} of the points "
        "would lie in bands that hold at least kappa points of every class, and all others would be rejected. The "
        f"class that is scarcest most often is {classifier.class_names[shares.scarcest_class]!r}. "
        f"{REQUESTS.calibrate(classifier.name, proposed, classifier.neighbour_count)} leaves {share:.1%}; "
        f'"kappa": {shares.asked.kappa} stores this one all the same'
    )
