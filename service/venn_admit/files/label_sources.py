"""Where labels come from: a file, or a table in memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.files.labels import LabelRows, LabelRules, read_label_batches, read_labels


class LabelSource(Protocol):
    """Labels that can be read once; `str` of it is what messages call it."""

    @property
    def name(self) -> str:
        """What is recorded as the source of the labels."""

    def read(self, rules: LabelRules) -> LabelRows:
        """Read all rows; errors are those of `read_labels`."""


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

    def read(self, rules: LabelRules) -> LabelRows:
        return read_labels(self.path, rules, self.memory_budget)


@dataclass(frozen=True, slots=True, eq=False)
class LabelTable:
    """A table of labels. name: what it is called, in messages too. memory_budget: bytes that reading it may take."""

    name: str
    table: pa.Table
    memory_budget: int = DEFAULT_MEMORY_BUDGET

    def __str__(self) -> str:
        return self.name

    def read(self, rules: LabelRules) -> LabelRows:
        return read_label_batches(self.name, self.table.schema, self.table.to_batches(), rules, self.memory_budget)
