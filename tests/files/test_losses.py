"""Files of losses, with names of classes or without."""

from pathlib import Path

import pytest

from venn_admit.errors import InvalidInputError
from venn_admit.files.losses import read_loss

CLASSES = ("no", "yes", "maybe")
ROWS = [["0", "1", "2"], ["3", "0", "4.5"], ["5", "6", "0"]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("loss.csv", "0,1,2\n3,0,4.5\n5,6,0\n"),
        ("loss.csv", "no,yes,maybe\n0,1,2\n3,0,4.5\n5,6,0\n"),
        ("loss.csv", "maybe,no,yes\n2,0,1\n4.5,3,0\n0,5,6\n"),
        ("loss.csv", ",maybe,no,yes\nyes,4.5,3,0\nno,2,0,1\nmaybe,0,5,6\n"),
        ("loss.csv", "\ufefftrue, maybe , no, yes\nyes,4.5,3,0\nno,2,0,1\n\nmaybe,0,5,6\n"),
        ("loss.json", "[[0, 1, 2], [3, 0, 4.5], [5, 6, 0]]"),
        (
            "loss.json",
            '{"yes": {"maybe": 4.5, "no": 3}, "no": {"yes": 1, "maybe": 2}, "maybe": {"no": 5, "yes": 6, "maybe": 0}}',
        ),
    ],
)
def test_rows_come_in_the_order_of_the_classes(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_loss(tmp_path / name, CLASSES) == ROWS


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("loss.csv", "no,yes,other\n0,1,2\n3,0,4\n5,6,0\n", "in the first line, got the unknown 'other'"),
        ("loss.csv", ",no,yes,maybe\nno,0,1,2\nno,3,0,4\nmaybe,5,6,0\n", "in the first column, got none for 'yes'"),
        ("loss.csv", ",no,yes,maybe\nno,0,1,2\nyes,3,0\nmaybe,5,6,0\n", "rows of 3 values, .* got 4, 3, 4"),
        ("loss.json", '{"no": {}, "yes": {}}', "got none for 'maybe'"),
        ("loss.json", '{"no": {}, "yes": {}, "maybe": {}}', "in the row of 'no', got none for 'yes'"),
        ("loss.json", '{"no": 1, "yes": 2, "maybe": 3}', "values by predicted class for the true class 'no'"),
        ("loss.json", "3", "neither lists in a list nor an object"),
        ("loss.json", "[[", "expected rows such as 0,1;0.2,0, or a CSV or JSON file .*, which cannot be read"),
    ],
)
def test_what_is_no_loss_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=said):
        read_loss(tmp_path / name, CLASSES)
