"""Labels that are carried over to a new generation: those that its exemplars have in the other ones, by external id."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from venn_admit.core.split_names import HELD_OUT_SPLITS, Split
from venn_admit.core.types import UNKNOWN_LABEL
from venn_admit.errors import ConflictError
from venn_admit.files.records import ExemplarBatch
from venn_admit.flows.data.placing import Placement
from venn_admit.store.exemplars import labels
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.labels import CarriedLabel


@dataclass(frozen=True, slots=True, eq=False)
class CarriedLabels:
    """What other generations know of the exemplars of a batch that are new to this one, by external id."""

    known: Mapping[str, CarriedLabel]
    where: str

    def with_labels(self, batch: ExemplarBatch) -> ExemplarBatch:
        """Return a batch with the labels that count: where an exemplar is known, the latest of its ledger.

        Raises ConflictError for a label that the exemplar never had there.
        """
        if not self.known:
            return batch
        given = batch.labels.copy()
        for row, external_id in enumerate(batch.external_ids):
            known = self.known.get(external_id)
            if known is None:
                continue
            if given[row] != UNKNOWN_LABEL and given[row] not in known.labels:
                raise ConflictError(
                    f"{self._place(batch, row)}: {known.generation!r} has this exemplar "
                    f"{self._labelled(known.label)}, got {given[row]}; a file that is ingested or scored does not "
                    "change labels of another generation: label the exemplar, or correct the file"
                )
            given[row] = UNKNOWN_LABEL if known.label is None else known.label
        return replace(batch, labels=given)

    def require_for(self, batch: ExemplarBatch, splits: list[Split]) -> None:
        """Raise ConflictError if an exemplar would train or calibrate against what its ledger says."""
        if not self.known:
            return
        for row, external_id in enumerate(batch.external_ids):
            known = self.known.get(external_id)
            if known is None:
                continue
            if known.label is None:
                raise ConflictError(
                    f"{self._place(batch, row)}: its label was taken back in {known.generation!r}; leave it out, or "
                    "label it there"
                )
            if splits[row] in HELD_OUT_SPLITS and not known.is_random:
                raise ConflictError(
                    f"{self._place(batch, row)}: its label was selected in {known.generation!r}, and selected ones "
                    "never calibrate; leave it out, or score it"
                )

    def splits_of_scored(self, batch: ExemplarBatch, placement: Placement) -> list[Split]:
        """Return where exemplars that come to be scored belong: those with a random label calibrate."""
        splits = [Split.SCORED] * len(batch.external_ids)
        rows = [
            row
            for row, external_id in enumerate(batch.external_ids)
            if (known := self.known.get(external_id)) is not None and known.label is not None and known.is_random
        ]
        if rows:
            placed = placement.place(
                [batch.external_ids[row] for row in rows],
                [batch.document_ids[row] for row in rows],
                [batch.point_digests[row] for row in rows],
            )
            for row, split in zip(rows, placed.splits, strict=True):
                splits[row] = split
        return splits

    def ledgers(self) -> dict[str, int]:
        """Return whose ledger each exemplar takes over, by its external id."""
        return {external_id: known.exemplar_id for external_id, known in self.known.items()}

    def _place(self, batch: ExemplarBatch, row: int) -> str:
        return f"{self.where}: row {batch.first_row + row}, id {batch.external_ids[row]!r}"

    def _labelled(self, label: int | None) -> str:
        return "without a label" if label is None else f"with label {label}"


def labels_carried_to(
    connection: Connection, classifier: Classifier, batch: ExemplarBatch, where: str, *, has_others: bool
) -> CarriedLabels:
    """Return what other generations, if there are any, know of the exemplars of a batch.

    where: what messages call the source of the batch.
    """
    known = labels.of_other_generations(connection, classifier, batch.external_ids) if has_others else {}
    return CarriedLabels(known, where)
