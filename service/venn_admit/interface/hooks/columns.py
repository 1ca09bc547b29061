"""Which members of a batch are its labels, ids, documents and attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from venn_admit.errors import InvalidInputError
from venn_admit.interface.arrays import attributes_of, column_of
from venn_admit.interface.hooks.arguments import LABEL_NAMES, Arguments, Parameters, arguments_of, is_members, member
from venn_admit_client.naming import type_text


@dataclass(frozen=True, slots=True, eq=False)
class BatchColumns:
    """How the columns of a batch are found: each by a name, a position or a function of the batch, or among all rows.

    Attributes:
        inputs: What the model is called with; None: what is left. If it is given, nothing is guessed.
        labels: None: by convention, `labels` or `label` of a mapping and the second of two members.
        ids: None: there are none.
        documents: None: there are none.
        attributes: A mapping by the names that they will have, or a function that returns one; None: there are none.
        mask: Which positions of a sequence count; None: `attention_mask` of a mapping.
    """

    inputs: Any
    labels: Any
    ids: Any
    documents: Any
    attributes: Any
    mask: Any

    @property
    def whole(self) -> dict[str, Any]:
        """The columns that were given for all rows at once."""
        attributes = self.attributes if isinstance(self.attributes, Mapping) else {}
        named = {"labels": self.labels, "ids": self.ids, "documents": self.documents, **attributes}
        return {name: choice for name, choice in named.items() if is_whole(choice)}

    def arguments(self, batch: Any, parameters: Parameters | None) -> Arguments:
        """Return what the model is called with; errors are those of `arguments_of`."""
        attributes = self.attributes.values() if isinstance(self.attributes, Mapping) else ()
        choices = (self._labels(batch), self.ids, self.documents, *attributes)
        used = frozenset(choice for choice in choices if isinstance(choice, (str, int)))
        return arguments_of(batch, self.inputs, used, parameters)

    def mask_of(self, batch: Any) -> Any:
        """Return which positions of a sequence count, (n, T), or None if all do."""
        if self.mask is None:
            return batch.get("attention_mask") if isinstance(batch, Mapping) else None
        return _found(batch, self.mask, "mask")

    def labels_of(self, batch: Any, first_row: int, count: int) -> Sequence[Any] | None:
        """Return the labels of a batch of `count` rows, of which `first_row` is the number of the first one."""
        return _column(batch, self._labels(batch), "labels", first_row, count)

    def ids_of(self, batch: Any, first_row: int, count: int) -> Sequence[Any] | None:
        """Return the ids, in the same way."""
        return _column(batch, self.ids, "ids", first_row, count)

    def documents_of(self, batch: Any, first_row: int, count: int) -> Sequence[Any] | None:
        """Return the documents, in the same way."""
        return _column(batch, self.documents, "documents", first_row, count)

    def attributes_of(self, batch: Any, first_row: int, count: int) -> Mapping[str, Sequence[Any]] | None:
        """Return the attributes by name, in the same way."""
        if self.attributes is None:
            return None
        if not isinstance(self.attributes, Mapping):
            return attributes_of(self.attributes(batch))
        found = {}
        for name, choice in self.attributes.items():
            values = _column(batch, choice, f"attribute {name!r}", first_row, count)
            if values is not None:
                found[name] = values
        return found

    def _labels(self, batch: Any) -> Any:
        if self.labels is not None or self.inputs is not None:
            return self.labels
        if isinstance(batch, Mapping):
            return next(
                (name for name in LABEL_NAMES if name in batch and name not in (self.ids, self.documents)), None
            )
        is_pair = is_members(batch) and len(batch) == 2
        others = (self.ids, self.documents, *(self.attributes.values() if isinstance(self.attributes, Mapping) else ()))
        return 1 if is_pair and not any(isinstance(one, int) for one in others) else None


def attribute_choices(attributes: Any) -> Any:
    """Return how attributes are found, by name, from a list of names, a mapping, a table of all rows, or a function."""
    if attributes is None or callable(attributes):
        return attributes
    if isinstance(attributes, str):
        return {attributes: attributes}
    if isinstance(attributes, Mapping):
        return {str(name): choice for name, choice in attributes.items()}
    if isinstance(attributes, (list, tuple)):
        return {str(name): name for name in attributes}
    return attributes_of(attributes)


def is_whole(choice: Any) -> bool:
    """Whether a choice is a column of all rows, and not a name, a position or a function."""
    return choice is not None and not isinstance(choice, (str, int)) and not callable(choice)


def _column(batch: Any, choice: Any, what: str, first_row: int, count: int) -> Sequence[Any] | None:
    if choice is None:
        return None
    if is_whole(choice):
        rows = slice(first_row, first_row + count)
        values = choice.iloc[rows] if hasattr(choice, "iloc") else choice[rows]
    else:
        values = _found(batch, choice, what)
    if values is None or isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise _no_column(what, count, type_text(values))
    if len(getattr(values, "shape", (1,))) != 1 and not what.startswith("attribute"):
        raise _no_column(what, count, f"shape {tuple(values.shape)}")
    column = column_of(values)
    if len(column) != count:
        raise _no_column(what, count, len(column) if not is_whole(choice) else f"{len(choice)} for all rows")
    return column


def _found(batch: Any, choice: Any, what: str) -> Any:
    return choice(batch) if callable(choice) else member(batch, choice, what)


def _no_column(what: str, count: int, got: object) -> InvalidInputError:
    return InvalidInputError(
        f"{what}: expected {count} values, one for each row of the batch, got {got}; name what holds them, or give a "
        f"function of the batch"
    )
