"""Binary COPY: what goes in is what SELECT and COPY give back, whatever the type, the nulls and the blocks."""

import json
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from threading import Event, Thread
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.conftest import fresh_engine
from venn_admit.errors import DatabaseError
from venn_admit.store.database.binary_copy import (
    BOOL,
    BYTEA,
    FLOAT8,
    INT4,
    INT8,
    JSONB,
    TEXT,
    Array,
    Bits,
    Column,
    FixedColumn,
    PackedBits,
    Vector,
    copy_in,
    copy_out,
    copy_out_packed,
    encode_rows,
)
from venn_admit.store.database.engine import Cursor, connect, driver_cursor

WIDTH = 3
BITS = 11  # more than a byte

FIXED: dict[str, tuple[str, FixedColumn]] = {
    "int4": ("integer", INT4),
    "int8": ("bigint", INT8),
    "float8": ("double precision", FLOAT8),
    "bool": ("boolean", BOOL),
    "int4s": ("integer[]", Array(">i4", WIDTH)),
    "int8s": ("bigint[]", Array(">i8", WIDTH)),
    "float4s": ("real[]", Array(">f4", WIDTH)),
    "float8s": ("double precision[]", Array(">f8", WIDTH)),
    "vector": ("vector", Vector(WIDTH)),
    "bits": ("bit varying", Bits(BITS)),
}
VARYING: dict[str, tuple[str, Column]] = {
    "text": ("text", TEXT),
    "bytea": ("bytea", BYTEA),
    "jsonb": ("jsonb", JSONB),
}
TYPES: dict[str, tuple[str, Column]] = {**FIXED, **VARYING}
ELEMENTS: dict[str, st.SearchStrategy[Any]] = {
    "int4": hnp.from_dtype(np.dtype(np.int32)),
    "int8": hnp.from_dtype(np.dtype(np.int64)),
    "float8": st.floats(),
    "bool": st.booleans(),
    "float4": st.floats(width=32),
    "vector": st.floats(width=32, allow_nan=False, allow_infinity=False),
}
DTYPES = {"int4": np.int32, "int8": np.int64, "float8": np.float64, "bool": np.bool_, "float4": np.float32}
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def cursor(server_url: str, template_database: str) -> Iterator[Cursor]:
    """A session with an empty table `types`, a column a type; what a test writes is rolled back."""
    columns = ", ".join(f'"{name}" {sql_type}' for name, (sql_type, _) in TYPES.items())
    with fresh_engine(server_url, template_database) as engine, connect(engine) as connection:
        found = driver_cursor(connection)
        found.execute(f"CREATE TEMPORARY TABLE types (row integer, {columns})".encode())
        found.execute("SAVEPOINT empty")
        yield found


@pytest.fixture(autouse=True)
def _empty(cursor: Cursor) -> None:
    empty(cursor)


def empty(cursor: Cursor) -> None:
    cursor.execute("ROLLBACK TO empty")


def put(
    cursor: Cursor,
    columns: Mapping[str, Column],
    values: Mapping[str, Any],
    nulls: Mapping[str, npt.NDArray[np.bool_]] | None = None,
    block_rows: int = 1024,
) -> None:
    paired = {name: (column, values[name]) for name, column in columns.items()}
    copy_in(cursor, "types", paired, nulls, block_rows)


def fixed_values(name: str, n: int) -> st.SearchStrategy[npt.NDArray[Any]]:
    """Arrays (n,), (n, WIDTH) or (n, BITS) for a column."""
    match name:
        case "bits":
            return hnp.arrays(np.bool_, (n, BITS))
        case "vector":
            return hnp.arrays(np.float32, (n, WIDTH), elements=ELEMENTS["vector"])
        case _ if name.endswith("s"):
            kind = name.removesuffix("s")
            return hnp.arrays(DTYPES[kind], (n, WIDTH), elements=ELEMENTS[kind])
    # As they are read: the program has labels and counts as int64.
    read = np.int64 if name == "int4" else DTYPES[name]
    return hnp.arrays(DTYPES[name], n, elements=ELEMENTS[name]).map(lambda values: values.astype(read))


@st.composite
def fixed_columns(draw: st.DrawFn) -> tuple[str, npt.NDArray[Any], npt.NDArray[np.bool_], int]:
    """A column of fixed size: its name, values, which are null, and the rows of a block."""
    name = draw(st.sampled_from(list(FIXED)))
    n = draw(st.integers(0, 9))
    return name, draw(fixed_values(name, n)), draw(hnp.arrays(np.bool_, n)), draw(st.integers(1, 10))


