"""Files that are not what they should be: refused whole by every verb that reads exemplars."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli import samples
from tests.cli.program import Program, check_refusal, nothing_stored
from tests.cli.samples import CLASS_COUNT, DIMENSION, NAME
from tests.files.samples import SUFFIXES, Columns
from venn_admit.errors import InvalidInputError

ROWS = 20
# More than are read at a time.
MANY_ROWS = 9000

REFUSED = InvalidInputError.exit_code

pytestmark = pytest.mark.parametrize("suffix", SUFFIXES)


def new_exemplars(rows: int = ROWS) -> Columns:
    return samples.exemplars("new", rows, seed=4)


def check_refused(program: Program, path: Path, saying: str) -> None:
    """See that no verb takes the file, and that the message names it."""
    out = path.with_name("scores.parquet")
    with nothing_stored(program):
        for split in ("train", "held-out"):
            check_refusal(program("ingest", NAME, path, "--split", split), REFUSED, saying)
        check_refusal(program("score", NAME, path, "--out", out), REFUSED, saying)
    assert not out.exists()


def with_value(column: str, place: Any, value: object) -> Callable[[Columns], None]:
    def spoil(columns: Columns) -> None:
        columns[column][place] = value

    return spoil


def with_column(column: str, change: Callable[[Any], object]) -> Callable[[Columns], None]:
    def spoil(columns: Columns) -> None:
        columns[column] = change(columns[column])

    return spoil


@pytest.mark.parametrize(
    ("spoil", "saying"),
    [
        pytest.param(
            with_value("vector", (7, 2), np.nan),
            r"row 7, vector( r)?\[2\]: expected a finite number, got nan",
            id="nan",
        ),
        pytest.param(
            with_value("vector", (7, 2), np.inf),
            r"row 7, vector( r)?\[2\]: expected a finite number, got inf",
            id="inf",
        ),
        pytest.param(
            with_value("logits", (19, 0), -np.inf),
            r"row 19, logits( f)?\[0\]: expected a finite number, got -inf",
            id="inf logit",
        ),
        pytest.param(
            with_column("vector", lambda vectors: vectors[:, :-1]),
            rf"(array 'r'|row 0, vector): expected {DIMENSION} values( per row)?, got {DIMENSION - 1}",
            id="wrong D",
        ),
        pytest.param(
            with_column("logits", lambda logits: logits[:, [0, 0, 1, 2]]),
            rf"(array 'f'|row 0, logits): expected {CLASS_COUNT} values( per row)?, got {CLASS_COUNT + 1}",
            id="wrong C",
        ),
        pytest.param(
            with_value("label", 5, CLASS_COUNT),
            r"row 5, label( y)?: expected -1 \(unknown\) or 0\.\.2, got 3",
            id="label too large",
        ),
        pytest.param(
            with_value("label", 5, -2),
            r"row 5, label( y)?: expected -1 \(unknown\) or 0\.\.2, got -2",
            id="label below -1",
        ),
        pytest.param(
            with_column("label", lambda labels: labels.astype(np.float64) + 0.5),
            r"row 0, label( y)?: expected -1 \(unknown\) or 0\.\.2, got [012]\.5",
            id="half labels",
        ),
        pytest.param(
            with_value("external_id", 9, "new-3"),
            "rows 3 and 9 both have id 'new-3', with different content; an id names one exemplar",
            id="id twice",
        ),
    ],
)
def test_a_wrong_value(
    calibrated: Program, tmp_path: Path, suffix: str, spoil: Callable[[Columns], None], saying: str
) -> None:
    columns = new_exemplars()
    spoil(columns)
    check_refused(calibrated, samples.save(tmp_path, f"spoilt{suffix}", columns), f"spoilt{suffix}: {saying}")


def test_a_wrong_value_after_rows_that_were_right(calibrated: Program, tmp_path: Path, suffix: str) -> None:
    columns = new_exemplars(MANY_ROWS)
    columns["vector"][-1, 0] = np.nan
    path = samples.save(tmp_path, f"late{suffix}", columns)
    check_refused(calibrated, path, rf"late{suffix}: row {MANY_ROWS - 1}, vector( r)?\[0\]: expected a finite number")


def test_no_rows(calibrated: Program, tmp_path: Path, suffix: str) -> None:
    path = samples.save(tmp_path, f"none{suffix}", samples.take(new_exemplars(), slice(0)))
    check_refused(calibrated, path, rf"none{suffix}: .*expected at least one row, got 0")


def test_an_empty_file(calibrated: Program, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"empty{suffix}"
    path.touch()
    check_refused(calibrated, path, f"empty{suffix}: expected a readable {suffix[1:]} file, got")


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.999])
def test_a_truncated_file(calibrated: Program, tmp_path: Path, suffix: str, kept: float) -> None:
    path = samples.save(tmp_path, f"cut{suffix}", new_exemplars())
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    check_refused(
        calibrated, path, f"cut{suffix}: expected a readable {suffix[1:]} file, got .*it may be truncated or damaged"
    )


def test_no_file(calibrated: Program, tmp_path: Path, suffix: str) -> None:
    check_refused(calibrated, tmp_path / f"no{suffix}", f"no{suffix}: expected a file, got no such file")


@pytest.mark.parametrize("column", ["vector", "logits"])
def test_a_missing_column(calibrated: Program, tmp_path: Path, suffix: str, column: str) -> None:
    columns = new_exemplars()
    del columns[column]
    path = samples.save(tmp_path, f"less{suffix}", columns)
    check_refused(calibrated, path, rf"less{suffix}: (arrays|columns): expected one named '({column}|{column[0]}|r|f)'")


@pytest.mark.parametrize(
    ("spoil", "saying"),
    [
        pytest.param(
            with_value("vector", (0, 0), 3.0), "already stored with another vector, logits or document", id="vector"
        ),
        pytest.param(
            with_value("logits", (0, 0), 30.0), "already stored with another vector, logits or document", id="logits"
        ),
        pytest.param(
            with_column("label", lambda labels: (labels + 1) % CLASS_COUNT),
            "already stored with label 2, got 0",
            id="label",
        ),
    ],
)
def test_a_stored_id_with_other_content(
    calibrated: Program, tmp_path: Path, suffix: str, spoil: Callable[[Columns], None], saying: str
) -> None:
    columns = samples.take(samples.train(), [int(np.argmax(samples.train()["label"] == CLASS_COUNT - 1))])
    spoil(columns)
    path = samples.save(tmp_path, f"other{suffix}", columns)
    check_refused(calibrated, path, rf"other{suffix}: row 0, id 'train-\d+': {saying}")


def test_a_stored_id_for_another_split(calibrated: Program, tmp_path: Path, suffix: str) -> None:
    path = samples.save(tmp_path, f"known{suffix}", samples.take(samples.train(), slice(3)))
    with nothing_stored(calibrated):
        check_refusal(
            calibrated("ingest", NAME, path, "--split", "held-out"),
            REFUSED,
            f"known{suffix}: row 0, id 'train-0': already stored in split train, expected a new exemplar for split",
        )


def test_no_label_where_a_split_needs_one(calibrated: Program, tmp_path: Path, suffix: str) -> None:
    columns = new_exemplars()
    columns["label"][4] = -1
    path = samples.save(tmp_path, f"bare{suffix}", columns)
    with nothing_stored(calibrated):
        check_refusal(
            calibrated("ingest", NAME, path, "--split", "train"),
            REFUSED,
            f"bare{suffix}: row 4, label: expected a label, which split train needs, got none",
        )


class _Trap:
    """What leaves a file behind when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._file,)


@pytest.mark.parametrize("name", ["r", "f", "y", "id", "doc", "attribute"])
def test_an_object_array_is_never_unpickled(calibrated: Program, tmp_path: Path, suffix: str, name: str) -> None:
    """Whatever ending the file has."""
    columns = new_exemplars()
    trap = np.empty(ROWS, dtype=object)
    trap[:] = _Trap(tmp_path / "sprung")
    arrays = {"r": columns["vector"], "f": columns["logits"], "y": columns["label"], name: trap}
    np.savez(tmp_path / "objects.npz", **arrays)
    path = (tmp_path / "objects.npz").rename(tmp_path / f"objects{suffix}")
    saying = {
        ".npz": f"objects.npz: array '{name}': expected .*, got Python objects, which are never unpickled",
        ".parquet": "objects.parquet: expected a readable parquet file, got",
    }
    check_refused(calibrated, path, saying[suffix])
    assert not (tmp_path / "sprung").exists()
    with np.load(tmp_path / f"objects{suffix}", allow_pickle=True) as loaded:  # the trap works
        loaded[name]
    assert (tmp_path / "sprung").exists()
