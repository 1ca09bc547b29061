"""Training: what it learns, that seeds decide it, and that it goes on where it was killed."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.layer.made_up import ENCODER, SMALL, draw_documents, write_states
from tests.patience import PATIENCE_SECONDS
from venn_admit.errors import ConflictError, InvalidInputError, NotReadyError
from venn_admit.layer import training
from venn_admit.layer.batches import split_dev
from venn_admit.layer.checkpoint import CHECKPOINT_NAME
from venn_admit.layer.evaluation import evaluate_layer
from venn_admit.layer.model import LOG_NAME, MODEL_NAME, WEIGHTS_NAME, load_model, save_model
from venn_admit.layer.settings import LayerForm, LayerSettings
from venn_admit.layer.states.index import StateDocument
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.states.writer import ShardWriter
from venn_admit.layer.training import Trained, TrainingProgress, train

ROOT = Path(__file__).parents[2]
BUDGET = 256 << 20


def run(shards: StateShards, out: Path, settings: LayerSettings = SMALL, **changes: Any) -> Trained:
    return train(shards, replace(settings, **changes), out, progress=lambda _: None, memory_budget=BUDGET)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> StateShards:
    return write_states(tmp_path_factory.mktemp("states") / "states", draw_documents(300, background=0))


@pytest.fixture(scope="module")
def calm(shards: StateShards, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trained]:
    """What a training that nothing disturbs leaves, in a folder to be left as it is."""
    folder = tmp_path_factory.mktemp("calm") / "model"
    return folder, run(shards, folder)


@pytest.fixture
def finished(calm: tuple[Path, Trained], tmp_path: Path) -> Path:
    """A copy of that folder."""
    return Path(shutil.copytree(calm[0], tmp_path / "model"))


@pytest.mark.parametrize(
    "how",
    [
        {"max_epochs": 30},
        {"form": LayerForm.TWO_LAYERS, "max_epochs": 30},
        {"form": LayerForm.TWO_LAYERS, "max_epochs": 15, "min_max_epochs": 15},
    ],
    ids=lambda how: "-".join(map(str, how.values())),
)
def test_labels_of_documents_are_enough_to_find_tokens(how: dict[str, Any], tmp_path: Path) -> None:
    """The token labels are used for evaluation alone. Chance is what detecting every token has."""
    train_shards = write_states(tmp_path / "train", draw_documents(500, background=0, seed=1))
    test_shards = write_states(tmp_path / "test", draw_documents(300, background=0, seed=2))
    test_tokens = write_states(tmp_path / "tokens", draw_documents(300, kind="token", background=0, seed=2))
    model = run(train_shards, tmp_path / "model", background=0, **how).model
    found = evaluate_layer(model, test_tokens, level="token", memory_budget=BUDGET).evidence[1]
    assert found.f_half_of_all < 0.15
    assert found.f_half > 0.75
    network = evaluate_layer(model, test_shards, memory_budget=BUDGET).network
    assert network is not None
    assert network.accuracy.tallies.overall.share > 0.95


def test_min_max_loss_makes_detections_precise(tmp_path: Path) -> None:
    shards = write_states(tmp_path / "train", draw_documents(250, class_count=3, seed=1), class_count=3)
    tokens = write_states(tmp_path / "tokens", draw_documents(300, kind="token", class_count=3, seed=2), class_count=3)
    precision = {
        weight: [
            found.precision
            for found in evaluate_layer(
                run(shards, tmp_path / f"model {weight}", max_epochs=20, min_max_weight=weight).model,
                tokens,
                level="token",
                memory_budget=BUDGET,
            ).evidence
        ]
        for weight in (0.0, 1.0)
    }
    assert min(precision[1.0]) > max(precision[0.0])


@pytest.mark.parametrize("form", [LayerForm.LINEAR, LayerForm.DECOMPOSED])
def test_labels_of_tokens_are_learnt(form: LayerForm, tmp_path: Path) -> None:
    shards = write_states(tmp_path / "train", draw_documents(300, kind="token", background=0, seed=1))
    others = write_states(tmp_path / "test", draw_documents(200, kind="token", background=0, seed=2))
    trained = run(shards, tmp_path / "model", form=form, max_epochs=20)
    network = evaluate_layer(trained.model, others, memory_budget=BUDGET).network
    assert network is not None
    assert network.detections[1].f_half > 0.8
    assert network.accuracy.f_half[1] == pytest.approx(network.detections[1].f_half)


@pytest.mark.processes
@pytest.mark.parametrize("form", LayerForm)
def test_same_seed_gives_the_same_bits_and_another_does_not(form: LayerForm, tmp_path: Path) -> None:
    """Once in a process of its own, whose hashes have another seed."""
    shards = write_states(tmp_path / "states", draw_documents(300, kind=form.kind, background=0))
    first = run(shards, tmp_path / "first", form=form)
    subprocess.run(
        [sys.executable, "-m", "tests.layer.train_once", str(shards.folder), str(tmp_path / "again"), form],
        cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": "1"}, check=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert content(tmp_path / "first") == content(tmp_path / "again")
    other = run(shards, tmp_path / "other", form=form, seed=1).model
    assert other.extractor_version != first.model.extractor_version
    assert (other.filter_weight != first.model.filter_weight).any()


def test_memory_budget_does_not_change_the_result(
    shards: StateShards, calm: tuple[Path, Trained], tmp_path: Path
) -> None:
    train(shards, SMALL, tmp_path / "again", progress=lambda _: None, memory_budget=1 << 20)
    assert content(tmp_path / "again") == content(calm[0])


@pytest.mark.processes
@pytest.mark.slow
def test_memory_does_not_grow_with_the_data(tmp_path: Path) -> None:
    """Each in a process of its own. Four times as many tokens are 44 MiB more in the files, and 88 MiB in float32.

    What torch and all else that is loaded take does not count: just after it was installed, that may be three times as
    much, since the system maps its files in larger pieces.
    """
    width, length, memory_budget = 384, 50, 16 << 20
    rng = np.random.default_rng(0)
    growths = []
    for count in (400, 1600):
        folder = tmp_path / f"{count}"
        with ShardWriter(folder, kind="document", width=width, class_names=("a", "b"), encoder=ENCODER) as writer:
            for number in range(count):
                states = rng.standard_normal((length, width), np.float32)
                writer.append(StateDocument(f"{number}", states, number % 2, None, (), {}))
        arguments = [str(folder), str(tmp_path / f"model {count}"), str(memory_budget)]
        done = subprocess.run(
            [sys.executable, "-m", "tests.layer.peak_of_training", *arguments],
            cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        growths.append(int(done.stdout))
    assert growths[1] - growths[0] < 8 << 20
    assert growths[1] < 256 << 20


@pytest.mark.processes
@pytest.mark.slow
def test_killed_training_goes_on_to_the_same_bits(
    shards: StateShards, calm: tuple[Path, Trained], tmp_path: Path
) -> None:
    points = [("1", "0"), ("2", "1500"), ("2", "0"), ("3", "1000000000"), ("4", "2000")]
    for epoch, tokens in points:
        killed = subprocess.run(
            [
                sys.executable, "-m", "tests.layer.train_until_killed",
                str(shards.folder), str(tmp_path / "killed"), epoch, tokens,
            ],
            cwd=ROOT, check=False, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        assert killed.returncode == -signal.SIGKILL, (epoch, tokens)
        assert not (tmp_path / "killed" / MODEL_NAME).exists()
    epochs: list[int] = []
    train(
        shards,
        SMALL,
        tmp_path / "killed",
        progress=lambda progress: epochs.append(progress.epoch),
        memory_budget=BUDGET,
    )
    assert set(epochs) == {4}, "the three complete epochs are not repeated"
    assert content(tmp_path / "killed") == content(calm[0])


def test_training_killed_after_its_last_epoch_ends_without_another(
    shards: StateShards, calm: tuple[Path, Trained], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(training, "save_model", die)
        with pytest.raises(KeyboardInterrupt):
            run(shards, tmp_path / "killed")
    seen: list[TrainingProgress] = []
    train(shards, SMALL, tmp_path / "killed", progress=seen.append, memory_budget=BUDGET)
    assert not seen
    assert content(tmp_path / "killed") == content(calm[0])


def test_training_killed_as_it_ended_leaves_nothing_unfinished(
    shards: StateShards, calm: tuple[Path, Trained], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_and_die(*given: Any, **named: Any) -> None:
        save_model(*given, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(training, "save_model", save_and_die)
        with pytest.raises(KeyboardInterrupt):
            run(shards, tmp_path / "killed")
    assert {MODEL_NAME, CHECKPOINT_NAME} <= set(content(tmp_path / "killed"))
    with pytest.raises(InvalidInputError, match="got one of other settings or data"):
        run(shards, tmp_path / "killed", seed=1)
    assert CHECKPOINT_NAME in content(tmp_path / "killed")
    run(shards, tmp_path / "killed")
    assert content(tmp_path / "killed") == content(calm[0])


def test_finished_training_is_read(shards: StateShards, calm: tuple[Path, Trained], finished: Path) -> None:
    first, before = calm[1], content(finished)
    seen: list[TrainingProgress] = []
    again = train(shards, SMALL, finished, progress=seen.append, memory_budget=BUDGET)
    assert (again.log, again.best_epoch) == (first.log, first.best_epoch)
    assert again.model.extractor_version == first.model.extractor_version
    assert not seen
    assert content(finished) == before
    assert set(before) == {MODEL_NAME, WEIGHTS_NAME, LOG_NAME, "training.lock"}


def test_folder_of_another_training_is_refused(shards: StateShards, finished: Path) -> None:
    before = content(finished)
    with pytest.raises(InvalidInputError, match="got one of other settings or data; choose another folder"):
        run(shards, finished, seed=1)
    assert content(finished) == before


def test_unfinished_training_of_other_settings_is_refused(shards: StateShards, tmp_path: Path) -> None:
    interrupt(shards, tmp_path / "model")
    with pytest.raises(InvalidInputError, match="expected an unfinished training of the same settings and data"):
        run(shards, tmp_path / "model", seed=1)
    assert (tmp_path / "model" / CHECKPOINT_NAME).exists()


def test_damaged_checkpoint_is_refused(shards: StateShards, tmp_path: Path) -> None:
    interrupt(shards, tmp_path / "model")
    path = tmp_path / "model" / CHECKPOINT_NAME
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InvalidInputError, match="expected a readable unfinished training"):
        run(shards, tmp_path / "model")


def interrupt(shards: StateShards, out: Path, settings: LayerSettings = SMALL, *, epoch: int = 3) -> None:
    """Leave a training that was stopped in an epoch."""

    def stop(progress: TrainingProgress) -> None:
        if progress.epoch == epoch:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(shards, settings, out, progress=stop, memory_budget=BUDGET)


def test_stops_early_and_keeps_the_best_epoch(shards: StateShards, tmp_path: Path) -> None:
    trained = run(shards, tmp_path / "model", learning_rate=0.5, max_epochs=40, patience=2)
    losses = [epoch.dev_loss for epoch in trained.log]
    assert len(trained.log) == trained.best_epoch + 2 < 40
    assert trained.best_epoch == int(np.argmin(losses)) + 1
    shorter = run(shards, tmp_path / "shorter", learning_rate=0.5, max_epochs=trained.best_epoch, patience=2)
    assert (shorter.model.filter_weight == trained.model.filter_weight).all()


TWO_PHASES = replace(SMALL, form=LayerForm.TWO_LAYERS, max_epochs=2, min_max_epochs=2)


@pytest.fixture(scope="module")
def calm_phases(shards: StateShards, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a training in two phases that nothing disturbs leaves."""
    folder = tmp_path_factory.mktemp("phases") / "model"
    run(shards, folder, TWO_PHASES)
    return content(folder)


