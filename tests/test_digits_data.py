"""The bundled digits are what examples/README.md says, and examples/make_digits.py makes them."""

from collections.abc import Iterator
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
import torch

from tests.running import Arrays

EXAMPLES = Path(__file__).parents[1] / "examples"
ROWS = {"train": 397, "valid": 1000, "test": 400, "shifted": 400}
IMAGES = 1797
FILES = pytest.mark.parametrize("name", ROWS)


def read(folder: Path) -> dict[str, Arrays]:
    assert {path.name for path in folder.iterdir()} == {f"{name}.npz" for name in ROWS}
    files = {}
    for name in ROWS:
        with np.load(folder / f"{name}.npz") as arrays:
            files[name] = dict(arrays)
    return files


def accuracy(arrays: Arrays) -> float:
    return float(np.mean(arrays["f"].argmax(axis=1) == arrays["y"]))


@pytest.fixture(scope="module")
def bundled() -> dict[str, Arrays]:
    return read(EXAMPLES / "digits")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Arrays]]]:
    """What two runs of the script make."""
    threads = torch.get_num_threads()
    make = run_path(str(EXAMPLES / "make_digits.py"))["main"]
    folders = [tmp_path_factory.mktemp("digits") / "out" for _ in range(2)]
    for folder in folders:
        make(folder)
    yield [read(folder) for folder in folders]
    torch.set_num_threads(threads)


@FILES
def test_rows_and_types(bundled: dict[str, Arrays], name: str) -> None:
    arrays, rows = bundled[name], ROWS[name]
    found = {key: (values.shape, values.dtype.str) for key, values in arrays.items()}
    ids = "<U17" if name == "shifted" else "<U10"
    assert found == {
        "r": ((rows, 64), "<f2"),
        "f": ((rows, 10), "<f4"),
        "y": ((rows,), "|i1"),
        "id": ((rows,), ids),
        "angle": ((rows,), "|i1"),
    }
    assert np.isfinite(arrays["r"]).all()
    assert np.isfinite(arrays["f"]).all()
    assert (arrays["r"] >= 0).all()
    assert np.unique(arrays["y"]).tolist() == list(range(10))


def test_every_image_is_in_one_split(bundled: dict[str, Arrays]) -> None:
    ids = np.concatenate([bundled[name]["id"] for name in ("train", "valid", "test")])
    assert sorted(ids.tolist()) == [f"digit-{row:04d}" for row in range(IMAGES)]


def test_shifted_is_test_turned(bundled: dict[str, Arrays]) -> None:
    test, shifted = bundled["test"], bundled["shifted"]
    assert shifted["id"].tolist() == [f"{known}-turned" for known in test["id"].tolist()]
    np.testing.assert_array_equal(shifted["y"], test["y"])
    assert set(shifted["angle"].tolist()) == set(range(-25, 26))
    same = (shifted["f"] == test["f"]).all(axis=1)
    np.testing.assert_array_equal(same, shifted["angle"] == 0)
    assert not any(bundled[name]["angle"].any() for name in ("train", "valid", "test"))


def test_the_network_errs(bundled: dict[str, Arrays]) -> None:
    found = {name: round(accuracy(arrays), 3) for name, arrays in bundled.items()}
    assert found == {"train": 1.0, "valid": 0.953, "test": 0.943, "shifted": 0.82}


def test_they_are_small() -> None:
    assert sum(path.stat().st_size for path in (EXAMPLES / "digits").iterdir()) < 500_000


@FILES
def test_made_again(made: list[dict[str, Arrays]], bundled: dict[str, Arrays], name: str) -> None:
    """The same rows anywhere; training rounds otherwise on another processor, which may turn a few predictions."""
    remade, known = made[0][name], bundled[name]
    for key in ("id", "y", "angle"):
        np.testing.assert_array_equal(remade[key], known[key])
    assert {key: values.dtype for key, values in remade.items()} == {key: values.dtype for key, values in known.items()}
    assert abs(accuracy(remade) - accuracy(known)) <= 0.03


@FILES
def test_two_runs_are_equal(made: list[dict[str, Arrays]], name: str) -> None:
    first, second = (files[name] for files in made)
    for key, values in first.items():
        np.testing.assert_array_equal(second[key], values)
