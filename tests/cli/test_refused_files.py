"""Files that are not what they should be: refused whole by every verb that reads exemplars."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli import samples
from tests.cli.program import Program, check_refusal, nothing_stored
from tests.cli.samples import NAME
from tests.files.samples import SUFFIXES, Columns
from venn_admit.errors import InvalidInputError

ROWS = 20
# More than are read at a time.
MANY_ROWS = 9000

REFUSED = InvalidInputError.exit_code

pytestmark = pytest.mark.parametrize("suffix", SUFFIXES)


def new_exemplars(rows: int) -> Columns:
    return samples.exemplars("new", rows, seed=4)


def check_refused(program: Program, path: Path, saying: str) -> None:
    """See that no verb takes the file, and that the message names it."""
    out = path.with_name("scores.parquet")
    with nothing_stored(program):
        for split in ("train", "held-out"):
            check_refusal(program("ingest", NAME, path, "--split", split), REFUSED, saying)
        check_refusal(program("score", NAME, path, "--out", out), REFUSED, saying)
    assert not out.exists()


def test_a_wrong_value_after_rows_that_were_right(calibrated: Program, tmp_path: Path, suffix: str) -> None:
    columns = new_exemplars(MANY_ROWS)
    columns["vector"][-1, 0] = np.nan
    path = samples.save(tmp_path, f"late{suffix}", columns)
    check_refused(calibrated, path, rf"late{suffix}: row {MANY_ROWS - 1}, vector( r)?\[0\]: expected a finite number")


def test_no_file(calibrated: Program, tmp_path: Path, suffix: str) -> None:
    check_refused(calibrated, tmp_path / f"no{suffix}", f"no{suffix}: expected a file, got no such file")


def test_a_stored_id_with_other_content(calibrated: Program, tmp_path: Path, suffix: str) -> None:
    columns = samples.take(samples.train(), slice(1))
    columns["vector"][0, 0] = 3.0
    path = samples.save(tmp_path, f"other{suffix}", columns)
    saying = r"row 0, id 'train-\d+': already stored with another vector, logits or document"
    check_refused(calibrated, path, rf"other{suffix}: {saying}")


def test_an_id_twice(calibrated: Program, tmp_path: Path, suffix: str) -> None:
    columns = new_exemplars(ROWS)
    columns["external_id"][9] = "new-3"
    path = samples.save(tmp_path, f"twice{suffix}", columns)
    saying = "rows 3 and 9 both have id 'new-3', with different content; an id names one exemplar"
    check_refused(calibrated, path, f"twice{suffix}: {saying}")


def test_an_object_array_is_never_unpickled(calibrated: Program, tmp_path: Path, suffix: str) -> None:
    columns = new_exemplars(ROWS)
    trap = np.full(ROWS, {}, dtype=object)
    np.savez(tmp_path / "objects.npz", r=columns["vector"], f=columns["logits"], y=trap)
    path = (tmp_path / "objects.npz").rename(tmp_path / f"objects{suffix}")
    saying = {
        ".npz": "objects.npz: array 'y': expected .*, got Python objects, which are never unpickled",
        ".parquet": "objects.parquet: expected a readable parquet file, got",
    }
    check_refused(calibrated, path, saying[suffix])