def test_second_phase_goes_on_with_the_best_epoch_of_the_first(shards: StateShards, tmp_path: Path) -> None:
    """One mini-batch makes an epoch, so that it matters little which number the epoch has."""
    settings = replace(TWO_PHASES, max_epochs=40, patience=2, learning_rate=0.1, batch_tokens=1 << 14)
    trained = run(shards, tmp_path / "model", settings)
    losses, phases = ([getattr(line, name) for line in trained.log] for name in ("dev_loss", "phase"))
    first = phases.count("cross-entropy")
    assert phases == ["cross-entropy"] * first + ["min-max"] * 2
    best = int(np.argmin(losses[:first])) + 1
    assert first == best + 2 < 40, "the first phase stops early"
    assert trained.best_epoch == first + 1 + int(np.argmin(losses[first:]))

    shorter = run(shards, tmp_path / "shorter", replace(settings, max_epochs=best))
    assert [line.phase for line in shorter.log].count("cross-entropy") == best
    assert losses[first:] == pytest.approx([line.dev_loss for line in shorter.log[best:]], rel=1e-4)


@pytest.mark.parametrize("epoch", [2, 3, 4])
def test_interrupted_phase_goes_on_to_the_same_bits(
    epoch: int, shards: StateShards, calm_phases: dict[str, bytes], tmp_path: Path
) -> None:
    """In the first phase, between the two, and in the second."""
    interrupt(shards, tmp_path / "stopped", TWO_PHASES, epoch=epoch)
    seen: list[TrainingProgress] = []
    train(shards, TWO_PHASES, tmp_path / "stopped", progress=seen.append, memory_budget=BUDGET)
    assert {progress.epoch for progress in seen} == set(range(epoch, 5))
    assert content(tmp_path / "stopped") == calm_phases


