"""The steps that reports and refusals advise, as commands."""

from shlex import quote

from venn_admit.flows.calibration.asked import arguments_for
from venn_admit.store.calibrations.setting_forms import MethodSettings


class Commands:
    """The commands that the advice of a report names."""

    def report(self, classifier: str) -> str:
        """Report on the current calibration."""
        return f"venn-admit report {quote(classifier)}"

    def fit(self, classifier: str) -> str:
        """Fit the KNN and the localizer again."""
        return f"venn-admit fit {quote(classifier)}"

    def calibrate(self, classifier: str, settings: MethodSettings, neighbour_count: int | None) -> str:
        """Calibrate under these settings; neighbour_count: None if the classifier has logits only.

        >>> from venn_admit.core.calibrators.settings import make_settings
        >>> from venn_admit.core.calibrators.venn_abers.settings import make_venn_abers_settings
        >>> Commands().calibrate("made", make_settings(2, 5, kappa=100, q_bins=(0, 1)), 5)
        'venn-admit calibrate made --kappa 100 --q-bins 0,1'
        >>> Commands().calibrate("made", make_venn_abers_settings(2, 5, score="network"), 5)
        'venn-admit calibrate made --method venn-abers --score network'
        """
        words = ["venn-admit", "calibrate", quote(classifier)]
        for name, value in arguments_for(settings, neighbour_count).items():
            words += [f"--{name.replace('_', '-')}", ",".join(map(str, value if isinstance(value, list) else [value]))]
        return " ".join(words)

    def list_unlabelled(self, classifier: str) -> str:
        """List the stored points without a label, in random order."""
        return f"venn-admit export {quote(classifier)} --what unlabelled --out unlabelled.parquet"

    def label(self, classifier: str) -> str:
        """Store the labels of a file."""
        return f"venn-admit label {quote(classifier)} labels.csv"

    def monitor(self, classifier: str) -> str:
        """Show the monitor, which is started if there is none."""
        return f"venn-admit monitor {quote(classifier)}"

    def recalibrate(self, classifier: str) -> str:
        """Recalibrate at once under the settings that are not retired."""
        return f"venn-admit recalibrate {quote(classifier)}"


COMMANDS = Commands()
