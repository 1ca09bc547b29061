"""Files made to be read wrongly: each a generator, small on the disk, that must be refused within the memory budget."""

import io
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, DIMENSION, CLASS_NAMES = 8, 4, ("no", "yes")
MEBIBYTE = 1 << 20

Generator = Callable[[Path], object]
HOSTILE: dict[str, Generator] = {}
"""What writes it to a path, by the name of the file."""
LEGAL: dict[str, Generator] = {}
"""Files of several times the memory that must be read all the same."""


def hostile(name: str) -> Callable[[Generator], Generator]:
    def keep(generator: Generator) -> Generator:
        HOSTILE[name] = generator
        return generator

    return keep


def write_all(folder: Path) -> None:
    """Write every file, hostile and legal."""
    for name, generator in (HOSTILE | LEGAL).items():
        generator(folder / name)


# npz: members are written by hand, so that a header may say anything.


def member(values: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(values))
    return stream.getvalue()


def header(descr: object, shape: object, *, column_major: bool = False, version: tuple[int, int] = (1, 0)) -> bytes:
    return header_of(repr({"descr": descr, "fortran_order": column_major, "shape": shape}), version)


def header_of(text: str, version: tuple[int, int] = (1, 0)) -> bytes:
    encoded = text.encode("latin1") + b"\n"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(encoded))
    return b"\x93NUMPY" + bytes(version) + length + encoded


def zeros(size: int) -> Iterator[bytes]:
    block = bytes(MEBIBYTE)
    for _ in range(size // MEBIBYTE):
        yield block
    yield bytes(size % MEBIBYTE)


def arrays() -> dict[str, bytes]:
    return {
        "r.npy": member(np.ones((ROWS, DIMENSION), np.float32)),
        "f.npy": member(np.ones((ROWS, len(CLASS_NAMES)), np.float32)),
    }


def write_npz(path: Path, compression: int = zipfile.ZIP_DEFLATED, /, **members: bytes | Iterable[bytes]) -> None:
    with zipfile.ZipFile(path, "w", compression, compresslevel=1) as archive:
        for name, content in (arrays() | {f"{name}.npy": value for name, value in members.items()}).items():
            with archive.open(name, "w", force_zip64=True) as file:
                for part in [content] if isinstance(content, bytes) else content:
                    file.write(part)


def stored(descr: object, shape: tuple[int, ...], size: int, **options: Any) -> Iterator[bytes]:
    yield header(descr, shape, **options)
    yield from zeros(size)


def npz_with(name: str, **members: Callable[[], bytes | Iterable[bytes]]) -> None:
    HOSTILE[f"{name}.npz"] = lambda path: write_npz(path, **{key: make() for key, make in members.items()})


npz_with("wide attribute", a=lambda: stored("|i1", (ROWS, 10_000_000), 80_000_000))
npz_with("wide ids", id=lambda: stored("<U3000000", (ROWS,), 96_000_000))
npz_with("wide text", a=lambda: stored("<U3000000", (ROWS,), 96_000_000))
npz_with("claimed text", a=lambda: header("<U200000000", (ROWS,)))
npz_with("empty lists", a=lambda: header("<f4", (ROWS, 100_000_000, 0)))
npz_with("empty texts", a=lambda: header("<U0", (ROWS, 100_000_000)))
npz_with("column-major", r=lambda: stored("<f4", (5_000_000, DIMENSION), 80_000_000, column_major=True),
         f=lambda: stored("<f4", (5_000_000, 2), 40_000_000))  # fmt: skip
npz_with("long header", r=lambda: header_of(" " * 60_000))
npz_with("endless header", r=lambda: b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1))
npz_with("header bomb", r=lambda: (part for parts in ([b"\x93NUMPY\x02\x00" + struct.pack("<I", 90_000_000)],
         zeros(90_000_000)) for part in parts))  # fmt: skip
