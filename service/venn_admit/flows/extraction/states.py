"""Whatever holds documents, as a folder of shards: one already, states in another format, or texts to encode."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from venn_admit.errors import Code, InvalidInputError, NotReadyError
from venn_admit.files.label_values import check_class_names
from venn_admit.files.output.atomic import locked
from venn_admit.flows.extraction.options import Form, SourceOptions, background_number, form_of
from venn_admit.flows.shell import Display
from venn_admit.layer.encoders.local import DEFAULT_ENCODER, TextEncoder, load_encoder
from venn_admit.layer.states.conversion import convert_states, has_ids, holds_states
from venn_admit.layer.states.index import INDEX_NAME, MOST_LABELS, EncoderIdentity, Kind
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.states.side_logits import side_logit_count
from venn_admit.layer.states.writer import ShardWriter
from venn_admit.layer.texts.document import class_names_of
from venn_admit.layer.texts.source import TextFile, TextSummary

MOST_CLASSES = 1000
OWN_NETWORK = "own network"
"""What the network of states is called that no option names."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a computation over states may use.

    Attributes:
        folder: It holds folders of shards, and files that are mapped while the computation runs.
        memory_budget: Bytes that it may take, beside the encoder and the logits of training exemplars.
        display: Shows how far it is.
    """

    folder: Path
    memory_budget: int
    display: Display


@dataclass(frozen=True, slots=True)
class CheckedTexts:
    """A file of texts that can be encoded. several_labels: whether the label of each document is a list."""

    file: TextFile
    summary: TextSummary
    class_names: tuple[str, ...]
    several_labels: bool

    def require_labels(self, purpose: str) -> None:
        """Check that something is labelled; see `OpenedStates.require_labels`."""
        _require_labels(purpose, bool(self.summary.labels))


@dataclass(frozen=True, slots=True)
class OpenedStates:
    """States of a file. summary: what a file of texts holds; None if states were given."""

    shards: StateShards
    summary: TextSummary | None = field(default=None, repr=False)

    def require_labels(self, purpose: str) -> None:
        """Check that something is labelled; of tokens of states, that is not known before they are read.

        Raises NotReadyError if nothing is. purpose: what messages call the file.
        """
        _require_labels(purpose, self.shards.kind == "token" or bool((self.shards.labels >= 0).any()))


def open_states(
    path: Path, options: SourceOptions, resources: Resources, *, without: frozenset[bytes] = frozenset()
) -> OpenedStates:
    """Return the states of a folder of shards, of a file of states, or of a file of texts.

    What is computed is kept, in a folder that is named by a digest of the content, the encoder and the options, and of
    the file's name if ids follow from it, and used again. A run that was interrupted goes on. If several runs need
    the same folder, one fills it, and the others wait for it.

    Args:
        without: Digests of texts that are left out.
    """
    opened = _open_states(path, options, resources, without)
    return opened if options.label is None else replace(opened, shards=opened.shards.of_label(options.label))


def _open_states(path: Path, options: SourceOptions, resources: Resources, without: frozenset[bytes]) -> OpenedStates:
    if options.class_names:
        check_class_names(options.class_names)
    display = resources.display
    if path.is_dir():
        display.show(f"Checking {path.name}")
        shards = StateShards(path)
        _check_kind(shards, options)
        _check_side(shards, options)
        _check_background(options, shards.class_names)
        return OpenedStates(shards)
    if holds_states(path):
        _check_background(options, options.class_names)
        return OpenedStates(_converted(path, options, resources))
    texts = check_texts(path, options, resources, without=without)
    display.show("Loading the encoder")
    name = options.encoder or DEFAULT_ENCODER
    encoder = _loaded(name, options.layers, options.max_tokens)
    if options.required not in (None, encoder.identity):  # before hours of encoding
        raise InvalidInputError(
            f"{name}: expected the encoder that the memory layer was trained with, {options.required}, got "
            f"{encoder.identity}; name the folder of that encoder"
        )
    return OpenedStates(_encoded(texts, encoder, resources), texts.summary)


def check_texts(
    path: Path, options: SourceOptions, resources: Resources, *, without: frozenset[bytes] = frozenset()
) -> CheckedTexts:
    """Read a file of texts and all of its labels, before hours of encoding. without: as in `open_states`."""
    texts = TextFile(path, options.kind, options.columns, without, resources.memory_budget)
    _check_named(options)
    resources.display.show(f"Reading {path.name}")
    summary = texts.summary()
    several = summary.several_labels or (not summary.labels and options.label is not None)
    if options.required is not None and several != (options.label is not None):
        one, lists = f"one label of each {texts.kind}", "a list of labels of each document"
        expected, got = (one, lists) if several else (lists, one)
        raise InvalidInputError(
            f"{path}: expected {expected}, as the memory layer was trained on, got {got}; write the labels so"
        )
    class_names = options.class_names or classes_found(path, summary)
    _check_background(options, class_names)
    for _ in texts.documents(class_names):
        pass
    return CheckedTexts(texts, summary, class_names, several)


def _require_labels(purpose: str, are_there: bool) -> None:
    if not are_there:
        raise NotReadyError(f"{purpose}: expected labels, got none; label some")


def text_digests(paths: Sequence[Path], options: SourceOptions, resources: Resources) -> frozenset[bytes]:
    """Return the digests of the texts of some files, so that they can be left out of another.

    Args:
        paths: Tables of documents, or files of labelled words.
        options: How tables are read.

    Raises:
        InvalidInputError: A file holds states, or is invalid.
    """
    found = frozenset[bytes]()
    for path in paths:
        form = form_of(path)
        if not form.is_text:
            raise InvalidInputError(f"{path}: expected texts, which can be compared, got {form}; name the texts")
        resources.display.show(f"Reading {path.name}")
        kind: Kind = "token" if form is Form.WORDS else "document"
        found |= TextFile(path, kind, options.columns, memory_budget=resources.memory_budget).summary().text_digests
    return found


def _check_kind(shards: StateShards, options: SourceOptions) -> None:
    """Raise InvalidInputError if a folder of states has labels of something else than was asked for."""
    if options.required is None and shards.kind != options.kind:
        raise InvalidInputError(
            f"{shards.folder}: expected labels of each {options.kind}, got labels of each {shards.kind}; "
            "choose another task"
        )


def _check_side(shards: StateShards, options: SourceOptions) -> None:
    """Raise InvalidInputError if states are to be followed by logits and are not, or are without its being said."""
    if bool(shards.encoder.side_logits) != options.side_logits:
        there = "states followed by logits", "states alone"
        expected, got = there if options.side_logits else reversed(there)
        raise InvalidInputError(f"{shards.folder}: expected {expected}, got {got}; choose other side inputs")


def _check_background(options: SourceOptions, class_names: Sequence[str]) -> None:
    """Raise InvalidInputError if the background is none of the classes, before hours of encoding."""
    if options.background is not None and class_names:
        background_number(options.background, class_names)


def _check_named(options: SourceOptions) -> None:
    """Raise InvalidInputError if an encoder is required that lies in a folder which nobody has named."""
    known = options.required
    if known is None or options.encoder is not None or known.name == DEFAULT_ENCODER:
        return
    if known.digest:
        raise InvalidInputError(
            f"encoder: expected the folder of {known.name}, which the memory layer was trained with, got none; the "
            "digits begin the digest of its files: name its folder",
            code=Code.ENCODER_UNNAMED,
        )
    raise InvalidInputError(
        f"encoder: expected token states of {known.name}, which the memory layer was trained with, got texts; "
        "compute their states by that network"
    )


def _encoded(checked: CheckedTexts, encoder: TextEncoder, resources: Resources) -> StateShards:
    from venn_admit.layer.encoders.encoding import encode

    texts, summary, class_names = checked.file, checked.summary, checked.class_names
    labelled = "documents with several labels" if checked.several_labels else texts.kind
    source = _source(labelled, summary.digest, class_names, encoder.identity)
    folder, display = resources.folder / source[:32], resources.display
    with _to_fill(folder, texts.path, display) as is_missing:
        if is_missing:
            writer = ShardWriter(
                folder,
                kind=texts.kind,
                width=encoder.width,
                class_names=class_names,
                encoder=encoder.identity,
                source=source,
                several_labels=checked.several_labels,
                memory_budget=texts.memory_budget,
            )
            with writer as shards:
                display.show(f"Encoding {texts.path.name}", summary.documents)
                display.advance(shards.written)
                documents = islice(texts.documents(class_names), shards.written, None)
                for document in encode(documents, encoder, memory_budget=texts.memory_budget):
                    shards.append(document)
                    display.advance(1)
    display.show(f"Checking the states of {texts.path.name}")
    return StateShards(folder, texts.path)


def _converted(path: Path, options: SourceOptions, resources: Resources) -> StateShards:
    resources.display.show(f"Reading {path.name}")
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    required = OWN_NETWORK if options.required is None else options.required.name
    logits = side_logit_count(path, memory_budget=resources.memory_budget) if options.side_logits else 0
    identity = EncoderIdentity(name=options.encoder or required, side_logits=logits)
    source = _source(options.kind, content, options.class_names, identity)
    # The name is no part of the source, by which a training knows its data: that lies in its documents, ids and all.
    key = source if has_ids(path, memory_budget=resources.memory_budget) else _digest([source, path.stem])
    folder = resources.folder / key[:32]
    with _to_fill(folder, path, resources.display) as is_missing:
        if is_missing:
            convert_states(
                path,
                folder,
                kind=options.kind,
                class_names=options.class_names,
                encoder=identity,
                source=source,
                memory_budget=resources.memory_budget,
            )
    return StateShards(folder, path)


@contextmanager
def _to_fill(folder: Path, path: Path, display: Display) -> Iterator[bool]:
    """Hold the lock of a folder of shards; yield whether it is still to be filled."""
    if (folder / INDEX_NAME).exists():
        yield False
        return
    waiting = f"Waiting for another run, which computes the states of {path.name}"
    with locked(folder.with_suffix(".lock"), lambda: display.show(waiting)):
        yield not (folder / INDEX_NAME).exists()


@lru_cache(maxsize=1)
def _loaded(name: str, layers: tuple[int, ...], max_tokens: int | None) -> TextEncoder:
    """One encoder is kept: a command may encode several files."""
    return load_encoder(name, layers=layers, max_tokens=max_tokens)


def _source(labelled: str, content: str, class_names: Sequence[str], identity: EncoderIdentity) -> str:
    return _digest([labelled, content, list(class_names), identity.model_dump(mode="json")])


def _digest(described: list[Any]) -> str:
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def classes_found(path: Path, summary: TextSummary) -> tuple[str, ...]:
    """Return the classes that the labels of a file name, in order; InvalidInputError if they are not usable."""
    names = class_names_of(summary.labels)
    if not 2 <= len(names) <= MOST_CLASSES:
        shown = ", ".join(map(repr, names[:5])) or "none"
        most, remedy = f"{MOST_CLASSES:,} classes", "name the column of labels, or the classes"
        if summary.several_labels:
            most, remedy = f"{MOST_LABELS} labels in all", "for a single one, give each text one of two classes instead"
        raise InvalidInputError(f"{path}: labels: expected 2 to {most}, got {len(names):,} ({shown}); {remedy}")
    check_class_names(names)
    return names
