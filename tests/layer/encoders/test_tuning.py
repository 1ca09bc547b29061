"""Encoders are trained in turns with a memory layer; what comes out is an encoder like any other."""

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.layer.encoders.networks import save_network
from venn_admit.errors import InvalidInputError
from venn_admit.flows.extraction import tune as flow
from venn_admit.flows.extraction.options import SourceOptions
from venn_admit.flows.extraction.states import Resources, open_states
from venn_admit.flows.extraction.train import train_layer
from venn_admit.flows.extraction.tune import LOG_NAME, Tuned, TuningSettings, tune_encoder
from venn_admit.layer.encoders import tuning
from venn_admit.layer.encoders.local import load_encoder
from venn_admit.layer.settings import LayerForm, LayerSettings

BUDGET = 256 << 20
DOCUMENTS = LayerSettings(LayerForm.DOCUMENT, filters=8, max_epochs=4, batch_tokens=512)
FAST = TuningSettings(rounds=2, learning_rate=0.003)


class Quiet:
    """A display that shows nothing."""

    def show(self, what: str, total: int | None = None) -> None:
        pass

    def advance(self, rows: int) -> None:
        pass


def run(
    path: Path, out: Path, settings: LayerSettings = DOCUMENTS, how: TuningSettings = FAST, **changes: str
) -> Tuned:
    options = replace(SourceOptions(encoder=str(path.parent / "network")), **changes)  # type: ignore[arg-type]
    return tune_encoder(path, options, settings, how, out, Resources(out, BUDGET, Quiet()))


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts in which the order of two words decides, which states of an untrained network hardly tell."""
    folder = tmp_path_factory.mktemp("texts")
    save_network(folder / "network")
    generator = random.Random(1)
    lines = []
    for _ in range(300):
        noun = "".join(generator.choices("bcdfghklmnprstvw", k=4))
        good = generator.random() < 0.5
        words = "good , not bad" if good else "bad , not good"
        lines.append(json.dumps({"text": f"The {noun} was {words}.", "label": "good" if good else "bad"}))
    path = folder / "reviews.jsonl"
    path.write_text("\n".join(dict.fromkeys(lines)))
    return path


@pytest.fixture(scope="module")
def tuned(reviews: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tuned]:
    out = tmp_path_factory.mktemp("tuned") / "encoder"
    return out, run(reviews, out)


def test_the_loss_falls_and_the_encoder_is_one_like_any_other(
    reviews: Path, tuned: tuple[Path, Tuned], tmp_path: Path
) -> None:
    out, found = tuned
    assert found.best_round > 0
    assert found.rounds[0].dev_accuracy < 0.8
    assert found.rounds[found.best_round].dev_accuracy > 0.9
    before, after = load_encoder(str(reviews.parent / "network")), load_encoder(str(out))
    assert before.identity != after.identity
    assert before.identity.max_tokens == after.identity.max_tokens

    # A layer over its states does what the log says.
    resources = Resources(tmp_path, BUDGET, Quiet())
    states = open_states(reviews, SourceOptions(encoder=str(out)), resources)
    trained = train_layer(states, DOCUMENTS, tmp_path / "layer", resources)
    assert trained.log[trained.best_epoch - 1].dev_loss == found.rounds[found.best_round].dev_loss


def test_the_same_seed_gives_the_same_bits(reviews: Path, tuned: tuple[Path, Tuned], tmp_path: Path) -> None:
    out, found = tuned
    assert run(reviews, tmp_path / "again") == found
    assert content(tmp_path / "again") == content(out)


def test_an_interrupted_training_goes_on(
    reviews: Path, tuned: tuple[Path, Tuned], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted at its first step, within the first round, and within the second, one after the other."""
    out, found = tuned
    left = 0
    states = tuning._states

    def failing(*args: object) -> torch.Tensor:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        return states(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(tuning, "_states", failing)
    for step in (1, 5, 10):
        left = step
        with pytest.raises(KeyboardInterrupt):
            run(reviews, tmp_path / "stopped")
    assert run(reviews, tmp_path / "stopped") == found
    assert content(tmp_path / "stopped") == content(out)
    assert not (tmp_path / "stopped" / "unfinished").exists()


def test_a_training_that_stopped_while_files_were_copied_goes_on(
    reviews: Path, tuned: tuple[Path, Tuned], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, found = tuned
    copied = 0

    def failing(source: Path, target: Path) -> None:
        nonlocal copied
        copied += 1
        if copied in {2, 5}:  # into the first round, and into the second
            raise KeyboardInterrupt
        target.write_bytes(source.read_bytes())

    monkeypatch.setattr(shutil, "copyfile", failing)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(reviews, tmp_path / "stopped")
    assert run(reviews, tmp_path / "stopped") == found
    assert content(tmp_path / "stopped") == content(out)


def test_what_lies_in_the_folder_is_not_overwritten(reviews: Path, tmp_path: Path) -> None:
    save_network(tmp_path / "other", seed=1)
    before = content(tmp_path / "other")
    with pytest.raises(InvalidInputError, match="expected an empty folder for the encoder, got other files"):
        run(reviews, tmp_path / "other")
    assert {name: held for name, held in content(tmp_path / "other").items() if name != "tuning.lock"} == before


def test_a_tuned_encoder_is_tuned_again(reviews: Path, tuned: tuple[Path, Tuned], tmp_path: Path) -> None:
    shutil.copytree(tuned[0], tmp_path / "network")
    again = shutil.copyfile(reviews, tmp_path / reviews.name)
    found = run(again, tmp_path / "encoder", how=TuningSettings(rounds=1, learning_rate=0.0001))
    assert run(again, tmp_path / "encoder", how=TuningSettings(rounds=1, learning_rate=0.0001)) == found


def test_texts_are_private_while_training_goes_on(
    reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> torch.Tensor:
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "_states", stop)
    with pytest.raises(KeyboardInterrupt):
        run(reviews, tmp_path / "encoder")
    assert (tmp_path / "encoder" / "unfinished").stat().st_mode & 0o077 == 0


def test_a_missing_encoder_is_named(reviews: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    path = shutil.copyfile(reviews, tmp_path / reviews.name)
    with pytest.raises(InvalidInputError, match=r"network: expected a folder with config\.json, got none"):
        run(path, tmp_path / "out")


def test_a_finished_training_is_read(reviews: Path, tuned: tuple[Path, Tuned], monkeypatch: pytest.MonkeyPatch) -> None:
    out, found = tuned
    monkeypatch.setattr(flow, "train_layer", None)
    assert run(reviews, out) == found


def test_an_encoder_that_training_spoils_is_not_written(reviews: Path, tmp_path: Path) -> None:
    trained_long = replace(DOCUMENTS, max_epochs=30)
    found = run(reviews, tmp_path / "encoder", trained_long, TuningSettings(rounds=3, learning_rate=1.0))
    assert (found.best_round, len(found.rounds)) == (0, 2), "a round that does not help is the last"
    start = reviews.parent / "network"
    assert (tmp_path / "encoder" / "model.safetensors").read_bytes() == (start / "model.safetensors").read_bytes()


def test_a_rate_at_which_the_loss_is_lost_is_named(reviews: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"expected a finite loss .* got nan; choose a smaller learning rate"):
        run(reviews, tmp_path / "encoder", how=TuningSettings(rounds=1, learning_rate=1e6))


def test_words_are_learnt_from_as_well(reviews: Path, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    words = ["good", "bad", "film", "the", "was"]
    sentences = []
    for _ in range(80):
        drawn = generator.choice(words, 6).tolist()
        sentences.append("\n".join(f"{word}\t{'X' if word in words[:2] else 'O'}" for word in drawn))
    path = tmp_path / "words.conll"
    path.write_text("\n\n".join(sentences) + "\n")
    shutil.copytree(reviews.parent / "network", tmp_path / "network")
    layer = replace(DOCUMENTS, form=LayerForm.LINEAR)
    found = run(path, tmp_path / "encoder", layer, TuningSettings(1, 0.003), kind="token")
    assert found.rounds[1].dev_loss < found.rounds[0].dev_loss


def test_the_encoder_learns_below_two_linear_layers(reviews: Path, tmp_path: Path) -> None:
    layer = replace(DOCUMENTS, form=LayerForm.TWO_LAYERS)
    found = run(reviews, tmp_path / "encoder", layer, TuningSettings(1, 0.003))
    assert found.rounds[1].dev_loss < found.rounds[0].dev_loss


def test_a_folder_of_another_training_is_refused(reviews: Path, tuned: tuple[Path, Tuned]) -> None:
    out, _ = tuned
    with pytest.raises(InvalidInputError, match=f"{LOG_NAME}: expected a training of the same settings and data"):
        run(reviews, out, replace(DOCUMENTS, seed=1))


def test_the_folder_of_the_encoder_to_start_from_is_refused(reviews: Path) -> None:
    with pytest.raises(InvalidInputError, match="expected another folder than that of the encoder"):
        run(reviews, reviews.parent / "network")


def test_states_are_refused(reviews: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "states.npz", states=np.ones((6, 4)), lengths=np.array([3, 1, 2]))
    (tmp_path / "network").symlink_to(reviews.parent / "network")
    with pytest.raises(InvalidInputError, match="expected texts, which an encoder is trained on, got states"):
        run(tmp_path / "states.npz", tmp_path / "encoder")


@pytest.mark.parametrize(("rounds", "rate"), [(0, 1e-5), (1, 0.0), (1, float("nan")), (1, float("inf"))])
def test_settings_out_of_range_are_refused(rounds: int, rate: float) -> None:
    with pytest.raises(InvalidInputError, match="choose another value"):
        TuningSettings(rounds, rate)