npz_with("header of brackets", r=lambda: header_of("(" * 9_000))
npz_with("header with an expression", r=lambda: header_of("__import__('os').abort()"))
npz_with("header with a sum", r=lambda: header_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2**3, 4)}"))
npz_with("no header", r=lambda: b"")
npz_with("negative shape", r=lambda: header("<f4", (-8, -4)) + bytes(128))
npz_with("huge shape", r=lambda: header("<f4", (2**70, 4)))
npz_with("structured", a=lambda: member(np.zeros(ROWS, "i4,f8")))
npz_with("nested dtype", r=lambda: header([("a", "<f4", (10**9,))], (ROWS, DIMENSION)))
npz_with("objects", id=lambda: header("|O", (ROWS,)) + b"\x80\x04N.")
npz_with("unknown version", r=lambda: b"\x93NUMPY\x09\x00" + bytes(100))
npz_with("big-endian NaN", r=lambda: member(np.full((ROWS, DIMENSION), np.nan, ">f4")))
npz_with("signalling NaN", r=lambda: member(np.full((ROWS, DIMENSION), 0x7F800001, "<u4").view("<f4")))
npz_with("double overflow", r=lambda: member(np.full((ROWS, DIMENSION), 1e300)))
npz_with("long double", r=lambda: member(np.ones((ROWS, DIMENSION), np.longdouble)))
npz_with("complex", f=lambda: member(np.ones((ROWS, 2), complex)))
npz_with("no rows", r=lambda: member(np.ones((0, DIMENSION), "f4")), f=lambda: member(np.ones((0, 2), "f4")))
npz_with("no columns", r=lambda: member(np.ones((ROWS, 0), "f4")))
npz_with("negative labels", y=lambda: member(np.full(ROWS, -7)))
npz_with("labels beyond int32", y=lambda: member(np.full(ROWS, 2**40)))
npz_with("labels beyond int64", y=lambda: member(np.full(ROWS, 2**64 - 1, np.uint64)))
npz_with("half labels", y=lambda: member(np.full(ROWS, 0.5)))
npz_with("infinite labels", y=lambda: member(np.full(ROWS, np.inf)))
npz_with("ids beyond Unicode", id=lambda: header("<U2", (ROWS,)) + struct.pack("<I", 0x110000) * 2 * ROWS)
npz_with("id beyond Unicode", id=lambda: header("<U1", (ROWS,)) + struct.pack("<I", 0x7FFFFFFF) * ROWS)
npz_with("text beyond Unicode", a=lambda: header("<U3", (ROWS,)) + struct.pack("<I", 0xFFFFFFFF) * 3 * ROWS)
npz_with("surrogates", id=lambda: header("<U1", (ROWS,)) + struct.pack("<I", 0xD800) * ROWS)
npz_with("NUL", id=lambda: member(np.array(["a\0b"] * ROWS)))
npz_with("durations", a=lambda: member(np.zeros(ROWS, "m8[s]")))


@hostile("bzip2.npz")
def bzip2(path: Path) -> None:
    write_npz(path, zipfile.ZIP_BZIP2, r=stored("<f4", (1_000_000, DIMENSION), 16_000_000))


@hostile("lzma.npz")
def lzma(path: Path) -> None:
    write_npz(path, zipfile.ZIP_LZMA, r=stored("<f4", (1_000_000, DIMENSION), 16_000_000))


