"""Training an encoder in turns with a memory layer: rounds of a layer, then of an epoch of the encoder below it.

The result is a folder with an encoder like any other. Its states are those of another extractor: what is trained on
them makes exemplars of a new generation.
"""

import hashlib
import json
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import reading, too_large
from venn_admit.files.output.atomic import locked, replacing, writing
from venn_admit.flows.extraction.options import SourceOptions, background_number
from venn_admit.flows.extraction.states import Resources, classes_found, open_states
from venn_admit.flows.extraction.train import train_layer
from venn_admit.layer.encoders.local import DEFAULT_ENCODER, WEIGHTS_NAME, encoder_folder, load_encoder
from venn_admit.layer.settings import LayerSettings
from venn_admit.layer.states.conversion import holds_states
from venn_admit.layer.texts.source import TextFile

if TYPE_CHECKING:
    from venn_admit.layer.model import LayerModel
    from venn_admit.layer.states.reader import StateShards
    from venn_admit.layer.training import Trained

LOG_NAME = "tuning.json"
_UNFINISHED, _LOCK_NAME = "unfinished", "tuning.lock"
_ENDINGS = (".json", ".txt", ".model")
"""The files beside the weights that say what a network and its tokenizer are."""

_DOCUMENT_BYTES, _TOKEN_BYTES = 512, 16  # of its arrays; of an id and of its position


@dataclass(frozen=True, slots=True)
class TuningSettings:
    """How an encoder is trained. learning_rate: > 0, of Adam, for the encoder.

    rounds: >= 1, the most epochs of the encoder; none follows one that did not lower the loss on the dev split.
    """

    rounds: int = 3
    learning_rate: float = 2e-5

    def __post_init__(self) -> None:
        """Raise InvalidInputError at a value that is out of its range."""
        if self.rounds < 1:
            raise InvalidInputError(f"rounds: expected at least 1, got {self.rounds}; choose another value")
        if not math.isfinite(self.learning_rate) or self.learning_rate <= 0:
            raise InvalidInputError(
                f"learning_rate: expected a number above 0, got {self.learning_rate}; choose another value"
            )


@dataclass(frozen=True, slots=True)
class TuningRound:
    """How a memory layer does over the encoder of one round: what its best epoch has on the dev split.

    round: 0 for the encoder that training started from.
    """

    round: int
    dev_loss: float
    dev_accuracy: float
    dev_f_half: float


@dataclass(frozen=True, slots=True)
class Tuned:
    """A finished training, of which the folder has the encoder of the best round.

    best_round: the earliest with the lowest loss on the dev split.
    """

    rounds: tuple[TuningRound, ...]
    best_round: int


def tune_encoder(
    path: Path,
    options: SourceOptions,
    settings: LayerSettings,
    tuning: TuningSettings,
    out: Path,
    resources: Resources,
) -> Tuned:
    """Train an encoder in turns with a memory layer, and write it to a folder; go on if that was interrupted.

    Each round trains a layer over the states of the encoder at hand, then the encoder for one epoch with that layer on
    top. The documents of the dev split train neither.

    Args:
        path: A file of labelled texts or words.
        options: How it is read; the encoder to start from.
        out: The folder of the new encoder, in which the states lie until it is complete.
        resources: Their folder is not used. What torch keeps for gradients comes on top of the budget.

    Raises:
        InvalidInputError: The file holds states, the settings do not fit the data, or the folder holds something else.
    """
    if path.is_dir() or holds_states(path):
        raise InvalidInputError(f"{path}: expected texts, which an encoder is trained on, got states; name the texts")
    start = encoder_folder(options.encoder or DEFAULT_ENCODER)
    if out.exists() and start.exists() and out.samefile(start):
        raise InvalidInputError(f"{out}: expected another folder than that of the encoder to start from; choose one")
    encoder = load_encoder(options.encoder or DEFAULT_ENCODER, layers=options.layers, max_tokens=options.max_tokens)
    texts = TextFile(path, options.kind, options.columns, memory_budget=resources.memory_budget)
    summary = texts.summary()
    if options.background is not None:
        class_names = options.class_names or classes_found(path, summary)
        settings = replace(settings, background=background_number(options.background, class_names))
    described = [
        summary.digest,
        list(options.class_names),
        encoder.identity.model_dump(mode="json"),
        settings.as_json(),
        asdict(tuning),
    ]
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    options = replace(options, layers=encoder.identity.layers, max_tokens=encoder.identity.max_tokens)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    with locked(out / _LOCK_NAME, lambda: resources.display.show(f"Waiting for another run, which fills {out.name}")):
        finished = _read_log(out / LOG_NAME, digest)
        if finished is not None:
            shutil.rmtree(out / _UNFINISHED, ignore_errors=True)  # if it was killed while it removed this
            return finished
        if not (out / _UNFINISHED).exists() and any(path.name != _LOCK_NAME for path in out.iterdir()):
            raise InvalidInputError(f"{out}: expected an empty folder for the encoder, got other files; choose another")
        run = _Run(texts, options, settings, tuning, out / _UNFINISHED, digest, resources)
        tuned = run.rounds(start)
        run.move_up(tuned, out)
    return tuned


