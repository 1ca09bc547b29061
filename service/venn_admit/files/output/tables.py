"""Writing tables, batch by batch, as Parquet or CSV."""

import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.types import UNKNOWN_LABEL
from venn_admit.errors import InvalidInputError
from venn_admit.files.arrow.batches import EXTRACTOR_KEY
from venn_admit.files.output.atomic import check_output, replacing, writing
from venn_admit.files.output.exports import finite_json, list_column
from venn_admit.files.parquet.footer import read_footer
from venn_admit.files.records import ExemplarBatch

TABLE_ENDINGS = (".parquet", ".csv")

# What can be ingested.
EXEMPLAR_FILE_SCHEMA = pa.schema(
    {
        "external_id": pa.string(),
        "document_id": pa.string(),
        "vector": pa.list_(pa.float32()),
        "logits": pa.list_(pa.float32()),
        "label": pa.int32(),
        "attributes": pa.string(),
    }
)

_JSON = json.JSONEncoder(allow_nan=False)


def check_table_output(path: Path, *inputs: Path) -> None:
    """Raise InvalidInputError unless a table can be written to `path`, as `check_output` says.

    A file of exemplars is never replaced, even if the command does not know it as an input: `jobs resume` knows only
    the rows of the file that it continues to score.
    """
    check_output(path, TABLE_ENDINGS, *inputs)
    if _holds_exemplars(path):
        raise InvalidInputError(
            f"{path}: expected a place for results, got a file of exemplars, which would be lost; choose another name"
        )


class TableWriter:
    """Writes a table to a .parquet, .csv or .arrows file; the file appears under its name if the context succeeds.

    Until then the rows are in a file beside it that ends in `.partial`, which an error removes; any file that had the
    name before stays as it was.

    Raises InvalidInputError if the path cannot be written, and for columns that are not those of the schema.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._schema = schema
        self._context = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as context:
            file = context.enter_context(replacing(self._path))
            self._writer = context.enter_context(_format_writer(self._path, file, self._schema))
            self._context = context.pop_all()
        return self

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows: for every column of the schema n values, as a numpy array, a list or an Arrow array.

        An (n, k) numpy array is n lists. Values are converted to the type of the column; a value that does not fit is
        an error.
        """
        if set(columns) != set(self._schema.names):
            raise InvalidInputError(f"expected the columns {self._schema.names}, got {list(columns)}")
        try:
            arrays = [_convert(columns[field.name], field) for field in self._schema]
            batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        except (pa.ArrowException, ValueError) as error:
            raise InvalidInputError(f"{self._path}: expected values that fit the columns, got {error}") from error
        with writing(self._path):
            self._writer.write_batch(batch)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        with writing(self._path):
            return self._context.__exit__(kind, error, trace)


class _CsvWriter:
    """Writes batches as CSV: a list as JSON text, null as nothing, an empty text as two quotation marks."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self._schema = pa.schema(
            [field.with_type(pa.string()) if pa.types.is_list(field.type) else field for field in schema]
        )
        self._writer = pa_csv.CSVWriter(file, self._schema)

    def __enter__(self) -> Self:
        return self

    def write_batch(self, batch: pa.RecordBatch) -> None:
        columns = [
            pa.array(map(_json_text, column.to_pylist()), pa.string()) if pa.types.is_list(column.type) else column
            for column in batch.columns
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def __exit__(self, *_: object) -> None:
        self._writer.close()


def _format_writer(path: Path, file: IO[bytes], schema: pa.Schema) -> Any:
    """A context manager that accepts batches."""
    match path.suffix.lower():
        case ".parquet":
            return pq.ParquetWriter(file, schema, compression="zstd")
        case ".csv":
            return _CsvWriter(file, schema)
        case ".arrows":  # an Arrow IPC stream
            return pa.ipc.new_stream(file, schema)
    raise InvalidInputError(f"{path}: expected a name ending in {' or '.join(TABLE_ENDINGS)}")


def _json_text(values: list[Any] | None) -> str | None:
    if values is None:
        return None
    try:
        return _JSON.encode(values)
    except ValueError:  # an infinity or NaN; these are too rare to look for them first
        return _JSON.encode(finite_json(values))


def _convert(values: Any, field: pa.Field) -> pa.Array:
    if isinstance(values, np.ndarray) and values.ndim == 2:
        values = list_column(values)
    column = values if isinstance(values, pa.Array) else pa.array(values)
    return column.cast(field.type)


def _holds_exemplars(path: Path) -> bool:
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return False
    try:
        return "vector" in read_footer(path, DEFAULT_MEMORY_BUDGET).schema.names
    except InvalidInputError:  # not a table at all
        return False


def write_exemplars(path: Path, batches: Iterable[ExemplarBatch], *, extractor: str | None = None) -> int:
    """Write exemplars to a .parquet file, batch by batch; the file appears once it is complete.

    A label that is unknown is null; attributes are JSON objects.

    Args:
        path: Where to; a file there is replaced.
        batches: With vectors, and at least one row in all.
        extractor: The version of their extractor, which the file then states.

    Returns:
        The number of rows.

    Raises:
        InvalidInputError: The path cannot be written, or there is nothing to write.
    """
    check_output(path, (".parquet",))
    rows = 0
    stated = None if extractor is None else {EXTRACTOR_KEY: extractor.encode()}
    with TableWriter(path, EXEMPLAR_FILE_SCHEMA.with_metadata(stated)) as table:
        for batch in batches:
            if batch.vectors is None:
                raise InvalidInputError(f"{path}: expected exemplars with vectors, got some without")
            table.write(
                {
                    "external_id": batch.external_ids,
                    "document_id": pa.array(batch.document_ids, pa.string()),
                    "vector": batch.vectors,
                    "logits": batch.logits,
                    "label": pa.array(batch.labels, mask=batch.labels == UNKNOWN_LABEL),
                    "attributes": [json.dumps(values, ensure_ascii=False) for values in batch.attributes],
                }
            )
            rows += len(batch.labels)
        if not rows:
            raise InvalidInputError(f"{path}: expected at least one exemplar to write, got none")
    return rows
