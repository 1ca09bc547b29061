"""The folder of a memory layer: it comes back as it was, and a changed file is refused."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.layer.made_up import ENCODER, draw_model
from venn_admit.errors import InvalidInputError
from venn_admit.layer.model import (
    LOG_NAME,
    MODEL_NAME,
    WEIGHTS_NAME,
    LayerEpoch,
    load_model,
    load_training,
    save_model,
)
from venn_admit.layer.settings import LayerForm, LayerSettings

SETTINGS = LayerSettings(
    LayerForm.DOCUMENT, filters=5, with_representative=True, background=0, class_weights=(1.0, 2.5), seed=-7
)
LOG = (LayerEpoch(1, 0.75, 0.5, 0.9, 0.8), LayerEpoch(2, 0.5, 0.25, 1.0, 1.0))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(tmp_path, draw_model(SETTINGS), training="digest", best_epoch=2, log=LOG)
    return tmp_path


def test_model_comes_back_as_it_was(folder: Path) -> None:
    written, (read, training, best_epoch, log) = draw_model(SETTINGS), load_training(folder)
    assert (training, best_epoch, log) == ("digest", 2, LOG)
    assert (read.settings, read.class_names, read.encoder) == (SETTINGS, written.class_names, ENCODER)
    for name in ("filter_weight", "filter_bias", "head_weight", "head_bias"):
        assert getattr(read, name).tobytes() == getattr(written, name).tobytes()
    assert read.extractor_version == written.extractor_version


def test_folder_of_a_layer_without_later_settings_has_the_bytes_of_before(folder: Path) -> None:
    """The digests are those of the version before two linear layers and phases came."""
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in folder.iterdir()}
    assert digests == {
        LOG_NAME: "40de9902e8380b8f",
        MODEL_NAME: "95bdc80cef3ea77d",
        WEIGHTS_NAME: "d06bf0cd97f72224",
    }


def test_layer_of_two_linear_layers_comes_back_with_its_phases(tmp_path: Path) -> None:
    written = draw_model(replace(SETTINGS, form=LayerForm.TWO_LAYERS, min_max_epochs=3))
    log = (replace(LOG[0], phase="cross-entropy"), replace(LOG[1], phase="min-max"))
    save_model(tmp_path, written, training="digest", best_epoch=2, log=log)
    read, _, _, found = load_training(tmp_path)
    assert (read.settings, found) == (written.settings, log)
    assert read.parameters().keys() == {
        "filter_weight", "filter_bias", "head_weight", "head_bias", "global_weight", "global_bias",
    }  # fmt: skip
    assert all(values.tobytes() == written.parameters()[name].tobytes() for name, values in read.parameters().items())
    assert read.extractor_version == written.extractor_version
    other = replace(written, global_bias=written.global_bias + np.float32(1))
    assert other.extractor_version != written.extractor_version


def test_version_changes_with_everything_that_exemplars_rest_on() -> None:
    model = draw_model(SETTINGS)
    weight = model.head_weight.copy()
    weight[1, 2] = np.nextafter(weight[1, 2], np.float32(9))
    others = [
        draw_model(replace(SETTINGS, with_representative=False)),
        draw_model(SETTINGS, encoder=ENCODER.model_copy(update={"digest": "another"})),
        replace(model, class_names=("class 1", "class 0")),
        replace(model, head_weight=weight),
    ]
    versions = {found.extractor_version for found in [model, *others]}
    assert len(versions) == 5
    assert draw_model(SETTINGS).extractor_version == model.extractor_version
    assert all(len(version) == 16 for version in versions)


@pytest.mark.parametrize("name", [WEIGHTS_NAME, MODEL_NAME, LOG_NAME])
def test_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(InvalidInputError, match=rf"{name}: expected a file, got no such file"):
        load_training(folder)


@pytest.mark.parametrize("name", [WEIGHTS_NAME, LOG_NAME])
@pytest.mark.parametrize("place", [0, 100, -1])
def test_changed_byte_is_refused(folder: Path, name: str, place: int) -> None:
    content = bytearray((folder / name).read_bytes())
    content[place] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"expected the content that model.json names"):
        load_training(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_names": ["class 1", "class 0"]}, "extractor_version"),
        ({"width": 15}, r"tensor 'filter_weight': expected finite float32 of shape \(5, 15\), got float32 of shape"),
        ({"extractor_version": "0" * 16}, "extractor_version: expected [0-9a-f]{16}, got 0000"),
        ({"settings": {}}, "settings: expected background, batch_tokens"),
        ({"version": 2}, "version: expected the description of a memory layer"),
        ({"extra": 1}, "extra: expected the description"),
        ({"weights_sha256": "0" * 64}, "expected the content that model.json names"),
    ],
)
def test_changed_description_is_refused(folder: Path, changes: dict[str, Any], message: str) -> None:
    described = json.loads((folder / MODEL_NAME).read_text())
    (folder / MODEL_NAME).write_text(json.dumps({**described, **changes}))
    with pytest.raises(InvalidInputError, match=message):
        load_model(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("filters", 6),
        ("filters", 0),
        ("filters", "5"),
        ("background", 3),
        ("form", "other"),
        ("class_weights", [1.0, -1.0]),
        ("min_max_weight", "much"),
    ],
)
def test_changed_setting_is_refused(folder: Path, name: str, value: object) -> None:
    described = json.loads((folder / MODEL_NAME).read_text())
    described["settings"][name] = value
    (folder / MODEL_NAME).write_text(json.dumps(described))
    with pytest.raises(InvalidInputError):
        load_model(folder)


def test_description_that_is_no_json_is_refused(folder: Path) -> None:
    (folder / MODEL_NAME).write_text('{"format": ')
    with pytest.raises(
        InvalidInputError, match="content: expected the description of a memory layer, got: Invalid JSON"
    ):
        load_model(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filters": 0}, "filters: expected at least 1, got 0"),
        ({"learning_rate": float("nan")}, "learning_rate: expected a number above 0, got nan"),
        ({"min_max_weight": -1.0}, "min_max_weight: expected a number of at least 0, got -1.0"),
        ({"dev_share": 1.0}, "dev_share: expected a share above 0 and below 1, got 1.0"),
        ({"seed": 1 << 63}, "seed: expected a number in"),
        ({"class_weights": (1.0, 0.0)}, "class_weights: expected numbers above 0"),
        ({"class_weights": "even"}, "class_weights: expected"),
        ({"min_max_epochs": -1}, "min_max_epochs: expected at least 0, got -1"),
        ({"min_max_epochs": 5}, "min_max_epochs: expected 0 without two linear layers, as form two-layers has them"),
        ({"form": LayerForm.TWO_LAYERS, "min_max_weight": 0.0}, "min_max_weight: expected a number above 0, which"),
        ({"form": LayerForm.LINEAR, "with_representative": False}, "background: expected none, because exemplars"),
        ({"form": LayerForm.LINEAR}, "with_representative: expected none, because exemplars are tokens, got True"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        replace(SETTINGS, **changes)
