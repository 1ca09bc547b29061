"""The KNN beside the network of a memory layer: its training exemplars, its fit, and what it says of others.

Source: Schmaltz & Rasooly (2022), eq. 1 and 2; Schmaltz (2021) for the KNN over tokens. The mathematics is that of
`core.approximation` and `core.neighbours`. The vectors of the training exemplars lie in a file without a name, which is
gone with the process.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from venn_admit.core.approximation.knn import approximate
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import Approximation, Float32Array, IntArray, KnnParameters, Neighbours, Support
from venn_admit.errors import NotReadyError
from venn_admit.files.output.atomic import writing
from venn_admit.layer.apply import extract
from venn_admit.layer.model import LayerModel
from venn_admit.layer.states.index import Kind
from venn_admit.layer.states.reader import StateShards

if TYPE_CHECKING:
    from venn_admit.core.neighbours.index import NeighbourIndex

FIT_SHARE = 0.25
"""The expected share of documents that the KNN is fitted on, if none are given for that alone."""

FIT_ROWS = 10_000
"""The fit takes no more exemplars than about these; their documents are the first by a hash of the id."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingExemplars:
    """N labelled exemplars among which neighbours are searched.

    Attributes:
        index: Their vectors, in a file, ready to be searched.
        document_ids: The id of the document that each belongs to, itself if it is one.
    """

    index: "NeighbourIndex"
    support: Support
    external_ids: list[str]
    document_ids: list[str]

    def nearest(self, vectors: Float32Array, neighbour_count: int, *, memory_budget: int) -> Neighbours:
        """Return the K nearest of these for each vector, exactly; ties go to the earlier one.

        Raises:
            NotReadyError: There are fewer than K.
        """
        from venn_admit.core.neighbours.search import search

        count = len(self.support.labels)
        if count < neighbour_count:
            raise NotReadyError(
                f"expected at least {neighbour_count:,} labelled training exemplars, as many as neighbours are wanted, "
                f"got {count:,}; label more, or choose fewer neighbours"
            )
        return search(vectors, self.index, neighbour_count, memory_budget=memory_budget)[0]


@contextmanager
def training_exemplars(
    model: LayerModel, shards: StateShards, level: Kind, *, folder: Path, memory_budget: int
) -> Iterator[TrainingExemplars]:
    """Extract the training exemplars; what has no label is left out.

    A token of a document that is labelled as a whole has the document's label, as in zero-shot sequence labelling.

    Raises:
        InvalidInputError: As in `extract`, or the folder cannot be written.
        NotReadyError: Nothing is labelled.
    """
    from venn_admit.core.neighbours.index import NeighbourIndex

    inherits = shards.kind == "document"
    logits, labels = [], []
    external_ids: list[str] = []
    document_ids: list[str] = []
    with writing(folder):
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed at the end of the next block
    with file:
        for batch in extract(model, shards, level=level, inherit_labels=inherits, memory_budget=memory_budget):
            known = np.flatnonzero(batch.labels >= 0)
            assert batch.vectors is not None, "a memory layer gives vectors"
            with writing(folder):
                file.write(batch.vectors[known].tobytes())
            logits.append(batch.logits[known])
            labels.append(batch.labels[known])
            external_ids += [batch.external_ids[row] for row in known.tolist()]
            document_ids += [batch.document_ids[row] or batch.external_ids[row] for row in known.tolist()]
        if not external_ids:
            raise NotReadyError(f"{shards.called}: expected labelled training exemplars, got none; label some")
        with writing(folder):
            file.flush()
        shape = (len(external_ids), model.vector_length_at(level))
        vectors = np.memmap(file, np.float32, "r", shape=shape)
        yield TrainingExemplars(
            NeighbourIndex.of(vectors),
            Support(np.concatenate(logits), np.concatenate(labels)),
            external_ids,
            document_ids,
        )


@dataclass(frozen=True, slots=True, eq=False)
class FittedKnn:
    """A KNN over training exemplars."""

    training: TrainingExemplars
    neighbour_count: int
    parameters: KnnParameters
    fit_count: int

    def view(self, vectors: Float32Array, *, memory_budget: int) -> Approximation:
        """Return the KNN's logits, predictions, q and d."""
        found = self.training.nearest(vectors, self.neighbour_count, memory_budget=memory_budget)
        return approximate(found, self.training.support, self.parameters)


def fit_share(shards: StateShards, seed: int) -> tuple[IntArray, IntArray]:
    """Divide documents by a hash of their ids into those to fit on, about a quarter, and those to evaluate.

    Returns:
        Rows to fit on, and rows to evaluate, int64.
    """
    hashes = hash_keys(shards.external_ids, seed=seed, purpose="memory knn")
    chosen = hashes < np.uint64(FIT_SHARE * 2.0**64)
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def fit_on(
    model: LayerModel,
    training: TrainingExemplars,
    shards: StateShards,
    rows: IntArray,
    level: Kind,
    *,
    neighbour_count: int,
    memory_budget: int,
) -> FittedKnn:
    """Fit the KNN so that it approximates the network on documents that the network was not trained on.

    Their labels are not looked at.

    Args:
        rows: (m,) int64, the documents to fit on.

    Raises:
        NotReadyError: There are fewer than two documents to fit on, or fewer than K training exemplars.
    """
    from venn_admit.core.approximation.fit import fit_knn

    ids = [shards.external_ids[row] for row in rows.tolist()]
    hashes = hash_keys(ids, seed=model.settings.seed, purpose="memory fit")
    order = rows[sorted(range(len(ids)), key=lambda place: (hashes[place], ids[place]))]
    found, logits = [], []
    row_keys: list[str] = []
    document_keys: list[str] = []
    for batch in extract(model, shards, level=level, order=order, memory_budget=memory_budget):
        assert batch.vectors is not None, "a memory layer gives vectors"
        found.append(training.nearest(batch.vectors, neighbour_count, memory_budget=memory_budget))
        logits.append(batch.logits)
        row_keys += batch.external_ids
        document_keys += [key or row for key, row in zip(batch.document_ids, batch.external_ids, strict=True)]
        if len(row_keys) >= FIT_ROWS:
            break
    if len(set(document_keys)) < 2:
        raise NotReadyError(
            f"{shards.called}: expected at least 2 documents to fit the KNN on, got {len(set(document_keys))}; "
            "evaluate more documents, or give others for the fit"
        )
    neighbours = Neighbours(
        np.concatenate([part.indices for part in found]), np.concatenate([part.distances for part in found])
    )
    fitted = fit_knn(
        neighbours,
        np.concatenate(logits),
        training.support,
        document_keys=document_keys,
        row_keys=row_keys,
        seed=model.settings.seed,
    )
    return FittedKnn(training, neighbour_count, fitted.parameters, len(row_keys))