@hostile("many arrays.npz")
def many_arrays(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(2000):
            archive.writestr(f"{number}.npy", b"")


@hostile("large directory.npz")
def large_directory(path: Path) -> None:
    """A directory whose entries are there a few thousand times with long names."""
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(300):
            archive.writestr(f"{number}{'x' * 10_000}.npy", b"")


def patched(path: Path, place: int, replacement: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[place : place + len(replacement)] = replacement
    path.write_bytes(bytes(data))


@hostile("directory beyond the file.npz")
def directory_beyond(path: Path) -> None:
    write_npz(path)
    patched(path, path.stat().st_size - 10, struct.pack("<I", 2**31))


@hostile("overlapping members.npz")
def overlapping(path: Path) -> None:
    """Two entries of the directory that name the same bytes."""
    write_npz(path)
    data = path.read_bytes()
    second = data.rindex(b"PK\x01\x02")
    patched(path, second + 42, bytes(4))


@hostile("member of a false size.npz")
def false_size(path: Path) -> None:
    write_npz(path, zipfile.ZIP_STORED)
    first = path.read_bytes().index(b"PK\x01\x02")
    patched(path, first + 24, struct.pack("<I", 2**31 - 1))


@hostile("zip64 that lies.npz")
def zip64(path: Path) -> None:
    write_npz(path)
    data = path.read_bytes()
    end = data.rindex(b"PK\x05\x06")
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 2**40, 2**40, 2**40, 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
    path.write_bytes(data[:end] + record + locator + data[end:])


@hostile("flipped bits.npz")
def flipped(path: Path) -> None:
    write_npz(path, zipfile.ZIP_STORED)
    patched(path, 200, b"\xff")


@hostile("cut.npz")
def cut_npz(path: Path) -> None:
    write_npz(path)
    path.write_bytes(path.read_bytes()[:-30])


# Parquet.


def columns(rows: int = ROWS, **changed: Any) -> dict[str, Any]:
    return {
        "vector": pa.array([[1.0] * DIMENSION] * rows, pa.list_(pa.float32())),
        "logits": pa.array([[1.0, -1.0]] * rows, pa.list_(pa.float32())),
    } | changed


def parquet_with(name: str, make: Callable[[], dict[str, Any]], **options: Any) -> None:
    HOSTILE[f"{name}.parquet"] = lambda path: pq.write_table(pa.table(make()), path, **options)


def repeated(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


def invalid_utf8(rows: int = ROWS) -> pa.Array:
    return pa.array([b"\xff\xfe"] * rows, pa.binary()).view(pa.string())


LONG = "x" * (2 * MEBIBYTE)
BRACKETS = '{"a": ' + "[" * 50 + "]" * 50 + "}"

parquet_with("dictionary of a longer text", lambda: columns(ROWS, text=repeated(LONG * 8, ROWS)))
parquet_with("plain longer text", lambda: columns(2, text=[LONG * 8, "x"]), use_dictionary=False, compression="zstd")
parquet_with("plain longer text in a column with a dot", lambda: columns(2) | {"a.b": [LONG * 32, "x"]},
             use_dictionary=False, compression="zstd")  # fmt: skip
parquet_with("long ids", lambda: columns(external_id=repeated(LONG, ROWS)))
parquet_with("list of repeated texts", lambda: columns(1, tags=pa.ListArray.from_arrays(
    pa.array([0, 4000], pa.int32()), repeated("y" * 100_000, 4000))))  # fmt: skip
parquet_with("delta-encoded text", lambda: columns(16, text=[LONG] * 16), use_dictionary=False,
             column_encoding={"text": "DELTA_BYTE_ARRAY"})  # fmt: skip
parquet_with("one long vector", lambda: columns(2, vector=pa.ListArray.from_arrays(
    pa.array([0, 8_000_000, 8_000_004], pa.int32()), pa.array(np.zeros(8_000_004, np.float32)))))  # fmt: skip
parquet_with("one long list", lambda: columns(1, list=pa.ListArray.from_arrays(
    pa.array([0, 3_000_000], pa.int32()), pa.array(np.zeros(3_000_000, np.int8)))))  # fmt: skip
parquet_with("JSON of many values", lambda: columns(attributes=['{"a": [' + "0," * 500_000 + "0]}"] * ROWS))
parquet_with("deep JSON", lambda: columns(attributes=['{"a": ' + "[" * 20_000 + "]" * 20_000 + "}"] * ROWS))
parquet_with("JSON with a long number", lambda: columns(attributes=['{"a": ' + "9" * 5000 + "}"] * ROWS))
parquet_with("many row groups", lambda: columns(9000), row_group_size=1)
parquet_with("many columns", lambda: columns(1) | {f"c{number}": [1] for number in range(1200)})
parquet_with("vectors of other lengths", lambda: columns(vector=pa.array([[1.0] * 3, [1.0] * 5] * 4)))
parquet_with("nulls in vectors", lambda: columns(vector=pa.array([[1.0, None, 1.0, 1.0]] * ROWS)))
parquet_with("null vectors", lambda: columns(vector=pa.array([None] * ROWS, pa.list_(pa.float32()))))
parquet_with("double overflow", lambda: columns(vector=pa.array([[1e300] * DIMENSION] * ROWS)))
parquet_with("invalid UTF-8", lambda: columns(external_id=invalid_utf8()))
parquet_with("no rows", lambda: columns(0))
parquet_with("labels beyond int64", lambda: columns(label=pa.array([2**64 - 1] * ROWS, pa.uint64())))
parquet_with("half labels", lambda: columns(label=[0.5] * ROWS))
parquet_with("unknown class", lambda: columns(label=["maybe"] * ROWS))


@hostile("duplicate columns.parquet")
def duplicate_columns(path: Path) -> None:
    table = pa.table(columns())
    pq.write_table(table.append_column("vector", table.column("vector")), path)


def footer_with(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Replace the footer of a Parquet file."""
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer = change(data[-8 - length : -8])
    path.write_bytes(data[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def varint(value: int) -> bytes:
    """A number as Thrift's compact protocol has it."""
    value <<= 1
    encoded = b""
    while value > 127:
        encoded += bytes([value & 127 | 128])
        value >>= 7
    return encoded + bytes([value])


CLAIMED_ROWS = 4242


@hostile("more rows claimed.parquet")
def more_rows(path: Path) -> None:
    """A footer that names ten times the rows, in each place where it names them."""
    pq.write_table(pa.table({name: column.slice(0, 1) for name, column in columns().items()}), path)
    rows = CLAIMED_ROWS
    pq.write_table(pa.table(columns(rows)), path, compression="none")
    footer_with(path, lambda footer: footer.replace(varint(rows), varint(rows + 1000)))


@hostile("more rows in the footer alone.parquet")
def more_rows_in_all(path: Path) -> None:
    pq.write_table(pa.table(columns(CLAIMED_ROWS)), path)
    footer_with(path, lambda footer: footer.replace(varint(CLAIMED_ROWS), varint(CLAIMED_ROWS + 1000), 1))


@hostile("footer of a false length.parquet")
def false_footer(path: Path) -> None:
    pq.write_table(pa.table(columns()), path)
    patched(path, path.stat().st_size - 8, struct.pack("<I", 2**31 - 1))


@hostile("long footer.parquet")
def long_footer(path: Path) -> None:
    pq.write_table(pa.table(columns()).replace_schema_metadata({"k": "x" * MEBIBYTE}), path)


@hostile("huge page.parquet")
def huge_page(path: Path) -> None:
    """A page whose header claims two gigabytes, which a footer does not name."""
    pq.write_table(pa.table(columns(ROWS, a=list(range(ROWS)))), path, compression="none", use_dictionary=False)
    column = pq.read_metadata(path).row_group(0).column(2)
    data = path.read_bytes()
    place = column.data_page_offset
    # Type, then the decompressed size, which varints of other lengths may write.
    assert data[place] == 0x15
    assert data[place + 2] == 0x15
    longer = data[: place + 3] + varint(2**31 - 2) + data[place + 3 + len(varint(data[place + 3] >> 1)) :]
    path.write_bytes(longer)


@hostile("page longer than its column.parquet")
def stored_page(path: Path) -> None:
    """A page that claims two gigabytes in the file, which a reader allocates before it looks for them."""
    pq.write_table(pa.table(columns(ROWS, a=list(range(ROWS)))), path, compression="none", use_dictionary=False)
    place = pq.read_metadata(path).row_group(0).column(2).data_page_offset
    data = path.read_bytes()
    size = data[place + 2 : place + 3 + len(varint(data[place + 3] >> 1))]
    assert data[place] == size[0] == data[place + 2 + len(size)] == 0x15
    path.write_bytes(data[: place + 2 + len(size)] + b"\x15" + varint(2**31 - 2) + data[place + 2 + 2 * len(size) :])


def footer_of(start: bytes) -> Generator:
    """A file of a footer alone, as full as it may be of one short item."""

    def write(path: Path) -> None:
        room = 32 * MEBIBYTE // 128 - 100
        item = start[-3:]
        count = room // len(item)
        length = bytes([count & 127 | 128, count >> 7 & 127 | 128, count >> 14])
        footer = start[:-3] + b"\xfc" + length + item * count + b"\x00"
        path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")

    return write


HOSTILE["crowd of schema elements.parquet"] = footer_of(b"\x15\x04\x19" + b"\x48\x00\x00")
HOSTILE["crowd of keys.parquet"] = footer_of(b"\x59" + b"\x18\x00\x00")


@hostile("list without end in a page header.parquet")
def endless_list(path: Path) -> None:
    """A field that nobody knows, of 2^60 numbers of eight bytes each."""
    pq.write_table(pa.table(columns()), path)
    place = pq.read_metadata(path).row_group(0).column(0).dictionary_page_offset
    patched(path, place, b"\x09\x28\xf7" + b"\x80" * 8 + b"\x10")


@hostile("lists of lists in a page header.parquet")
def nested_lists(path: Path) -> None:
    pq.write_table(pa.table(columns(1024, a=list(range(1024)))), path)
    place = pq.read_metadata(path).row_group(0).column(0).dictionary_page_offset
    patched(path, place, b"\x09\x28" + b"\x19" * 2000)


@hostile("field of another type in a page header.parquet")
def other_type(path: Path) -> None:
    """A number where the description of the dictionary should be."""
    pq.write_table(pa.table(columns()), path)
    place = pq.read_metadata(path).row_group(0).column(0).dictionary_page_offset
    data = path.read_bytes()
    patched(path, data.index(b"\x4c\x15", place), b"\x45")


@hostile("sizes of another kind.parquet")
def other_sizes(path: Path) -> None:
    """Columns of numbers with a length of texts among their statistics of sizes, and a label that is out of range."""
    pq.write_table(pa.table(columns(label=[7] * ROWS)), path)
    footer_with(path, lambda footer: footer.replace(b"\x3c\x29", b"\x3c\x16\x02\x19"))


@hostile("indices beyond their dictionary.parquet")
def indices_beyond_dictionary(path: Path) -> None:
    pq.write_table(pa.table(columns(kind=["a", "b", "c", "a"] * (ROWS // 4))), path, compression="none")
    column = pq.read_metadata(path).row_group(0).column(2)
    place = path.read_bytes().index(b"\x02\x03", column.data_page_offset)  # indices of two bits, eight of them
    patched(path, place + 2, b"\xff\xff")


@hostile("flipped bits.parquet")
def flipped_parquet(path: Path) -> None:
    pq.write_table(pa.table(columns()), path, compression="none", use_dictionary=False, write_page_checksum=True)
    place = path.read_bytes().index(struct.pack("<f", 1.0) * DIMENSION)
    patched(path, place, b"\x07")


@hostile("cut.parquet")
def cut_parquet(path: Path) -> None:
    pq.write_table(pa.table(columns()), path)
    path.write_bytes(path.read_bytes()[:-30])


# Arrow streams.


def write_stream(path: Path, table: pa.Table, **options: Any) -> None:
    with pa.ipc.new_stream(str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)


def stream_with(name: str, make: Callable[[], dict[str, Any]], **options: Any) -> None:
    HOSTILE[f"{name}.arrows"] = lambda path: write_stream(path, pa.table(make()), **options)


def indices_beyond() -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([10**6] * ROWS, pa.int32()), pa.array(["a"]), safe=False)


ZEROS = "\x00x" * (20 * MEBIBYTE)

stream_with("bomb", lambda: columns(1, text=[ZEROS]), compression="zstd")
stream_with("bomb of LZ4", lambda: columns(1, text=[ZEROS]), compression="lz4")
stream_with("bomb in a dictionary", lambda: columns(text=repeated(ZEROS, ROWS)), compression="zstd")
stream_with("dictionary of a longer text", lambda: columns(text=repeated(LONG * 8, ROWS)))
stream_with("indices beyond their dictionary", lambda: columns(kind=indices_beyond()))
stream_with("without logits", lambda: {"vector": columns()["vector"]})
stream_with("vectors of integers", lambda: columns(vector=[[1] * DIMENSION] * ROWS))
stream_with("vectors of other lengths", lambda: columns(vector=pa.array([[1.0] * 3, [1.0] * 5] * 4)))
stream_with("null vectors", lambda: columns(vector=pa.array([None] * ROWS, pa.list_(pa.float32()))))
stream_with("NaN", lambda: columns(vector=pa.array([[np.nan] * DIMENSION] * ROWS, pa.list_(pa.float32()))))
stream_with("invalid UTF-8", lambda: columns(external_id=invalid_utf8()))
stream_with("no rows", lambda: columns(0))
stream_with("many columns", lambda: columns(1) | {f"c{number}": [1] for number in range(1200)})
stream_with("one long list", lambda: columns(1, list=pa.ListArray.from_arrays(
    pa.array([0, 3_000_000], pa.int32()), pa.array(np.zeros(3_000_000, np.int8)))))  # fmt: skip
HOSTILE["empty.arrows"] = lambda path: path.write_bytes(b"")
HOSTILE["of zeros.arrows"] = lambda path: path.write_bytes(bytes(100_000))
HOSTILE["of text.arrows"] = lambda path: path.write_bytes(b"GET / HTTP/1.1\r\n\r\n" * 1000)
HOSTILE["endless metadata.arrows"] = lambda path: path.write_bytes(
    b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 8) + bytes(1000)
)


@hostile("lists beyond their values.arrows")
def lists_beyond(path: Path) -> None:
    write_stream(path, pa.table(columns()))
    offsets = np.arange(ROWS + 1, dtype=np.int32) * DIMENSION
    patched(path, path.read_bytes().index(offsets.tobytes()), (offsets << 24).tobytes())


@hostile("long metadata.arrows")
def long_metadata(path: Path) -> None:
    write_stream(path, pa.table(columns()).replace_schema_metadata({"k": "x" * MEBIBYTE}))


@hostile("cut within a batch.arrows")
def cut_stream(path: Path) -> None:
    write_stream(path, pa.table(columns()))
    path.write_bytes(path.read_bytes()[:-100])


@hostile("cut between batches.arrows")
def cut_between_batches(path: Path) -> None:
    write_stream(path, pa.table(columns()))
    path.write_bytes(path.read_bytes()[:-8])


@hostile("duplicate columns.arrows")
def duplicate_stream_columns(path: Path) -> None:
    table = pa.table(columns())
    write_stream(path, table.append_column("vector", table.column("vector")))


@hostile("of another format.arrows")
def arrow_file(path: Path) -> None:
    table = pa.table(columns())
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


@hostile("buffer that claims terabytes.arrows")
def claimed_buffer(path: Path) -> None:
    write_stream(path, pa.table(columns(1, text=["x" * 5000])), compression="zstd")
    place = path.read_bytes().rindex(struct.pack("<q", 5000))
    patched(path, place, struct.pack("<q", 2**42))


def renamed(path: Path, name: str) -> None:
    """Have a column, or a part of one, a name that is no text."""
    write_stream(path, pa.table(columns(attributes=[{"stars": 1}] * ROWS)))
    path.write_bytes(path.read_bytes().replace(name.encode(), b"\xff" * len(name)))


HOSTILE["column with a name that is no text.arrows"] = lambda path: renamed(path, "logits")
HOSTILE["part with a name that is no text.arrows"] = lambda path: renamed(path, "stars")


@hostile("column with a name that is no text.parquet")
def renamed_column(path: Path) -> None:
    pq.write_table(pa.table(columns()), path, store_schema=False)
    footer_with(path, lambda footer: footer.replace(b"logits", b"\xff" * 6))


# Files of labels: their names say so.


def labels_csv(name: str, content: bytes) -> None:
    HOSTILE[f"label file {name}.csv"] = lambda path: path.write_bytes(content)


def labels_parquet(name: str, **changed: Any) -> None:
    table = {"external_id": ["a", "b"], "label": [0, 1]} | changed
    HOSTILE[f"label file {name}.parquet"] = lambda path: pq.write_table(pa.table(table), path)


labels_csv("empty", b"")
labels_csv("of zeros", bytes(100_000))
labels_csv("without a line end", b"x" * 200_000)
labels_csv("with NUL", b"external_id,label\na\0b,1\n")
labels_csv("of a quote never closed", b'external_id,label\n"a,1\nb,0\n')
labels_csv("of a huge field", b"external_id,label\n" + b"x" * (3 * MEBIBYTE) + b",1\n")
labels_csv("of a long id", b"external_id,label\n" + b"x" * 1001 + b",1\n")
labels_csv("by semicolons", b"external_id;label\na;1\n")
labels_csv("of UTF-16", "external_id,label\na,1\n".encode("utf-16"))
labels_csv("of invalid UTF-8", b"external_id,label\n\xff\xfe,1\n")
labels_csv("of surrogates", "external_id,label\n\ud800,1\n".encode("utf-8", "surrogatepass"))
labels_csv("of uneven rows", b"external_id,label\na,1,2\n")
labels_csv("of duplicate columns", b"external_id,label,label\na,1,1\n")
labels_csv("of many columns", b"external_id,label," + b",".join(b"%d" % n for n in range(50_000)) + b"\na,1\n")
labels_csv("of a long number", b"external_id,label\na," + b"9" * 5000 + b"\n")
labels_csv("of negative numbers", b"external_id,label\na,-1\n")
labels_csv("of many rows", b"external_id,label\n" + b"".join(b"%d,1\n" % row for row in range(200_000)))
labels_csv("without rows", b"external_id,label\n")
labels_csv("of CRLF and a wrong class", b"external_id,label\r\na,2\r\n")
labels_csv("of a BOM and a wrong class", b"\xef\xbb\xbfexternal_id,label\na,2\n")
labels_parquet("of long texts", external_id=repeated(LONG, 2000), label=[1] * 2000)
labels_parquet("of long class names", external_id=[str(row) for row in range(2000)], label=repeated(LONG, 2000))
labels_parquet("of long unread texts", external_id=["a", None], text=repeated(LONG, 2))
labels_parquet("of lists", label=[[0], [1]])
labels_parquet("with NUL", external_id=["a", "b\0"])
labels_parquet("of half classes", label=[0.5, 1.0])
labels_parquet("of invalid UTF-8", external_id=invalid_utf8(2))


def labels_stream(name: str, make: Callable[[], dict[str, Any]], **options: Any) -> None:
    HOSTILE[f"label file {name}.arrows"] = lambda path: write_stream(
        path, pa.table({"external_id": ["a", "b"], "label": [0, 1]} | make()), **options
    )


def labels_damaged(name: str, change: Callable[[bytes], bytes]) -> None:
    def write(path: Path) -> None:
        write_stream(path, pa.table({"external_id": ["a", "b"], "label": [0, 1]}))
        path.write_bytes(change(path.read_bytes()))

    HOSTILE[f"label file {name}.arrows"] = write


def many_labels() -> dict[str, Any]:
    rows = 200_000
    return {"external_id": [str(row) for row in range(rows)], "label": [1] * rows}


labels_stream("that is a bomb", lambda: {"label": repeated(ZEROS, 2)}, compression="zstd")
labels_stream("that is a bomb of LZ4", lambda: {"text": repeated(ZEROS, 2)}, compression="lz4")
labels_stream("of long texts", lambda: {"external_id": repeated(LONG, 2000), "label": [1] * 2000})
labels_stream("of indices beyond their dictionary", lambda: {"label": indices_beyond().slice(0, 2)})
labels_stream("of lists", lambda: {"label": [[0], [1]]})
labels_stream("with NUL", lambda: {"external_id": ["a", "b\0"]})
labels_stream("of half classes", lambda: {"label": [0.5, 1.0]})
labels_stream("of invalid UTF-8", lambda: {"external_id": invalid_utf8(2)})
labels_stream("of wrong classes", lambda: {"label": [0, 2]})
labels_stream("of the same id twice", lambda: {"external_id": ["a", "a"]})
labels_stream("of many rows", many_labels)
labels_stream("of many columns", lambda: {f"c{number}": [1, 1] for number in range(1200)})
labels_stream("without rows", lambda: {"external_id": pa.array([], pa.string()), "label": pa.array([], pa.int64())})
labels_stream("of an unknown selection", lambda: {"selection": ["random", "chosen"]})
labels_damaged("cut", lambda content: content[:-100])
labels_damaged("without its end", lambda content: content[:-8])
labels_damaged("of zeros", lambda content: bytes(len(content)))
labels_damaged("that is empty", lambda content: content[:0])


# Legal ones.

LEGAL_ROWS = 12_000


def legal_npz(path: Path) -> None:
    rows = LEGAL_ROWS
    write_npz(
        path,
        r=stored("<f4", (rows, DIMENSION), rows * DIMENSION * 4),
        f=stored("<f4", (rows, 2), rows * 8),
        text=stored("<U1000", (rows,), rows * 4000),
    )


def legal_stream(path: Path, **options: Any) -> None:
    generator = np.random.default_rng(0)
    texts = [generator.bytes(1500).hex() for _ in range(LEGAL_ROWS)]
    table = pa.table(columns(LEGAL_ROWS, text=texts))
    with pa.ipc.new_stream(str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=1000)


def legal_parquet(path: Path, **options: Any) -> None:
    generator = np.random.default_rng(0)
    texts = [generator.bytes(1500).hex() for _ in range(LEGAL_ROWS)]
    pq.write_table(pa.table(columns(LEGAL_ROWS, text=texts, kind=["a modest text"] * LEGAL_ROWS)), path, **options)


LEGAL["legal.npz"] = legal_npz
LEGAL["legal.parquet"] = legal_parquet
LEGAL["legal compressed.arrows"] = lambda path: legal_stream(path, compression="zstd")
LEGAL["legal without dictionaries.parquet"] = lambda path: legal_parquet(path, use_dictionary=False)
LEGAL["legal with deltas.parquet"] = lambda path: legal_parquet(
    path,
    use_dictionary=False,
    data_page_size=1 << 14,
    column_encoding=dict.fromkeys(("text", "kind"), "DELTA_BYTE_ARRAY"),
)
