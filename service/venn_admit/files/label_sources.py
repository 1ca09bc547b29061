"""Where labels come from: a file, or a table in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.files.labels import LabelRows, read_label_batches, read_labels


class LabelSource(Protocol):
    """Labels that can be read once; `str` of it is what messages call it."""

    @property
    def name(self) -> str:
        """What is recorded as the source of the labels."""
        ...

    def read(self, *, class_names: Sequence[str], selection: str, retract: bool) -> LabelRows:
        """Read all rows; arguments and errors are those of `read_labels`."""
        ...


@dataclass(frozen=True, slots=True)
class LabelFile:
    """A file of labels, .csv or .parquet. memory_budget: bytes that reading it may take."""

    path: Path
    memory_budget: int = DEFAULT_MEMORY_BUDGET

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        return self.path.name

    def read(self, *, class_names: Sequence[str], selection: str, retract: bool) -> LabelRows:
        return read_labels(
            self.path, class_names=class_names, selection=selection, retract=retract, memory_budget=self.memory_budget
        )


@dataclass(frozen=True, slots=True, eq=False)
class LabelTable:
    """A table of labels. name: what it is called, in messages too. memory_budget: bytes that reading it may take."""

    name: str
    table: pa.Table
    memory_budget: int = DEFAULT_MEMORY_BUDGET

    def __str__(self) -> str:
        return self.name

    def read(self, *, class_names: Sequence[str], selection: str, retract: bool) -> LabelRows:
        return read_label_batches(
            self.name,
            self.table.schema,
            iter(self.table.to_batches()),
            class_names=class_names,
            selection=selection,
            retract=retract,
            memory_budget=self.memory_budget,
        )
