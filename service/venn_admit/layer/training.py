"""Training a memory layer on token states: Adam, mini-batches by length, early stopping, and going on after a stop.

Sources: Schmaltz (2021) and the appendix of Schmaltz & Rasooly (2022) for the losses. Settled here: both losses at once
by default, where the source trains by the cross-entropy first and by the min-max loss afterwards, a setting here;
Adam; the epoch with the lowest loss on a dev split that is cut from the training data by a hash of the document's text.
A second phase begins with the best epoch of the first, and with moments of its own.

The states are read from their shards as they are needed. A training that was stopped, killed even, goes on after its
last complete epoch, and ends with the same bits as one that was not.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from venn_admit.core.approximation.training import torch_threads
from venn_admit.core.types import IntArray
from venn_admit.errors import ConflictError, InvalidInputError, NotReadyError
from venn_admit.files.inputs import too_large
from venn_admit.files.output.atomic import locked, remove_partials, writing
from venn_admit.layer.batches import MiniBatch, count_labels, epoch_batches, read_batches, split_dev
from venn_admit.layer.checkpoint import CHECKPOINT_NAME, TrainingState, restore_checkpoint, save_checkpoint
from venn_admit.layer.layer import LossTally, MemoryLayer, Objective
from venn_admit.layer.model import MODEL_NAME, LayerEpoch, LayerModel, load_training, save_model
from venn_admit.layer.settings import LayerSettings, Phase
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.symbols import find_symbols

_LOCK_NAME = "training.lock"


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far a training is.

    Attributes:
        epoch: The epoch under way, from 1.
        tokens: Tokens that this epoch has read, of the dev split too.
        finished: The line of the log for this epoch, once it is complete.
    """

    epoch: int
    max_epochs: int
    tokens: int
    total_tokens: int
    finished: LayerEpoch | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A finished training.

    Attributes:
        best_epoch: The earliest epoch with the lowest loss on the dev split, of the last phase if there are two.
    """

    model: LayerModel
    log: tuple[LayerEpoch, ...]
    best_epoch: int


def train(
    shards: StateShards,
    settings: LayerSettings,
    out: Path,
    *,
    progress: Callable[[TrainingProgress], None],
    memory_budget: int,
    threads: int = 1,
) -> Trained:
    """Train a memory layer and write it to a folder; go on with an unfinished training of the same settings and data.

    If the folder holds this training and it is finished, the folder is read. The result does not depend on the memory
    budget, and is the same bit for bit on one thread. One process at a time trains in a folder; the lock of one that
    was killed is dropped with it.

    Args:
        out: The folder of the model, made if it is missing.
        progress: Called after every mini-batch, and after every epoch.

    Raises:
        InvalidInputError: The settings do not fit the data, a document is too long for the memory budget, or the folder
            holds another model or training.
        ConflictError: Another process trains in the folder.
        NotReadyError: There are too few labelled documents, labels of fewer than two classes, or, if documents have
            several labels, none with or none without one of these.
    """
    settings = replace(settings, several_labels=shards.several_labels)
    settings.check_classes(len(shards.class_names))
    if shards.kind != settings.form.kind:
        raise InvalidInputError(
            f"{shards.called}: expected labels of each {settings.form.kind} for form {settings.form}, "
            f"got labels of each {shards.kind}; choose another form or task"
        )
    training = _training_digest(shards, settings)
    if (out / MODEL_NAME).exists() and not (out / CHECKPOINT_NAME).exists():
        return _finished(out, training)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    with locked(out / _LOCK_NAME, lambda: _refuse(out)):
        if (out / MODEL_NAME).exists():  # killed before its last step, or finished by another process in between
            finished = _finished(out, training)
            _remove_checkpoint(out)
            return finished
        _check_memory(shards, settings, memory_budget)
        return _trained(shards, settings, out, training, progress, threads)


def _trained(
    shards: StateShards,
    settings: LayerSettings,
    out: Path,
    training: str,
    progress: Callable[[TrainingProgress], None],
    threads: int,
) -> Trained:
    """Train, from the start or after the last complete epoch, and write the model; the folder's lock is held."""
    remove_partials(out)
    with torch_threads(threads):
        run = _Run(shards, settings, progress)
        state = run.start()
        unfinished = _unfinished_digest(training)
        restore_checkpoint(out, unfinished, state)
        while not run.is_over(state):
            run.epoch(state)
            save_checkpoint(out, unfinished, state)
    model = LayerModel(
        settings=settings,
        class_names=shards.class_names,
        encoder=shards.encoder,
        symbols=run.symbols,
        **{name: values.numpy() for name, values in state.best.items()},
    )
    save_model(out, model, training=training, best_epoch=state.best_epoch, log=state.log)
    _remove_checkpoint(out)
    return Trained(model, tuple(state.log), state.best_epoch)


