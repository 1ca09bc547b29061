"""Where outputs may go, and that they appear there whole or not at all."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from tests.files.limits import limited_files
from tests.files.samples import sample, write
from tests.patience import PATIENCE_SECONDS
from venn_admit.errors import InvalidInputError
from venn_admit.files.output.atomic import (
    check_output,
    filling,
    make_folder,
    remove_partials,
    replacing,
)
from venn_admit.files.output.exports import SCORES_SCHEMA, write_json
from venn_admit.files.output.tables import TableWriter, check_table_output


def _symlink(given: Path, place: Path) -> Path:
    place.symlink_to(given)
    return place


def _hard_link(given: Path, place: Path) -> Path:
    place.hardlink_to(given)
    return place


def _itself(given: Path, _: Path) -> Path:
    return given


def _relative(given: Path, _: Path) -> Path:
    return Path(os.path.relpath(given))


def _by_way_of_a_folder(given: Path, _: Path) -> Path:
    (given.parent / "below").mkdir()
    return given.parent / "below" / ".." / given.name


@pytest.mark.parametrize("way", [_itself, _symlink, _hard_link, _relative, _by_way_of_a_folder])
@pytest.mark.parametrize("swapped", [False, True])
def test_an_input_is_no_output(tmp_path: Path, way: Callable[[Path, Path], Path], swapped: bool) -> None:
    given = tmp_path / "given.csv"
    given.write_text("before")
    other = way(given, tmp_path / "other.csv")
    out, read = (given, other) if swapped else (other, given)
    with pytest.raises(InvalidInputError, match="expected an output that is not an input"):
        check_output(out, [".csv"], tmp_path / "missing.csv", read)
    check_output(tmp_path / "new.csv", [".csv"], read)
    assert given.read_text() == "before"


@pytest.mark.processes
def test_partial_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    code = f"""
import os, pathlib, signal
from venn_admit.files.output.atomic import replacing
with replacing(pathlib.Path({str(tmp_path)!r}) / "out.csv") as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False, timeout=PATIENCE_SECONDS)
    (left,) = tmp_path.iterdir()
    (tmp_path / "notes.partial").write_text("mine")
    with replacing(tmp_path / "out.csv") as file:
        file.write(b"whole")
        remove_partials(tmp_path)
        assert not left.exists()
    assert (tmp_path / "out.csv").read_bytes() == b"whole"
    assert {path.name for path in tmp_path.iterdir()} == {"notes.partial", "out.csv"}


def test_a_report_replaces_no_input(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    make_folder(folder)
    given = write(folder / "given.npz", sample())
    make_folder(folder, given)
    (folder / "index.html").hardlink_to(given)
    with pytest.raises(InvalidInputError, match="expected an output that is not an input"):
        make_folder(folder, given)


def test_a_file_of_exemplars_is_no_place_for_results(tmp_path: Path) -> None:
    given = write(tmp_path / "given.parquet", sample())
    with pytest.raises(InvalidInputError, match="got a file of exemplars, which would be lost"):
        check_table_output(given)
    (tmp_path / "text.parquet").write_text("no table")
    check_table_output(tmp_path / "text.parquet")
    with TableWriter(tmp_path / "scores.parquet", SCORES_SCHEMA):
        pass
    check_table_output(tmp_path / "scores.parquet")


@pytest.mark.parametrize("name", ["out.json", "out.npz", "out", "out.csv.gz", ".csv"])
def test_a_format_that_is_not_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"expected a name ending in .parquet or .csv, got"):
        check_table_output(tmp_path / name)


@pytest.mark.parametrize("letter", ["x", "字"])
def test_names_of_any_length(tmp_path: Path, letter: str) -> None:
    """As long as the file system takes, with the partial file beside it; what is longer is refused."""
    longest = 250 // len(letter.encode())
    for place in (tmp_path / f"{longest * letter}.csv", tmp_path / f"{longest * letter}.json"):
        check_output(place, [place.suffix])
        write_json(place, {})
        assert place.read_text() == "{}\n"
    place = tmp_path / f"{300 * letter}.csv"
    with pytest.raises(InvalidInputError, match="File name too long"):
        check_output(place, [".csv"])
    with pytest.raises(InvalidInputError, match="File name too long"), TableWriter(place, SCORES_SCHEMA):
        pass


def _fill(folder: Path) -> None:
    with filling(folder) as partial:
        (partial / "first").write_text("after")
        (partial / "second").write_text(2000 * "x")


def _write_much(path: Path) -> None:
    with TableWriter(path, pa.schema({"name": pa.string()})) as writer:
        for block in range(200):
            writer.write({"name": [f"{block}-{row}-{row * row}" for row in range(2000)]})


class TestFilling:
    def test_files_appear_together(self, tmp_path: Path) -> None:
        (tmp_path / "first").write_text("before")
        with filling(tmp_path) as folder:
            for name in ("first", "second"):
                (folder / name).write_text("after")
            assert (tmp_path / "first").read_text() == "before"
            assert not (tmp_path / "second").exists()
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"first": "after", "second": "after"}

    def test_an_error_leaves_what_was_there(self, tmp_path: Path) -> None:
        (tmp_path / "first").write_text("before")
        with pytest.raises(InvalidInputError, match="File too large"), limited_files(1000):
            _fill(tmp_path)
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"first": "before"}


class TestCsv:
    SCHEMA = pa.schema({"name": pa.string(), "number": pa.float64(), "count": pa.int32(), "list": pa.list_(pa.int32())})

    def test_what_is_written_can_be_read(self, tmp_path: Path) -> None:
        names = ["plain", "", None, 'a "quoted", one', "two\nlines", "=1+1"]
        numbers = [0.1, None, np.nextafter(0.3, 1), 5e-324, 1e300, float("-inf")]
        with TableWriter(tmp_path / "table.csv", self.SCHEMA) as writer:
            for rows in (slice(2), slice(2, 6)):
                names_here = names[rows]
                columns = {"name": names_here, "number": numbers[rows], "count": [None] * len(names_here)}
                writer.write({**columns, "list": [[1, 2], None, [], [7], [8], [9]][rows]})
        table = pa_csv.read_csv(
            tmp_path / "table.csv",
            parse_options=pa_csv.ParseOptions(newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types={"list": pa.string()}, strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )
        assert table["name"].to_pylist() == names
        assert table["number"].to_pylist() == numbers
        assert table["count"].to_pylist() == [None] * 6
        assert table["list"].to_pylist() == ["[1, 2]", None, "[]", "[7]", "[8]", "[9]"]

    def test_infinities_in_lists_are_text(self, tmp_path: Path) -> None:
        schema = pa.schema({"threshold": pa.list_(pa.float64())})
        with TableWriter(tmp_path / "table.csv", schema) as writer:
            writer.write({"threshold": np.array([[0.5, -np.inf]])})
        assert (tmp_path / "table.csv").read_text() == '"threshold"\n"[0.5, ""-inf""]"\n'

    def test_a_full_disk_leaves_nothing(self, tmp_path: Path) -> None:
        """If a table outgrows what the writer holds in memory, the error comes while rows are written."""
        for name in ("table.csv", "table.parquet"):
            with pytest.raises(InvalidInputError, match="File too large"), limited_files(100_000):
                _write_much(tmp_path / name)
            assert list(tmp_path.iterdir()) == []