def selected(cursor: Cursor, name: str) -> list[Any]:
    return [value for (value,) in cursor.execute(f'SELECT "{name}" FROM types ORDER BY row'.encode()).fetchall()]


def as_driver_gives(name: str, values: npt.NDArray[Any]) -> list[Any]:
    """What psycopg makes of the column, read the usual way."""
    if name == "bits":
        return ["".join("01"[bit] for bit in row) for row in values.astype(int)]
    return list(values.tolist())


def as_float32(stored: list[Any]) -> list[Any]:
    """What the driver gives in as few digits as tell float32 values apart."""
    return [
        value
        if value is None
        else np.float32(json.loads(value, parse_int=float) if isinstance(value, str) else value).tolist()
        for value in stored
    ]


def copied_out(cursor: Cursor, name: str, block_rows: int) -> list[npt.NDArray[Any]]:
    query = f'SELECT "{name}" FROM types ORDER BY row'
    return [block[name] for block in copy_out(cursor, query, {}, {name: FIXED[name][1]}, block_rows)]


def assert_bits_equal(found: npt.NDArray[Any], expected: npt.NDArray[Any]) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


@settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(fixed_columns())
def test_fixed_columns_come_back(
    cursor: Cursor, column: tuple[str, npt.NDArray[Any], npt.NDArray[np.bool_], int]
) -> None:
    name, values, nulls, block_rows = column
    empty(cursor)
    rows = {"row": np.arange(len(values)), name: values}
    put(cursor, {"row": INT4, name: FIXED[name][1]}, rows, {name: nulls}, block_rows)
    found = selected(cursor, name)
    if name in ("float4s", "vector"):
        found = as_float32(found)
    for value, given_value, null in zip(found, as_driver_gives(name, values), nulls, strict=True):
        if null:
            assert value is None
        else:
            np.testing.assert_equal(value, given_value)
    cursor.execute(f'DELETE FROM types WHERE "{name}" IS NULL'.encode())
    blocks = copied_out(cursor, name, block_rows)
    kept = values[~nulls]
    assert [len(block) for block in blocks[:-1]] == [block_rows] * (len(blocks) - 1)
    assert_bits_equal(np.concatenate([values[:0], *blocks]), kept)


@pytest.mark.parametrize("length", [1, 8, BITS, 17])
def test_packed_bits_are_the_same_bits(cursor: Cursor, length: int) -> None:
    values = np.random.default_rng(length).random((20, length)) < 0.5
    packed = np.packbits(values, axis=1)
    rows: dict[str, Any] = {"row": np.arange(len(values)), "bits": packed}
    put(cursor, {"row": INT4, "bits": PackedBits(length)}, rows)
    query = "SELECT bits FROM types ORDER BY row"
    for column, expected in ((Bits(length), values), (PackedBits(length), packed)):
        (block,) = copy_out(cursor, query, {}, {"bits": column}, 100)
        assert_bits_equal(block["bits"], expected)


@settings(
    max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(
    st.lists(st.tuples(st.none() | texts, st.none() | st.binary(max_size=40), st.none() | documents), max_size=9),
    st.integers(1, 10),
)
@example([("", b"", {}), (None, None, None), ("\ufeffß\u0301🙂\n\t\\N", b"\0\0", {"\u2028": "\ud7ff"})], 2)
def test_varying_columns_come_back(cursor: Cursor, rows: list[tuple[Any, ...]], block_rows: int) -> None:
    """Side by side, each of another length and null where it will."""
    empty(cursor)
    names = list(VARYING)
    values: dict[str, Any] = {"row": np.arange(len(rows)), **{name: [] for name in names}}
    for text, data, document in rows:
        values["text"].append(None if text is None else text.encode())
        values["bytea"].append(data)
        values["jsonb"].append(None if document is None else b"\x01" + json.dumps(document).encode())
    put(cursor, {"row": INT4} | {name: TYPES[name][1] for name in names}, values, block_rows=block_rows)
    assert list(zip(*(selected(cursor, name) for name in names), strict=True)) == rows


def everything(n: int) -> dict[str, Any]:
    """Values for all columns of fixed size."""
    rng = np.random.default_rng(n)
    return {
        "row": np.arange(n),
        "int4": rng.integers(-(2**31), 2**31, n),
        "int8": rng.integers(-(2**63), 2**63 - 1, n),
        "float8": rng.normal(size=n),
        "bool": rng.random(n) < 0.5,
        "int4s": rng.integers(-9, 9, (n, WIDTH), dtype=np.int32),
        "int8s": rng.integers(-9, 9, (n, WIDTH)),
        "float4s": rng.normal(size=(n, WIDTH)).astype(np.float32),
        "float8s": rng.normal(size=(n, WIDTH)),
        "vector": rng.normal(size=(n, WIDTH)).astype(np.float32),
        "bits": rng.random((n, BITS)) < 0.5,
    }


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 128, 200])
@pytest.mark.parametrize("block_rows", [1, 64, 1000])
def test_all_columns_at_once_in_blocks(cursor: Cursor, n: int, block_rows: int) -> None:
    values = everything(n)
    columns: dict[str, FixedColumn] = {"row": INT4, **{name: column for name, (_, column) in FIXED.items()}}
    put(cursor, columns, values, block_rows=block_rows)
    names = ", ".join(f'"{name}"' for name in columns)
    blocks = list(copy_out(cursor, f"SELECT {names} FROM types ORDER BY row", {}, columns, block_rows))
    assert [len(block["row"]) for block in blocks] == [min(block_rows, n - start) for start in range(0, n, block_rows)]
    for name in FIXED if n else ():
        assert_bits_equal(np.concatenate([block[name] for block in blocks]), values[name])