def _remove_checkpoint(out: Path) -> None:
    with writing(out), suppress(FileNotFoundError):
        (out / CHECKPOINT_NAME).unlink()


class _Run:
    """The epochs of one training. symbols: those of the documents that are trained on, if the layer takes any."""

    def __init__(
        self, shards: StateShards, settings: LayerSettings, progress: Callable[[TrainingProgress], None]
    ) -> None:
        self._shards, self._settings, self._progress = shards, settings, progress
        is_document = settings.form.kind == "document"
        labelled = np.flatnonzero(shards.labels >= 0) if is_document else np.arange(shards.document_count)
        self._train_rows, self._dev_rows = split_dev(shards, labelled, dev_share=settings.dev_share, seed=settings.seed)
        self.symbols = find_symbols(shards, self._train_rows) if settings.symbols else ()
        self._numbers = {symbol: number for number, symbol in enumerate(self.symbols)} if self.symbols else None
        counts = self._label_counts()
        if settings.several_labels:
            _check_each_label(shards, counts, len(self._train_rows))
        self._objective = Objective(settings, counts)
        self._total_tokens = int(shards.lengths[labelled].sum())
        self._tokens = 0

    def start(self) -> TrainingState:
        layer = MemoryLayer(
            self._settings,
            width=self._shards.width,
            class_count=len(self._shards.class_names),
            symbol_count=len(self.symbols),
        )
        return TrainingState(layer, self._optimizer(layer), best={}, log=[], best_epoch=0)

    def _optimizer(self, layer: MemoryLayer) -> torch.optim.Adam:
        return torch.optim.Adam(layer.parameters(), lr=self._settings.learning_rate)

    def is_over(self, state: TrainingState) -> bool:
        return not self._phases_left(state)

    def _phases_left(self, state: TrainingState) -> tuple[tuple[Phase | None, int], ...]:
        """The phases that have epochs left, that of the next epoch first; they follow from the log."""
        phases = self._settings.phases
        if not state.log:
            return phases
        under_way = [phase for phase, _ in phases].index(state.log[-1].phase)
        epochs = sum(line.phase == state.log[-1].phase for line in state.log)
        ended = epochs == phases[under_way][1] or len(state.log) - state.best_epoch == self._settings.patience
        return phases[under_way + ended :]

    def epoch(self, state: TrainingState) -> None:
        """Train for an epoch, and look at the dev split. What is random in it follows from the seed and its number."""
        epoch, self._tokens = len(state.log) + 1, 0
        phase = self._phases_left(state)[0][0]
        if state.log and state.log[-1].phase != phase:
            state.layer.load_state_dict(state.best)
            state.optimizer = self._optimizer(state.layer)
        generator = np.random.default_rng([self._settings.seed % 2**64, epoch])
        batch_tokens = self._settings.batch_tokens
        lengths = self._shards.lengths
        tally = LossTally(len(self._shards.class_names))
        parts = epoch_batches(lengths, self._train_rows, batch_tokens=batch_tokens, generator=generator)
        for batch in self._read(epoch, parts):
            loss = self._loss(state.layer, batch, tally, phase)
            if loss is not None:
                state.optimizer.zero_grad()
                torch.autograd.backward(loss)
                state.optimizer.step()
        dev_tally = LossTally(len(self._shards.class_names))
        parts = epoch_batches(lengths, self._dev_rows, batch_tokens=batch_tokens, generator=None)
        with torch.no_grad():
            for batch in self._read(epoch, parts):
                self._loss(state.layer, batch, dev_tally, phase)
        self._conclude(state, epoch, phase, tally, dev_tally)

    def _conclude(
        self, state: TrainingState, epoch: int, phase: Phase | None, tally: LossTally, dev_tally: LossTally
    ) -> None:
        dev_loss = dev_tally.mean_loss()
        if not np.isfinite(dev_loss):
            raise InvalidInputError(
                f"expected a finite loss on the dev split in epoch {epoch}, got {dev_loss}; "
                "choose a smaller learning rate"
            )
        state.log.append(
            LayerEpoch(epoch, tally.mean_loss(), dev_loss, dev_tally.accuracy(), dev_tally.macro_f_half(), phase)
        )
        best = state.log[max(state.best_epoch, 1) - 1]
        if state.best_epoch == 0 or best.phase != phase or dev_loss < best.dev_loss:
            state.best_epoch = epoch
            state.best = {name: values.detach().clone() for name, values in state.layer.named_parameters()}
        self._report(epoch, state.log[-1])

    def _read(self, epoch: int, parts: list[IntArray]) -> Iterator[MiniBatch]:
        for batch in read_batches(self._shards, parts, self._numbers):
            yield batch
            self._tokens += len(batch.states)
            self._report(epoch, None)

    def _report(self, epoch: int, finished: LayerEpoch | None) -> None:
        most = sum(epochs for _, epochs in self._settings.phases)
        self._progress(TrainingProgress(epoch, most, self._tokens, self._total_tokens, finished))

    def _loss(self, layer: MemoryLayer, batch: MiniBatch, tally: LossTally, phase: Phase | None) -> torch.Tensor | None:
        symbols = None if batch.symbols is None else torch.from_numpy(batch.symbols)
        inputs = layer.inputs(torch.from_numpy(batch.states), symbols)
        return self._objective.loss(layer, inputs, batch.lengths, batch.labels, tally, phase)

    def _label_counts(self) -> IntArray:
        """How often each class occurs in what is trained on, (C,) int64."""
        class_count = len(self._shards.class_names)
        if self._settings.form.kind == "document":
            labels = self._shards.labels[self._train_rows]
            return count_labels(labels, class_count, several=self._settings.several_labels)
        counts = np.zeros(class_count, np.int64)
        for document in self._shards.documents(self._train_rows):
            assert document.token_labels is not None, "the tokens are labelled"
            counts += count_labels(document.token_labels, class_count, several=False)
        return counts


