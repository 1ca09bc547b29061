"""Writing exemplars as a Parquet file that can be ingested."""

import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from venn_admit.core.types import UNKNOWN_LABEL
from venn_admit.errors import InvalidInputError
from venn_admit.files.arrow.batches import EXTRACTOR_KEY
from venn_admit.files.output.atomic import check_output
from venn_admit.files.output.tables import TableWriter
from venn_admit.files.records import ExemplarBatch

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


def write_exemplars(path: Path, batches: Iterable[ExemplarBatch], *, extractor: str | None = None) -> int:
    """Write exemplars to a .parquet file, batch by batch; the file appears once it is complete.

    A label that is unknown is null; attributes are JSON objects.

    Args:
        path: Where to; a file there is replaced.
        batches: With vectors, and at least one row in all.
        extractor: The version of what the vectors come from, which the file then states.

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