@pytest.mark.parametrize("block_rows", [1, 64, 1000])
def test_packed_rows_are_the_same_rows(cursor: Cursor, block_rows: int) -> None:
    values = everything(200)
    columns: dict[str, FixedColumn] = {"row": INT4, **{name: column for name, (_, column) in FIXED.items()}}
    put(cursor, columns, values)
    names = ", ".join(f'"{name}"' for name in columns)
    blocks = list(copy_out_packed(cursor, packing(names), {"rows": block_rows}, columns))
    assert [len(block["row"]) for block in blocks] == [
        min(block_rows, 200 - start) for start in range(0, 200, block_rows)
    ]
    for name in columns:
        found = np.concatenate([block[name] for block in blocks])
        assert_bits_equal(found, values[name].astype(found.dtype))


def packing(names: str) -> str:
    """A query that packs the rows of the table in blocks of `rows`."""
    return (
        f"SELECT string_agg(record_send(packed), '' ORDER BY row) FROM (SELECT {names} FROM types) AS packed "
        "GROUP BY row / %(rows)s ORDER BY row / %(rows)s"
    )


def test_parameters_of_the_query(cursor: Cursor) -> None:
    put(cursor, {"row": INT4, "int8": INT8}, {"row": np.arange(9), "int8": np.arange(9) * 10})
    query = "SELECT int8 FROM types WHERE row = ANY(%(rows)s::int[]) ORDER BY row"
    (block,) = copy_out(cursor, query, {"rows": [7, 2, 4]}, {"int8": INT8}, 100)
    assert block["int8"].tolist() == [20, 40, 70]


class TestWhatDoesNotFit:
    @pytest.mark.parametrize("name", list(FIXED))
    @pytest.mark.parametrize("position", [0, 1, 4])
    def test_a_null_where_none_is_expected(self, cursor: Cursor, name: str, position: int) -> None:
        values = {"row": np.arange(5), name: everything(5)[name]}
        nulls = {name: np.arange(5) == position}
        put(cursor, {"row": INT4, name: FIXED[name][1]}, values, nulls)
        with pytest.raises(DatabaseError, match=f"rows of an unexpected shape for columns {name}: a null or"):
            copied_out(cursor, name, 2)

    @pytest.mark.parametrize(
        ("stored", "expected"),
        [
            (Array(">i8", 2), Array(">i8", 3)),
            (Array(">i8", 4), Array(">i8", 3)),
            (Array(">i8", 3), Array(">i8", 2)),
        ],
    )
    def test_an_array_of_another_length(self, cursor: Cursor, stored: Array, expected: Array) -> None:
        values = {"row": np.arange(5), "int8s": np.ones((5, stored.length), np.int64)}
        put(cursor, {"row": INT4, "int8s": stored}, values)
        with pytest.raises(DatabaseError, match="a null or an array of another length is stored"):
            list(copy_out(cursor, "SELECT int8s FROM types", {}, {"int8s": expected}, 2))

    @pytest.mark.parametrize("name", list(FIXED))
    def test_a_null_among_packed_rows(self, cursor: Cursor, name: str) -> None:
        values, columns = {"row": np.arange(5), name: everything(5)[name]}, {"row": INT4, name: FIXED[name][1]}
        put(cursor, columns, values, {name: np.arange(5) == 2})
        with pytest.raises(DatabaseError, match=f"rows of an unexpected shape for columns row, {name}"):
            list(copy_out_packed(cursor, packing(f'row, "{name}"'), {"rows": 5}, columns))

    def test_another_number_of_columns(self, cursor: Cursor) -> None:
        put(cursor, {"row": INT4, "int4": INT4}, {"row": np.arange(5), "int4": np.arange(5)})
        with pytest.raises(DatabaseError, match="of an unexpected shape"):
            list(copy_out(cursor, "SELECT row, int4 FROM types", {}, {"row": INT4}, 2))

    def test_the_session_goes_on(self, cursor: Cursor) -> None:
        put(cursor, {"row": INT4, "int4": INT4}, {"row": np.arange(5), "int4": np.arange(5)})
        cursor.execute("SAVEPOINT here")
        with pytest.raises(DatabaseError):
            list(copy_out(cursor, "SELECT NULL::int4 FROM generate_series(1, 100000)", {}, {"int4": INT4}, 2))
        cursor.execute("ROLLBACK TO here")
        assert selected(cursor, "int4") == [0, 1, 2, 3, 4]


