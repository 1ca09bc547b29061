"""KNN parameters, and approximations of stored exemplars."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row

from venn_admit.core.budget import block_rows
from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel
from venn_admit.core.split_names import Split
from venn_admit.core.types import Approximation, BoolArray, IntArray, KnnParameters, TrainingEpoch
from venn_admit.errors import Code, NotReadyError
from venn_admit.store.database.binary_copy import (
    BOOL,
    FLOAT8,
    INT4,
    INT8,
    Array,
    FixedColumn,
    copy_in,
    copy_out,
    read_columns,
)
from venn_admit.store.database.engine import driver_cursor
from venn_admit.store.database.ids import execute_ids
from venn_admit.store.database.statements import copy_query, execute, statement, stream
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit_client.records.calibrations import Fit


@dataclass(frozen=True, slots=True, eq=False)
class StoredParameters:
    """The parameters of the KNN and the localizer, and their key.

    reliability: the model of that score, fitted on the same data; None if they were given without one.
    """

    id: int
    knn: KnnParameters
    eta_loc: float
    reliability: ReliabilityModel | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FitRecord:
    """The record of a fit: sizes of the halves, remaining discrepancies, and the log of each model.

    full_matches: the share of both halves with q = K.
    """

    fit_count: int
    dev_count: int
    dev_discrepancies: int
    full_matches: float
    knn_log: tuple[TrainingEpoch, ...]
    localizer_log: tuple[TrainingEpoch, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledApproximations:
    """A block of a split: ids and labels (n,) int64 with the approximations of the points."""

    exemplar_ids: IntArray
    labels: IntArray
    approximation: Approximation

    def take(self, rows: IntArray) -> "LabelledApproximations":
        """Return the points in some rows, in the order of these rows."""
        return LabelledApproximations(self.exemplar_ids[rows], self.labels[rows], self.approximation.take(rows))


@dataclass(frozen=True, slots=True, eq=False)
class Replacements:
    """Approximations to be used in place of the stored ones: exemplar_ids (m,) int64, ascending, and m points."""

    exemplar_ids: IntArray
    approximation: Approximation

    def rows_of(self, exemplar_ids: IntArray) -> tuple[IntArray, IntArray]:
        """Return which of n exemplars are replaced, and the row of each here; (r,) int64 each."""
        wanted = np.flatnonzero(np.isin(exemplar_ids, self.exemplar_ids))
        return wanted, np.searchsorted(self.exemplar_ids, exemplar_ids[wanted])

    def replaced(self, exemplar_ids: IntArray, stored: Approximation) -> Approximation:
        """Return the approximations of n exemplars, of which `stored` has those that are stored."""
        wanted, rows = self.rows_of(exemplar_ids)
        arrays = {name: getattr(stored, name).copy() for name in VIEW_COLUMNS}
        for name, values in arrays.items():
            values[wanted] = getattr(self.approximation, name)[rows]
        return Approximation(**arrays)


def without_approximation(
    connection: Connection,
    classifier: Classifier,
    splits: list[Split],
    knn_parameters_id: int,
    among: IntArray | None,
) -> IntArray:
    """Return the ids of the points of some splits that have no approximation under the given parameters yet.

    among: ids of the classifier to look at; None for all.
    """
    parameters = {"splits": splits, "knn_parameters_id": knn_parameters_id}
    if among is None:
        parameters |= {"classifier_id": classifier.id}
        return execute_ids(connection, "approximations.without_approximation", **parameters)
    parameters |= {"exemplar_ids": among}
    return execute_ids(connection, "approximations.without_approximation_among", **parameters)


VIEW_COLUMNS = ("predicted", "match_count", "distance", "logits")
"""What is stored of an approximation, by the names of its fields."""


def view_columns(classifier: Classifier) -> dict[str, FixedColumn]:
    """Return the columns of approximations, named as their fields."""
    columns = (INT4, INT4, FLOAT8, Array(">f8", classifier.class_count))
    return dict(zip(VIEW_COLUMNS, columns, strict=True))


def view_of_decisions(rows: Mapping[str, Any]) -> Approximation:
    """Return the KNN's view that decisions were made by, with the KNN's prediction; theirs may be the network's."""
    # Ties go to the lower class.
    return _approximation({**rows, "predicted": rows["logits"].argmax(axis=1)})


