"""The steps that reports and refusals advise, as commands."""

from shlex import quote

from venn_admit.service.core.calibrators.settings import make_settings
from venn_admit.service.core.calibrators.venn_abers.settings import (
    AUTO,
    VennAbersSettings,
    make_venn_abers_settings,
)
from venn_admit.service.core.types import CalibratorSettings


class Commands:
    """The commands that the advice of a report names."""

    def report(self, classifier: str) -> str:
        """Report on the current calibration."""
        return f"venn-admit report {quote(classifier)}"

    def fit(self, classifier: str) -> str:
        """Fit the KNN and the localizer again."""
        return f"venn-admit fit {quote(classifier)}"

    def calibrate(
        self, classifier: str, settings: CalibratorSettings | VennAbersSettings, neighbour_count: int | None
    ) -> str:
        """Calibrate under these settings; neighbour_count: None if the classifier has logits only.

        Kappa or the score is always given, so that the command does just that; other options are left out if they have
        their default.

        >>> Commands().calibrate("made", make_settings(2, 5, kappa=100, bin_edges=(0, 1)), 5)
        'venn-admit calibrate made --kappa 100 --q-bins 0,1'
        >>> Commands().calibrate("made", make_venn_abers_settings(2, 5, score="network"), 5)
        'venn-admit calibrate made --method venn-abers --score network'
        """
        class_count, alpha = len(settings.thresholds), settings.alpha
        words = ["venn-admit", "calibrate", quote(classifier)]
        default: CalibratorSettings | VennAbersSettings
        if isinstance(settings, VennAbersSettings):
            default = make_venn_abers_settings(class_count, neighbour_count, alpha=alpha)
            words += ["--method", "venn-abers", "--score", AUTO if settings.score is None else str(settings.score)]
        else:
            assert neighbour_count is not None, "Venn-ADMIT decides by the KNN"
            default = make_settings(class_count, neighbour_count, alpha=alpha)
            words += ["--kappa", str(settings.kappa)]
        if settings.bin_edges != default.bin_edges:
            words += ["--q-bins", ",".join(map(str, settings.bin_edges))]
        if alpha != make_settings(2, 1).alpha:
            words += ["--alpha", str(alpha)]
        if isinstance(settings, CalibratorSettings) and settings.delta != make_settings(2, 1).delta:
            words += ["--delta", str(settings.delta)]
        if settings.thresholds != default.thresholds:
            words += ["--thresholds", ",".join(map(str, settings.thresholds))]
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