def _check_each_label(shards: StateShards, counts: IntArray, documents: int) -> None:
    """Raise NotReadyError if documents to train on all have a label, or all lack it. counts: (C,), how many have it."""
    for name, count in zip(shards.class_names, counts.tolist(), strict=True):
        if count in (0, documents):
            lacking = "with" if count == 0 else "without"
            raise NotReadyError(
                f"{shards.called}: expected documents with and without label {name!r} to train on, got none "
                f"{lacking} it among {documents:,}; label others, or leave this label out"
            )


def _training_digest(shards: StateShards, settings: LayerSettings) -> str:
    """A digest of the settings, and of the data by the digests of their shards, which decide the result."""
    described = {"settings": settings.as_json(), "states": shards.index.model_dump(mode="json")}
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _unfinished_digest(training: str) -> str:
    """The digest of an unfinished training, which cannot go on with another dev split than the one that it began with.

    A finished training does not need its dev split any more, so that how that is cut is not part of its own digest.
    """
    return hashlib.sha256(f"{training}, dev split by text".encode()).hexdigest()


def _refuse(out: Path) -> None:
    raise ConflictError(
        f"{out}: expected a folder that no other process trains in, got one that another trains in now; wait until "
        "that one has ended, or choose another folder"
    )


def _finished(out: Path, training: str) -> Trained:
    model, found, best_epoch, log = load_training(out)
    if found != training:
        raise InvalidInputError(
            f"{out}: expected an empty folder for the memory layer, got one of other settings or data; "
            "choose another folder"
        )
    return Trained(model, log, best_epoch)


def _check_memory(shards: StateShards, settings: LayerSettings, memory_budget: int) -> None:
    """Raise InvalidInputError if a mini-batch, with what torch keeps for its gradients, exceeds the memory budget."""
    lengths, classes = shards.lengths, len(shards.class_names)
    parts = epoch_batches(lengths, np.arange(len(lengths)), batch_tokens=settings.batch_tokens, generator=None)
    documents = max(map(len, parts))
    tokens = max(settings.batch_tokens, int(lengths.max()))
    width = shards.width + settings.symbols
    token_floats = 2 * width + 4 * settings.filters + 4 * classes
    document_floats = 3 * settings.filters * classes
    parameters = settings.filters * (width + 2 * classes)
    needed = 4 * (tokens * token_floats + documents * document_floats + 8 * parameters)
    if needed > memory_budget:
        raise too_large(
            shards.called,
            "a mini-batch",
            memory_budget,
            needed,
            "use smaller mini-batches, fewer filters or shorter texts",
        )