class TestLongValues:
    """One long text must not make every row of its block as long."""

    def values(self, lengths: Sequence[int]) -> dict[str, Any]:
        texts = [bytes([97 + row % 26]) * length for row, length in enumerate(lengths)]
        return {"row": np.arange(len(lengths)), "text": texts, "float8": np.arange(len(lengths)) / 7}

    def test_come_back(self, cursor: Cursor) -> None:
        lengths = [row % 5 for row in range(1000)]
        lengths[3], lengths[500], lengths[999] = 1 << 20, 3 << 20, 200_000
        values = self.values(lengths)
        nulls = {"float8": np.arange(1000) % 3 == 0}
        put(cursor, {"row": INT4, "text": TEXT, "float8": FLOAT8}, values, nulls)
        assert [text.encode() for text in selected(cursor, "text")] == values["text"]
        expected = [None if row % 3 == 0 else row / 7 for row in range(1000)]
        assert selected(cursor, "float8") == expected

    def test_take_memory_in_proportion(self) -> None:
        lengths = [10] * 4000
        lengths[1234] = 1 << 20
        tracemalloc.start()
        try:
            encoded = encode_rows({"row": INT4, "text": TEXT}, self.values(lengths), {})
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(encoded) == sum(lengths) + 4000 * (2 + 4 + 4 + 4)
        assert peak < 8 << 20  # as wide as the longest, the rows would take 4 GiB

    def test_a_single_row_beyond_the_budget(self, cursor: Cursor) -> None:
        put(cursor, {"row": INT4, "text": TEXT}, {"row": np.arange(1), "text": [b"x" * (65 << 20)]})
        cursor.execute("SELECT length(text) FROM types")
        assert cursor.fetchall() == [(65 << 20,)]


@pytest.mark.parametrize("row", [1, 2, 20_000, 50_000])
def test_an_error_of_the_server_at_any_row(cursor: Cursor, row: int) -> None:
    """It comes as the driver's error, with the first row, among those that arrived together, or behind the last."""
    cursor.execute("SAVEPOINT here")
    query = f"SELECT 1 / (n - {row}) AS n FROM generate_series(1, 50000) AS n"
    with pytest.raises(psycopg.errors.DivisionByZero):
        list(copy_out(cursor, query, {}, {"n": INT4}, 1000))
    cursor.execute("ROLLBACK TO here")
    (block,) = copy_out(cursor, "SELECT 7 AS n", {}, {"n": INT4}, 1000)
    assert block["n"].tolist() == [7]


def test_other_threads_run_while_the_end_of_a_copy_is_awaited(cursor: Cursor) -> None:
    """The server says that the last row was sent, and commits a while later."""
    cursor.execute("""
        CREATE FUNCTION pg_temp.linger() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE INFO 'sent at once'; PERFORM pg_sleep(.5); RETURN NULL; END $$
    """)
    cursor.execute("CREATE TEMPORARY TABLE committed (n integer)")
    cursor.execute("""
        CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON committed DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION pg_temp.linger()
    """)
    cursor.connection.commit()
    cursor.connection.autocommit = True
    ticks = 0
    done = Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.01):
            ticks += 1

    ticking = Thread(target=tick)
    ticking.start()
    try:
        (block,) = copy_out(cursor, "INSERT INTO committed VALUES (7) RETURNING n", {}, {"n": INT4}, 1000)
    finally:
        done.set()
        ticking.join()
        cursor.connection.autocommit = False
    assert block["n"].tolist() == [7]
    assert ticks > 10
