"""How a snapshot of Venn-ADMIT that is not stored differs from the current one."""

from collections import Counter

from sqlalchemy import Connection

from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex, smallest_class_count
from venn_admit.core.monitoring.what_if import SnapshotCount, SnapshotEffects, SnapshotFact
from venn_admit.core.types import AdmitSets, Approximation, Split
from venn_admit.methods.made_points import points_of_split
from venn_admit.methods.venn_admit.make import MadeByAdmit
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.exemplars import approximations
from venn_admit.store.exemplars.approximations import Replacements
from venn_admit.store.exemplars.classifiers import Classifier


def compare(
    connection: Connection,
    classifier: Classifier,
    calibration: Calibration,
    made: MadeByAdmit,
    instead: Replacements,
    memory_budget: int,
) -> SnapshotEffects:
    """Return the differences; see the protocol `Method`."""
    settings, radius = calibration.settings, calibration.radius
    mc_before = calibrations.read_points(connection, calibration, Split.MC).points
    mc_after = points_of_split(made.rows, Split.MC).points
    before = AdmitIndex(mc_before, class_count=classifier.class_count, settings=settings, omega=radius.omega)
    after = AdmitIndex(mc_after, class_count=classifier.class_count, settings=settings, omega=made.radius.omega)

    def sets(index: AdmitIndex, view: Approximation) -> AdmitSets:
        return index.sets(view.logits, view.predicted, view.match_count, view.distance, memory_budget=memory_budget)

    found: Counter[str] = Counter()
    blocks = approximations.split_blocks(connection, classifier, Split.VP, calibration.parameters_id, memory_budget)
    for block in blocks:
        was = sets(before, block.approximation)
        would_be = sets(after, instead.replaced(block.exemplar_ids, block.approximation))
        found["points"] += len(block.exemplar_ids)
        found["usable"] += int((smallest_class_count(was.band_size) >= settings.kappa).sum())
        found["singletons"] += int(was.singleton.sum())
        for name in ("band_size", "threshold", "included"):
            found[name] += int((getattr(was, name) != getattr(would_be, name)).any(axis=1).sum())
    return SnapshotEffects(
        facts=(
            SnapshotFact("s_hat", radius.s_hat, made.radius.s_hat),
            SnapshotFact("omega", radius.omega, made.radius.omega),
            SnapshotFact("usable", found["usable"], made.usable_count),
            SnapshotFact("singletons", found["singletons"], made.singleton_count),
        ),
        counts=(
            SnapshotCount("bands", found["band_size"], found["points"]),
            SnapshotCount("thresholds", found["threshold"], found["points"]),
            SnapshotCount("sets", found["included"], found["points"]),
        ),
    )
