"""Writing what is stored to files that other programs can read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, Engine, Row

from venn_admit.core.calibrators.arguments import json_settings
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.files.output.atomic import check_output
from venn_admit.files.output.exports import (
    APPROXIMATIONS_SCHEMA,
    CALIBRATION_SCHEMA,
    EXEMPLARS_SCHEMA,
    NEIGHBOURS_SCHEMA,
    UNLABELLED_SCHEMA,
    classes_of,
    write_json,
)
from venn_admit.files.output.tables import TableWriter, check_table_output
from venn_admit.report.calibration.cells.average import average_payload
from venn_admit.report.calibration.cells.certified import certificate_payload
from venn_admit.store.calibrations import calibrations, venn_abers
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions import reports
from venn_admit.store.exemplars import approximations, classifiers, exemplars, forgotten, neighbours
from venn_admit.store.exemplars.classifiers import Classifier


class Export(StrEnum):
    """What can be exported."""

    EXEMPLARS = "exemplars"
    NEIGHBOURS = "neighbours"
    APPROXIMATIONS = "approximations"
    CALIBRATION = "calibration"
    PARAMETERS = "parameters"
    POLICY = "policy"
    UNLABELLED = "unlabelled"


def show_parameters(engine: Engine, name: str, calibration_id: int | None) -> dict[str, Any]:
    """Return the parameters of a calibration as they are exported; before the first, those of the last fit.

    calibration_id: None for the one in use. Raises NotFoundError and NotReadyError.
    """
    with consistent_view(engine) as connection:
        return _parameters(connection, classifiers.by_name(connection, name), calibration_id)


def check_export(what: str, out: Path) -> Export:
    """Return what is to be exported; InvalidInputError if it does not exist, or cannot be written to `out`."""
    if what not in list(Export):
        raise InvalidInputError(f"what: expected {', '.join(Export)}, got {what!r}")
    if what in (Export.PARAMETERS, Export.POLICY):
        check_output(out, [".json"])
    else:
        check_table_output(out)
    return Export(what)


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written. forgotten: how many points of a snapshot lack among the rows, as they were forgotten since."""

    rows: int
    forgotten: int = 0


def export(engine: Engine, name: str, what: Export, out: Path, *, calibration_id: int | None = None) -> Exported:
    """Write one kind of what is stored for a classifier to `out`.

    Args:
        out: The file; it appears complete or not at all.
        calibration_id: The snapshot for `calibration`, `parameters` and `policy`; None: the one in use.

    Raises:
        InvalidInputError: The file cannot be written, or the snapshot has no policy.
    """
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        if what is Export.PARAMETERS:
            write_json(out, _parameters(connection, classifier, calibration_id))
            return Exported(1)
        if what is Export.POLICY:
            write_json(out, policy_document(connection, classifier, calibration_id))
            return Exported(1)
        schema, rows = _table(connection, classifier, what, calibration_id)
        count = 0
        with TableWriter(out, schema) as writer:
            for block in rows:
                writer.write({name: _column(name, block) for name in schema.names})
                count += len(block)
        if what is not Export.CALIBRATION:
            return Exported(count)
        calibration = calibrations.latest_or_by_id(connection, classifier, calibration_id)
        return Exported(count, forgotten.lost_points(connection, calibration.id).total)


_ATTRIBUTES = {"predicted_by_network": "network_predicted", "q": "match_count", "d": "distance", "set": "admit_set"}
"""What rows call the columns that have another name in files."""


def _column(name: str, rows: Sequence[Row[Any]]) -> list[Any]:
    values = [getattr(row, _ATTRIBUTES.get(name, name)) for row in rows]
    return [None if one is None else classes_of(one) for one in values] if name == "set" else values


