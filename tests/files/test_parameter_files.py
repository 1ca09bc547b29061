"""Files of KNN parameters that no parser gets through."""

from pathlib import Path

import pytest

from venn_admit.service.errors import InvalidInputError
from venn_admit.service.files.parameters import read_parameters


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"eta": ' + "9" * 5000 + "}", '{"beta": [1' + "0" * 400 + "]}", "\ufeff{}", "nothing"]
)
def test_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "parameters.json"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=r"parameters\.json: "):
        read_parameters(path)
