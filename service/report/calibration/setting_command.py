"""The command that calibrates under given settings."""

from venn_admit.service.core.calibrators.settings import make_settings
from venn_admit.service.core.types import CalibratorSettings


def calibrate_command(name: str, settings: CalibratorSettings, neighbour_count: int) -> str:
    """Kappa is always given, so that the command does not stop; what has its default is left out.

    >>> calibrate_command("made", make_settings(2, 5, kappa=100, bin_edges=(0, 1)), 5)
    'venn-admit calibrate made --kappa 100 --q-bins 0,1'
    """
    default = make_settings(len(settings.thresholds), neighbour_count, alpha=settings.alpha)
    words = ["venn-admit", "calibrate", name, "--kappa", str(settings.kappa)]
    if settings.bin_edges != default.bin_edges:
        words += ["--q-bins", ",".join(map(str, settings.bin_edges))]
    if settings.alpha != make_settings(2, 1).alpha:
        words += ["--alpha", str(settings.alpha)]
    if settings.delta != default.delta:
        words += ["--delta", str(settings.delta)]
    if settings.thresholds != default.thresholds:
        words += ["--thresholds", ",".join(map(str, settings.thresholds))]
    return " ".join(words)
