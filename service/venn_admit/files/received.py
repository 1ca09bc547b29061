"""Files that were uploaded: messages name them as their senders did, never by the path where they are kept."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.errors import InvalidInputError
from venn_admit.files.arrow.batches import exemplar_batches
from venn_admit.files.arrow.streams import open_stream
from venn_admit.files.label_values import ClassNumbers
from venn_admit.files.labels import LabelRows, LabelRules, read_label_batches, read_labels
from venn_admit.files.records import NOTHING_STATED, ExemplarBatch, Layout, Stated
from venn_admit.files.sources import FileSource

STREAM_ENDING = ".arrows"


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """A file of exemplars, .parquet or .arrows (an Arrow IPC stream), or of labels, which may be .csv as well.

    Attributes:
        name: What is recorded as the source of its rows.
        called: What messages call it.
        stated: What is stated of exemplars apart from the file.
    """

    path: Path
    name: str
    called: str
    memory_budget: int = DEFAULT_MEMORY_BUDGET
    stated: Stated = NOTHING_STATED

    def __str__(self) -> str:
        return self.called

    def count_rows(self) -> None:
        """Return None: how many rows there are is known once they are read."""
        return

    def batches(
        self, *, dimension: int | None, class_count: int, class_names: Sequence[str]
    ) -> Iterator[ExemplarBatch]:
        """Yield batches of checked rows; arguments and errors are those of `ExemplarSource.batches`."""
        with self._named():
            if self.path.suffix == STREAM_ENDING:
                classes = ClassNumbers(class_count, class_names)
                layout = Layout(self.called, dimension, class_count, classes, self.memory_budget, self.stated)
                with open_stream(self.path, self.called, self.memory_budget) as (schema, batches):
                    yield from exemplar_batches(layout, schema, batches)
            else:
                yield from FileSource(self.path, self.memory_budget, self.stated).batches(
                    dimension=dimension, class_count=class_count, class_names=class_names
                )

    def read(self, rules: LabelRules) -> LabelRows:
        """Read all rows of a file of labels; errors are those of `read_labels`."""
        with self._named():
            if self.path.suffix == STREAM_ENDING:
                with open_stream(self.path, self.called, self.memory_budget) as (schema, batches):
                    return read_label_batches(self.called, schema, batches, rules, self.memory_budget)
            return read_labels(self.path, rules, self.memory_budget)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Replace the path in messages of errors."""
        try:
            yield
        except InvalidInputError as error:
            said = str(error).replace(str(self.path), self.called)
            raise type(error)(said, code=error.code, **error.parameters) from error
