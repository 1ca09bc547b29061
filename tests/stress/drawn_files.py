"""Small files that the service takes as bodies, in each format in which they may be sent."""

from collections.abc import Mapping
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from tests.stress.furnished import reviews
from venn_admit_client.bodies import ARROW_STREAM, CSV, PARQUET


def _as_parquet(table: pa.Table) -> bytes:
    sink = BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _as_stream(table: pa.Table) -> bytes:
    sink = BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


_EXEMPLARS = pa.table({name: list(values) for name, values in reviews("drawn", 5, seed=5).items()})
_LABELS = pa.table({"external_id": ["held-out-1", "held-out-2"], "label": [0, 1]})

EXEMPLARS: Mapping[str, bytes] = {PARQUET: _as_parquet(_EXEMPLARS), ARROW_STREAM: _as_stream(_EXEMPLARS)}
LABELS: Mapping[str, bytes] = {
    PARQUET: _as_parquet(_LABELS),
    ARROW_STREAM: _as_stream(_LABELS),
    CSV: b"external_id,label\nheld-out-1,negative\nheld-out-2,positive\n",
}
"""Files for the classifier `reviews`, by media type: exemplars to store or score, and labels of some that it has."""