class _Run:
    """The rounds of one training, each in a folder of its own, which is there once the round's encoder is complete."""

    def __init__(
        self,
        texts: TextFile,
        options: SourceOptions,
        settings: LayerSettings,
        tuning: TuningSettings,
        folder: Path,
        digest: str,
        resources: Resources,
    ) -> None:
        self._texts, self._options, self._settings, self._tuning = texts, options, settings, tuning
        self._folder, self._digest, self._resources = folder, digest, resources

    def rounds(self, start: Path) -> Tuned:
        with writing(self._folder):
            self._folder.mkdir(mode=0o700, exist_ok=True)  # states hold the texts
        if _read_log(self._folder / LOG_NAME, self._digest) is None:
            if any(self._folder.iterdir()):
                raise InvalidInputError(
                    f"{self._folder}: expected an unfinished training of the same settings and data, got another; "
                    "choose another folder"
                )
            self._write_log(self._folder, Tuned((), 0))
        if not self._round_folder(0).exists():
            with self._new_round(start, 0):
                pass
        done: list[TuningRound] = []
        best = 0
        while True:
            number = len(done)
            trained, shards = self._train_layer(number)
            line = trained.log[trained.best_epoch - 1]
            done.append(TuningRound(number, line.dev_loss, line.dev_accuracy, line.dev_f_half))
            if line.dev_loss < done[best].dev_loss:
                best = number
            if number == self._tuning.rounds or best < number:
                return Tuned(tuple(done), best)
            if not self._round_folder(number + 1).exists():
                self._train_encoder(number, trained.model, shards)

    def _train_layer(self, number: int) -> tuple["Trained", "StateShards"]:
        """Train a layer over the encoder of a round."""
        folder = self._round_folder(number)
        with writing(folder):
            (folder / "states").mkdir(exist_ok=True)
        resources = replace(self._resources, folder=folder / "states")
        states = open_states(self._texts.path, replace(self._options, encoder=str(folder)), resources)
        trained = train_layer(states, self._settings, folder / "layer", resources)
        return trained, states.shards

    def _train_encoder(self, number: int, model: "LayerModel", shards: "StateShards") -> None:
        """Train the encoder of a round for an epoch, which makes the encoder of the next round."""
        from venn_admit.core.approximation.training import torch_threads
        from venn_admit.layer.batches import count_labels, split_dev
        from venn_admit.layer.encoders.tuning import save_weights, tokenized, tune
        from venn_admit.layer.layer import Objective

        folder = self._round_folder(number)
        encoder = load_encoder(str(folder), layers=self._options.layers, max_tokens=self._options.max_tokens)
        needed = _TOKEN_BYTES * shards.token_count + _DOCUMENT_BYTES * shards.document_count
        budget = self._resources.memory_budget
        if needed > budget:
            raise too_large(self._texts.path, "the tokens of all texts", budget, needed, "train with fewer texts")
        is_document = self._settings.form.kind == "document"
        labelled = np.flatnonzero(shards.labels >= 0) if is_document else np.arange(shards.document_count)
        rows, _ = split_dev(shards, labelled, dev_share=self._settings.dev_share, seed=self._settings.seed)
        chosen = set(rows.tolist())
        read = tokenized(self._texts.documents(model.class_names), encoder)
        documents = [document for row, document in enumerate(read) if row in chosen]
        given = np.concatenate([document.labels for document in documents])
        counts = count_labels(given, len(model.class_names), several=shards.several_labels)
        self._resources.display.show(f"Training the encoder: round {number + 1}", len(documents))
        with torch_threads(1):
            tune(
                encoder,
                model,
                Objective(model.settings, counts),
                documents,
                learning_rate=self._tuning.learning_rate,
                generator=np.random.default_rng([self._settings.seed % 2**64, number]),
                progress=self._resources.display.advance,
            )
        with self._new_round(folder, number + 1) as partial:
            save_weights(encoder, partial)

    @contextmanager
    def _new_round(self, source: Path, number: int) -> Iterator[Path]:
        """A folder with the files of an encoder, which gets its name once the context succeeds."""
        partial = self._folder / f"round-{number}.partial"
        with writing(partial):
            with suppress(FileNotFoundError):
                shutil.rmtree(partial)
            partial.mkdir()
            for file in source.iterdir():
                if file.name == WEIGHTS_NAME or (file.suffix in _ENDINGS and file.name != LOG_NAME):
                    shutil.copyfile(file, partial / file.name)
        yield partial
        with writing(partial):
            partial.rename(self._round_folder(number))

    def move_up(self, tuned: Tuned, out: Path) -> None:
        """Move the best encoder's files into the folder; the log comes last, then the rest is removed."""
        with writing(out):
            for file in self._round_folder(tuned.best_round).iterdir():
                if file.is_file():
                    shutil.copyfile(file, out / file.name)
            self._write_log(out, tuned)
            shutil.rmtree(self._folder)

    def _round_folder(self, number: int) -> Path:
        return self._folder / f"round-{number}"

    def _write_log(self, folder: Path, tuned: Tuned) -> None:
        content = {"format": "venn-admit tuning", "training": self._digest, **asdict(tuned)}
        with replacing(folder / LOG_NAME) as file:
            file.write(json.dumps(content, indent=2).encode() + b"\n")


def _read_log(path: Path, digest: str) -> Tuned | None:
    """The log of a training of the same settings and data; None if there is none. InvalidInputError at another's."""
    if not path.exists():
        return None
    with reading(path, "log of a training", ValueError, KeyError, TypeError):
        content = json.loads(path.read_text("utf-8"))
        found = content["training"]
        tuned = Tuned(tuple(TuningRound(**line) for line in content["rounds"]), int(content["best_round"]))
    if found != digest:
        raise InvalidInputError(
            f"{path}: expected a training of the same settings and data, got another; choose another folder"
        )
    return tuned
