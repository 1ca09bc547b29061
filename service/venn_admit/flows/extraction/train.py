"""Training a memory layer on a file, and applying it to one."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from venn_admit.files.output.tables import write_exemplars
from venn_admit.files.records import ExemplarBatch, labelled_rows
from venn_admit.flows.extraction.states import OpenedStates, Resources
from venn_admit.layer.settings import LayerSettings
from venn_admit.layer.states.index import Kind

if TYPE_CHECKING:
    from venn_admit.layer.model import LayerModel
    from venn_admit.layer.training import Trained, TrainingProgress


@dataclass(frozen=True, slots=True)
class Extracted:
    """The numbers of exemplars that were written, of those that are labelled, and of those that the network gets right.

    left_out: exemplars that were not written, because they have no label and only those with one were wanted.
    """

    rows: int
    labelled: int
    right: int
    left_out: int

    @property
    def accuracy(self) -> float | None:
        """The share of the labelled that the network predicts right, in [0, 1]; None without labels."""
        return self.right / self.labelled if self.labelled else None


def train_layer(states: OpenedStates, settings: LayerSettings, out: Path, resources: Resources) -> "Trained":
    """Train a memory layer and write it to a folder; go on if a training of the same data was interrupted.

    Raises:
        InvalidInputError: The settings do not fit the data, or the folder holds another model.
    """
    from venn_admit.layer.training import train

    def show(progress: "TrainingProgress") -> None:
        done = progress.finished
        if done is None:
            share = progress.tokens / progress.total_tokens
            resources.display.show(f"Training the memory layer: epoch {progress.epoch}, {share:.0%}")

    return train(states.shards, settings, out, progress=show, memory_budget=resources.memory_budget)


def write_extracted(
    model: "LayerModel",
    states: OpenedStates,
    out: Path,
    resources: Resources,
    *,
    level: Kind | None = None,
    inherit_labels: bool = False,
    labelled_only: bool = False,
) -> Extracted:
    """Apply a memory layer to states, and write the exemplars to a Parquet file that can be ingested.

    The file states the layer's version, so that exemplars of another one are not stored beside them.

    Args:
        out: The file, as `check_output` allows it.
        level: What an exemplar is; None: what it is for the layer.
        inherit_labels: As in `extract`.
        labelled_only: Whether exemplars without a label are left out, as those to train on and to calibrate by must be.

    Raises:
        InvalidInputError: The states are of another encoder or other classes, the file cannot be written, or there is
            nothing to write.
    """
    from venn_admit.layer.apply import extract
    from venn_admit.layer.outputs import level_of

    resources.display.show(f"Extracting {out.name}")
    labelled = right = left_out = 0

    def counted() -> Iterator[ExemplarBatch]:
        nonlocal labelled, right, left_out
        for batch in extract(
            model, states.shards, level=level, inherit_labels=inherit_labels, memory_budget=resources.memory_budget
        ):
            known = batch.labels >= 0
            labelled += int(known.sum())
            right += int((batch.logits.argmax(axis=1) == batch.labels)[known].sum())
            if not labelled_only:
                yield batch
                continue
            left_out += int((~known).sum())
            if known.any():
                yield labelled_rows(batch)

    rows = write_exemplars(out, counted(), extractor=model.version_at(level_of(model, level)))
    return Extracted(rows, labelled, right, left_out)