def _approximation(block: Mapping[str, Any]) -> Approximation:
    return Approximation(**{name: block[name] for name in VIEW_COLUMNS})


def read_approximations(
    connection: Connection, classifier: Classifier, exemplar_ids: IntArray, knn_parameters_id: int
) -> tuple[IntArray, Approximation]:
    """Return the stored approximations of some exemplars: ids and values, in no particular order."""
    parameters = {"exemplar_ids": exemplar_ids, "knn_parameters_id": knn_parameters_id}
    columns = {"exemplar_id": INT8, **view_columns(classifier)}
    rows = read_columns(connection, "approximations.approximations", columns, **parameters)
    return rows["exemplar_id"], _approximation(rows)


def positions(ids: IntArray, wanted: IntArray) -> IntArray:
    """Return the position of each wanted id among distinct ids, which contain them all; (len(wanted),) int64."""
    sorter = np.argsort(ids)
    return sorter[np.searchsorted(ids, wanted, sorter=sorter)].astype(np.int64)


def write_approximations(
    connection: Connection,
    classifier: Classifier,
    exemplar_ids: IntArray,
    approximation: Approximation,
    knn_parameters_id: int,
) -> None:
    """Store approximations in place of older ones under the same parameters."""
    n, parameters = len(exemplar_ids), {"exemplar_ids": exemplar_ids, "knn_parameters_id": knn_parameters_id}
    execute(connection, "approximations.delete_approximations", **parameters)
    columns = {
        "knn_parameters_id": (INT4, np.full(n, knn_parameters_id)),
        "exemplar_id": (INT8, exemplar_ids),
        "support_version": (INT8, np.full(n, classifier.support_version)),
        **{name: (column, getattr(approximation, name)) for name, column in view_columns(classifier).items()},
    }
    copy_in(driver_cursor(connection), "approximation", columns)


def delete_outdated_approximations(connection: Connection, classifier: Classifier, exemplar_ids: IntArray) -> None:
    """Delete, under any parameters, what was computed from older training exemplars for some points."""
    parameters = {"exemplar_ids": exemplar_ids, "support_version": classifier.support_version}
    execute(connection, "approximations.delete_outdated_approximations", **parameters)


def split_blocks(
    connection: Connection,
    classifier: Classifier,
    split: Split,
    knn_parameters_id: int,
    memory_budget: int,
    instead: Replacements | None = None,
) -> Iterator[LabelledApproximations]:
    """Yield a labelled split in order of ingestion, in blocks.

    memory_budget: bytes for the whole computation. instead: what replaces stored approximations.
    """
    columns = {"id": INT8, "label": INT4, **view_columns(classifier)}
    parameters = {"classifier_id": classifier.id, "split": split, "knn_parameters_id": knn_parameters_id}
    query = copy_query("approximations.split_approximations")
    rows = block_rows(memory_budget, 8 * (classifier.class_count + 8))
    for block in copy_out(driver_cursor(connection), query, parameters, columns, rows):
        stored = _approximation(block)
        yield LabelledApproximations(
            block["id"], block["label"], stored if instead is None else instead.replaced(block["id"], stored)
        )


def points_among(
    connection: Connection, classifier: Classifier, exemplar_ids: IntArray, knn_parameters_id: int
) -> tuple[LabelledApproximations, BoolArray]:
    """Return those of some exemplars that are in mc or vp and have an approximation, and which are in vp, (n,) bool."""
    columns = {"id": INT8, "label": INT4, **view_columns(classifier), "in_vp": BOOL}
    parameters = {"exemplar_ids": exemplar_ids, "knn_parameters_id": knn_parameters_id}
    found = read_columns(connection, "approximations.points_among", columns, **parameters)
    return LabelledApproximations(found["id"], found["label"], _approximation(found)), found["in_vp"]


