"""How many points settings leave in usable bands, to compare them before calibrating under one."""

from venn_admit.core.calibrators.usable_bands import UsableShares, usable_shares
from venn_admit.core.types import CalibratorSettings, Split
from venn_admit.flows.calibration.calibrate import SettingsOf, require_parameters
from venn_admit.methods.venn_admit.make import read_points, require_radius
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace


def compare_settings(
    workspace: Workspace, name: str, settings_of: SettingsOf
) -> tuple[Classifier, UsableShares] | None:
    """Shares of usable points of mc under the settings asked for and under others; nothing is written.

    None if these are settings of a method that has no bands.

    The approximations of mc must be stored, as the job of `request_approximations` does. Raises as `calibrate` does
    for invalid settings and missing data.
    """
    with connect(workspace.engine) as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            classifier = classifiers.by_name(connection, name)
            settings = settings_of(classifier)
            if not isinstance(settings, CalibratorSettings):
                return None
            parameters = require_parameters(connection, classifier)
            _, mc = read_points(connection, classifier, Split.MC, parameters, memory_budget=workspace.memory_budget)
    shares = usable_shares(
        mc,
        settings,
        class_count=classifier.class_count,
        neighbour_count=classifier.neighbour_count,
        omega=require_radius(mc, settings).omega,
    )
    return classifier, shares