def _table(
    connection: Connection, classifier: Classifier, what: Export, calibration_id: int | None
) -> tuple[pa.Schema, Iterator[Sequence[Row[Any]]]]:
    match what:
        case Export.EXEMPLARS:
            return EXEMPLARS_SCHEMA, exemplars.export_rows(connection, classifier)
        case Export.UNLABELLED:
            calibration = calibrations.latest_or_by_id(connection, classifier, calibration_id)
            return UNLABELLED_SCHEMA, reports.unlabelled_rows(connection, classifier, calibration)
        case Export.NEIGHBOURS:
            classifiers.require_vectors(classifier, "a neighbour list")
            return NEIGHBOURS_SCHEMA, neighbours.export_rows(connection, classifier)
        case Export.APPROXIMATIONS:
            classifiers.require_vectors(classifier, "an approximation")
            return APPROXIMATIONS_SCHEMA, approximations.export_rows(connection, classifier)
        case Export.CALIBRATION:
            calibration = calibrations.latest_or_by_id(connection, classifier, calibration_id)
            return CALIBRATION_SCHEMA, calibrations.export_rows(connection, calibration)
    raise AssertionError(f"no table for {what}")


def _parameters(connection: Connection, classifier: Classifier, calibration_id: int | None) -> dict[str, Any]:
    """The parameters of a calibration; before the first, those of the KNN and the localizer only.

    With logits only there is no KNN, so that what is left are the settings of a calibration.
    """
    if classifier.knn is None:
        return _settings(calibrations.latest_or_by_id(connection, classifier, calibration_id))
    current = approximations.require_parameters(connection, classifier)
    calibration: Calibration | None
    try:
        calibration = calibrations.latest_or_by_id(connection, classifier, calibration_id)
        stored = approximations.parameters_by_id(connection, calibration.parameters_id)
    except NotReadyError:  # not calibrated yet
        calibration, stored = None, current
    written: dict[str, Any] = {
        "beta": stored.knn.beta,
        "gamma": stored.knn.gamma,
        "eta": stored.knn.eta,
        "eta_loc": stored.eta_loc,
        "reliability": None if stored.reliability is None else stored.reliability.document(),
    }
    return written if calibration is None else written | _settings(calibration)


def _settings(calibration: Calibration) -> dict[str, Any]:
    settings, radius = calibration.method_settings, calibration.band_radius
    written: dict[str, Any] = {} if radius is None else {"s_hat": radius.s_hat, "omega": radius.omega}
    written["alpha"] = float(settings.alpha)
    return (
        written
        | json_settings(settings, "delta", "kappa")
        | {"thresholds": [float(threshold) for threshold in settings.thresholds], "q_bins": list(settings.q_bins)}
    )


def show_policy(engine: Engine, name: str, calibration_id: int | None) -> dict[str, Any]:
    """Return the policy of a calibration as `policy_document` has it. Raises NotFoundError and NotReadyError."""
    with consistent_view(engine) as connection:
        return policy_document(connection, classifiers.by_name(connection, name), calibration_id)


def policy_document(connection: Connection, classifier: Classifier, calibration_id: int | None) -> dict[str, Any]:
    """Return the certificate of a calibration, its average promise, or both, with what their thresholds are of.

    calibration_id: None for the one in use. The core's `certificate.from_document` reads the certificate back. Raises
    InvalidInputError if the calibration was asked for neither.
    """
    calibration = calibrations.latest_or_by_id(connection, classifier, calibration_id)
    if not calibration.has_policy:
        raise InvalidInputError(
            f"calibration {calibration.id} of {classifier.name!r} was asked for no certificate or average promise, so "
            "it has no policy: calibrate with one, or name another calibration"
        )
    certificate = venn_abers.certificate_of(connection, calibration.id)
    average = venn_abers.average_of(connection, calibration.id)
    return {
        "classifier": classifier.name,
        "calibration": calibration.id,
        "score": str(venn_abers.score_of(connection, calibration.id)),
        "q_bins": list(calibration.abers_settings.q_bins),
        **({} if certificate is None else certificate_payload(certificate, classifier.class_names)),
        "average": None if average is None else average_payload(average, classifier.class_names),
    }