def add_parameters(
    connection: Connection,
    classifier: Classifier,
    knn: KnnParameters,
    eta_loc: float,
    record: FitRecord | None,
    reliability: ReliabilityModel | None = None,
) -> StoredParameters:
    """Store parameters and make them current; `record` is None if they were given rather than fitted."""
    execute(connection, "approximations.retire_parameters", classifier_id=classifier.id)
    parameters_id = execute(
        connection,
        "approximations.add_parameters",
        classifier_id=classifier.id,
        origin="given" if record is None else "fitted",
        beta=knn.beta.tolist(),
        gamma=knn.gamma.tolist(),
        eta=knn.eta,
        eta_loc=eta_loc,
        fit_count=None if record is None else record.fit_count,
        dev_count=None if record is None else record.dev_count,
        dev_discrepancies=None if record is None else record.dev_discrepancies,
        full_matches=None if record is None else record.full_matches,
        reliability=None if reliability is None else json.dumps(reliability.document(), allow_nan=False),
    ).scalar_one()
    if record is not None:
        for model, log in (("knn", record.knn_log), ("localizer", record.localizer_log)):
            lines = [
                {
                    "knn_parameters_id": parameters_id,
                    "model": model,
                    "epoch": line.epoch,
                    "loss": None if np.isnan(line.loss) else line.loss,
                    "masked": line.masked,
                    "discrepancies": line.discrepancies,
                    "parameters": line.parameters.tolist(),
                }
                for line in log
            ]
            connection.execute(statement("approximations.add_training_epoch"), lines)
    return StoredParameters(parameters_id, knn, eta_loc, reliability)


def _parameters(row: Row[Any] | None) -> StoredParameters | None:
    if row is None:
        return None
    knn = KnnParameters(np.array(row.beta, dtype=np.float64), np.array(row.gamma, dtype=np.float64), row.eta)
    model = None if row.reliability is None else ReliabilityModel.of_document(row.reliability)
    return StoredParameters(row.id, knn, row.eta_loc, model)


def current_parameters(connection: Connection, classifier: Classifier) -> StoredParameters | None:
    """Return the parameters that new work uses; None before the first fit."""
    row = execute(connection, "approximations.current_parameters", classifier_id=classifier.id).one_or_none()
    return _parameters(row)


def require_parameters(connection: Connection, classifier: Classifier) -> StoredParameters:
    """Return the parameters that new work uses. Raises NotReadyError before the first fit."""
    parameters = current_parameters(connection, classifier)
    if parameters is None:
        message = f"classifier {classifier.name!r} has no KNN parameters yet: fit it first"
        raise NotReadyError(message, code=Code.NOT_FITTED, classifier=classifier.name)
    return parameters


def parameters_by_id(connection: Connection, knn_parameters_id: int) -> StoredParameters:
    """Return the parameters with this key, whose existence a foreign key guarantees."""
    row = execute(connection, "approximations.parameters_by_id", knn_parameters_id=knn_parameters_id).one()
    stored = _parameters(row)
    assert stored is not None
    return stored


def parameters_of(connection: Connection, knn_parameters_id: int | None) -> StoredParameters | None:
    """Return the parameters with a key; None for None, which a classifier with logits only has in its place."""
    return None if knn_parameters_id is None else parameters_by_id(connection, knn_parameters_id)


def export_rows(connection: Connection, classifier: Classifier) -> Iterator[Sequence[Row[Any]]]:
    """Yield approximations under the current parameters, in order of ingestion, in blocks."""
    return stream(connection, "approximations.export_approximations", {"classifier_id": classifier.id})


def fit_of_job(connection: Connection, job_id: int) -> Fit | None:
    """Return what a job has fitted; None if it is no fit, or is not done."""
    row = execute(connection, "approximations.fit_of_job", job_id=job_id).one_or_none()
    return None if row is None else Fit(**row._mapping)
