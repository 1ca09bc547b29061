"""The names of options that scripts were promised do what those of today do, and no help shows them."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.program import Program
from tests.cli.samples import NAME

MODES = (("--no-weights", "--unweighted"), ("--q-equals-k", "--require-full-match"))


@pytest.mark.parametrize(("promised", "today"), MODES)
def test_modes_of_deciding(own_calibrated: Program, files: Path, tmp_path: Path, promised: str, today: str) -> None:
    for verb in ("score", "decide"):
        words = own_calibrated(verb, "--help").stdout.split()
        assert today in words
        assert promised not in words
    file, out = files / "scored.npz", tmp_path / "scores.parquet"
    first, again = (own_calibrated("decide", NAME, file, "--json", option).result for option in (promised, today))
    assert first == again
    usual, *scored = (
        own_calibrated("score", NAME, file, "--out", out, *given).code or pq.read_table(out)
        for given in ((), (promised,), (today,))
    )
    assert scored[0] == scored[1] != usual