def test_progress_tells_every_token(shards: StateShards, tmp_path: Path) -> None:
    seen: list[TrainingProgress] = []
    trained = train(
        shards, replace(SMALL, max_epochs=2), tmp_path / "model", progress=seen.append, memory_budget=BUDGET
    )
    ends = [progress for progress in seen if progress.finished]
    assert [progress.finished for progress in ends] == list(trained.log)
    assert all(progress.tokens == progress.total_tokens == shards.token_count for progress in ends)


def test_dev_split_follows_from_ids_and_seed(shards: StateShards) -> None:
    rows = np.arange(shards.document_count)
    fit, dev = split_dev(shards, rows, dev_share=0.2, seed=3)
    assert sorted([*fit.tolist(), *dev.tolist()]) == rows.tolist()
    assert 30 < len(dev) < 90
    fewer_fit, fewer_dev = split_dev(shards, rows[::2], dev_share=0.2, seed=3)
    assert set(fewer_dev.tolist()) <= set(dev.tolist())
    assert set(fewer_fit.tolist()) <= set(fit.tolist())


def test_copies_of_a_text_are_on_one_side_of_the_dev_split(tmp_path: Path) -> None:
    documents = [
        replace(document, attributes={"text": f"text {number // 3}"})
        for number, document in enumerate(draw_documents(300))
    ]
    shards = write_states(tmp_path / "states", documents)
    fit, dev = split_dev(shards, np.arange(300), dev_share=0.2, seed=0)
    assert {row // 3 for row in fit.tolist()}.isdisjoint({row // 3 for row in dev.tolist()})
    assert 20 < len(dev) < 100


def test_documents_without_a_label_are_left_out(calm: tuple[Path, Trained], tmp_path: Path) -> None:
    documents = draw_documents(300, background=0)
    unlabelled = [replace(document, label=-1, external_id=f"u{row}") for row, document in enumerate(documents[:20])]
    more = write_states(tmp_path / "states", documents + unlabelled)
    with_them, without = run(more, tmp_path / "with").model, calm[1].model
    assert (with_them.filter_weight == without.filter_weight).all()


def test_class_weights_count_in_the_loss(shards: StateShards, tmp_path: Path) -> None:
    plain = run(shards, tmp_path / "plain", max_epochs=1)
    ones = run(shards, tmp_path / "ones", max_epochs=1, class_weights=(1.0, 1.0))
    heavy = run(shards, tmp_path / "heavy", max_epochs=1, class_weights=(1.0, 9.0))
    assert (plain.model.head_weight == ones.model.head_weight).all()
    assert (plain.model.head_weight != heavy.model.head_weight).any()


def test_balanced_weights_are_inverse_to_frequencies(shards: StateShards, tmp_path: Path) -> None:
    fit, _ = split_dev(shards, np.arange(shards.document_count), dev_share=SMALL.dev_share, seed=SMALL.seed)
    counts = np.bincount(shards.labels[fit])
    weights = tuple((len(fit) / (2 * counts)).tolist())
    balanced = run(shards, tmp_path / "balanced", max_epochs=1, class_weights="balanced")
    given = run(shards, tmp_path / "given", max_epochs=1, class_weights=weights)
    assert (balanced.model.head_weight == given.model.head_weight).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"form": LayerForm.LINEAR}, "expected labels of each token for form linear, got labels of each document"),
        ({"class_weights": (1.0, 1.0, 1.0)}, "class_weights: expected 2, one for each class, got 3"),
        ({"background": 2}, r"background: expected a class, 0..1, got 2"),
    ],
)
def test_settings_that_do_not_fit_the_data_are_refused(
    shards: StateShards, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        run(shards, tmp_path / "model", **changes)
    assert not (tmp_path / "model").exists()


def test_budget_below_a_mini_batch_is_refused(shards: StateShards, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"a mini-batch: expected at most 10,000 bytes of memory"):
        train(shards, SMALL, tmp_path / "model", progress=lambda _: None, memory_budget=10_000)


def test_labels_of_one_class_are_too_few(tmp_path: Path) -> None:
    documents = [replace(document, label=1) for document in draw_documents(30)]
    with pytest.raises(NotReadyError, match="labels of at least 2 classes to train on, got 1"):
        run(write_states(tmp_path / "states", documents), tmp_path / "model")


def test_one_document_is_too_few(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match="got 1 labelled documents, of which"):
        run(write_states(tmp_path / "states", draw_documents(1)), tmp_path / "model")


def test_model_is_loaded_as_it_was_trained(shards: StateShards, calm: tuple[Path, Trained]) -> None:
    trained, loaded = calm[1].model, load_model(calm[0])
    assert loaded.extractor_version == trained.extractor_version
    assert (loaded.filter_weight == trained.filter_weight).all()
    assert (loaded.settings, loaded.class_names, loaded.encoder) == (SMALL, shards.class_names, shards.encoder)


def test_one_process_at_a_time_trains_in_a_folder(shards: StateShards, tmp_path: Path) -> None:
    out = tmp_path / "model"
    refused: list[ConflictError] = []

    def train_beside(progress: TrainingProgress) -> None:
        if progress.finished and not refused:
            with pytest.raises(ConflictError, match="expected a folder that no other process trains in") as error:
                run(shards, out)
            refused.append(error.value)

    first = train(shards, SMALL, out, progress=train_beside, memory_budget=BUDGET)
    assert len(refused) == 1
    assert run(shards, out).model.extractor_version == first.model.extractor_version
