"""The steps that reports advise, as the page's visitors take them: in words that stand in a sentence."""

import json

from venn_admit.api.steps import Requests
from venn_admit.http.paths import classifier_path
from venn_admit.store.calibrations.setting_forms import MethodSettings


class PageSteps:
    """The steps on the page, or requests over HTTP for those that the page does not have."""

    def report(self, classifier: str) -> str:  # noqa: ARG002 - the page is that of the classifier
        """Report on the current calibration."""
        return "the page \u201cReport\u201d"

    def fit(self, classifier: str) -> str:
        """Fit the KNN and the localizer again."""
        return f"a POST request to {classifier_path(classifier)}/fit"

    def calibrate(self, classifier: str, settings: MethodSettings, neighbour_count: int | None) -> str:
        """Calibrate under these settings.

        >>> from venn_admit.core.calibrators.settings import make_settings
        >>> PageSteps().calibrate("made", make_settings(2, 5, kappa=100, q_bins=(0, 1)), 5)
        'a POST request to /v1/classifiers/made/calibrations with kappa 100 and q_bins [0, 1]'
        """
        method, address, body = Requests().calibrate(classifier, settings, neighbour_count).split(" ", 2)
        *first, last = (f"{name} {json.dumps(value)}" for name, value in json.loads(body).items())
        given = f"{', '.join(first)} and {last}" if first else last
        return f"a {method} request to {address} with {given}"

    def list_unlabelled(self, classifier: str) -> str:  # noqa: ARG002 - as above
        """List the stored points without a label, in random order."""
        return "the page \u201cLabels\u201d"

    def label(self, classifier: str) -> str:  # noqa: ARG002 - as above
        """Store labels that were found for them."""
        return "that page"

    def monitor(self, classifier: str) -> str:
        """Show the monitor, which is started if there is none."""
        return f"a GET request to {classifier_path(classifier)}/monitor"

    def recalibrate(self, classifier: str) -> str:  # noqa: ARG002 - as above
        """Recalibrate under the settings that are not retired, which happens by itself."""
        return "the next recalibration"


PAGE_STEPS = PageSteps()
