"""A trained memory layer, and the folder that keeps it: weights, a description, and the log of its training.

`weights.safetensors` holds the parameters, `log.json` the log, `model.json` all else, with the SHA-256 of both and a
version of its own: nothing in a folder can change without being noticed, and nothing in it is code.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import Field
from safetensors import SafetensorError
from safetensors.numpy import load, save

from venn_admit.core.types import Float32Array, FloatArray
from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import check_is_file, input_error, reading
from venn_admit.files.output.atomic import replacing, writing
from venn_admit.layer.settings import PRESENCE, LayerSettings, Phase
from venn_admit.layer.states.index import EncoderIdentity, Kind, Record, read_record

MODEL_NAME = "model.json"
WEIGHTS_NAME = "weights.safetensors"
LOG_NAME = "log.json"
_SHOWN_LABELS = 10
_ADVICE = "train it again, or copy the folder again"


@dataclass(frozen=True, slots=True)
class LayerEpoch:
    """One line of a training log; the losses are means over the labelled exemplars, weighted by class.

    Attributes:
        loss: On what is trained on, while the parameters change.
        dev_accuracy: Share of the dev split whose prediction is right, in [0, 1].
        dev_f_half: F0.5 on the dev split, the mean over the classes that occur, in [0, 1].
        phase: What was minimised, if the training has two phases, whose losses cannot be compared.
    """

    epoch: int
    loss: float
    dev_loss: float
    dev_accuracy: float
    dev_f_half: float
    phase: Phase | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the line as JSON values by name; without a phase if the training has only one."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def _nothing() -> Float32Array:
    return np.zeros((0, 0), np.float32)


@dataclass(frozen=True, eq=False)
class LayerModel:
    """A memory layer as it is stored and applied.

    Attributes:
        filter_weight: (M, H + k) float32, W; k numbers of the symbol follow a state.
        filter_bias: (M,) float32, b.
        head_weight: (C, M) float32, V.
        head_bias: (C,) float32, v.
        symbols: S texts of tokens, whose vectors it learnt; none if k = 0.
        symbol_weight: (S, k) float32, these vectors.
        global_weight: (C, M) float32, U; none without a second linear layer.
        global_bias: (C,) float32, u; none without a second linear layer.
        extractor_version: 16 hexadecimal digits, a digest of all of these. Exemplars of different versions must
            not be mixed.
    """

    settings: LayerSettings
    class_names: tuple[str, ...]
    encoder: EncoderIdentity
    filter_weight: Float32Array
    filter_bias: Float32Array
    head_weight: Float32Array
    head_bias: Float32Array
    symbols: tuple[str, ...] = ()
    symbol_weight: Float32Array = field(default_factory=_nothing)
    global_weight: Float32Array = field(default_factory=_nothing)
    global_bias: Float32Array = field(default_factory=_nothing)
    extractor_version: str = field(init=False)

    def __post_init__(self) -> None:
        """Compute the version. Weights count by their bits, the encoder by its whole identity."""
        described = {
            "settings": self.settings.as_json(),
            "class_names": list(self.class_names),
            "encoder": self.encoder.model_dump(mode="json"),
            "weights": hashlib.sha256(_packed(self)).hexdigest(),
            **({"symbols": list(self.symbols)} if self.symbols else {}),
        }
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
        object.__setattr__(self, "extractor_version", digest[:16])

    def version_at(self, level: Kind) -> str:
        """Return the version that exemplars state: that of the layer, marked if they are not what it was trained for.

        So the tokens of a layer for documents, which lie in a space of their own, never mix with its documents.
        """
        return self.extractor_version + ("" if level == self.settings.form.kind else f":{level}")

    def of_label(self, label: str | None) -> Self:
        """Return the layer of one label of several, with the classes `PRESENCE`; itself if documents have one label.

        The logit and the local scores of `absent` are 0, and it is the background, so that those of `present` are the
        label's own. Filters are the same for all labels, and the version is another for each.

        Raises:
            InvalidInputError: It does not have this label, or none was named.
        """
        several = self.settings.several_labels
        if label is None and not several:
            return self
        if not several or label not in self.class_names:
            known = ", ".join(map(repr, self.class_names[:_SHOWN_LABELS]))
            expected = f"one of the labels {known}" if several else "none with a memory layer of one label a document"
            advice = "choose one of them" if several else "leave it out"
            raise InvalidInputError(
                f"label: expected {expected}, got {'none' if label is None else repr(label)}; {advice}"
            )
        number = self.class_names.index(label)
        heads: dict[str, Any] = {
            name: np.stack([np.zeros_like(values[number]), values[number]])
            for name, values in self.parameters().items()
            if name.startswith(("head", "global"))
        }
        settings = replace(self.settings, several_labels=False, background=0)
        return replace(self, settings=settings, class_names=PRESENCE, **heads)

    def vector_length_at(self, level: Kind) -> int:
        """Return D of exemplars, which is M for tokens."""
        return self.vector_length if level == self.settings.form.kind else self.settings.filters

    def parameters(self) -> dict[str, Float32Array]:
        """Return the parameters by name."""
        shapes = self.settings.parameter_shapes(
            width=self.width, class_count=len(self.class_names), symbol_count=len(self.symbols)
        )
        return {name: getattr(self, name) for name in shapes}

    @property
    def width(self) -> int:
        """H, the length of a token state."""
        return int(self.filter_weight.shape[1]) - self.settings.symbols

    @property
    def vector_length(self) -> int:
        """D, the length of an exemplar vector."""
        return self.settings.vector_length

    @cached_property
    def exact(self) -> tuple[FloatArray, FloatArray]:
        """W transposed (H + k, M) and V transposed (M, C) in float64, in which exemplars are computed."""
        return self.filter_weight.T.astype(np.float64, order="C"), self.head_weight.T.astype(np.float64, order="C")

    @cached_property
    def exact_global(self) -> FloatArray:
        """U transposed (M, C) in float64."""
        return self.global_weight.T.astype(np.float64, order="C")

    @cached_property
    def symbol_inputs(self) -> tuple[dict[str, int], FloatArray]:
        """The number of each symbol, and the vectors in float64, (S + 1, k), with that of an unknown symbol at last."""
        numbers = {symbol: number for number, symbol in enumerate(self.symbols)}
        unknown = np.zeros((1, self.settings.symbols))
        return numbers, np.concatenate([self.symbol_weight.astype(np.float64), unknown])


class _Description(Record):
    """The content of `model.json`."""

    format: str = Field(pattern="^venn-admit memory layer$")
    version: int = Field(ge=1, le=1)
    extractor_version: str
    settings: dict[str, Any]
    class_names: tuple[str, ...] = Field(strict=False)
    encoder: EncoderIdentity
    width: int
    symbols: tuple[str, ...] = Field(default=(), strict=False)
    came_later = frozenset({"symbols"})
    training: str
    best_epoch: int
    weights_sha256: str
    log_sha256: str


def save_model(folder: Path, model: LayerModel, *, training: str, best_epoch: int, log: Sequence[LayerEpoch]) -> None:
    """Write a model to a folder; `model.json` comes last, so that the folder is complete once it is there."""
    weights = _packed(model)
    lines = json.dumps([epoch.as_json() for epoch in log], indent=2, allow_nan=False).encode() + b"\n"
    described = _Description(
        format="venn-admit memory layer",
        version=1,
        extractor_version=model.extractor_version,
        settings=model.settings.as_json(),
        class_names=model.class_names,
        encoder=model.encoder,
        width=model.width,
        symbols=model.symbols,
        training=training,
        best_epoch=best_epoch,
        weights_sha256=hashlib.sha256(weights).hexdigest(),
        log_sha256=hashlib.sha256(lines).hexdigest(),
    )
    text = described.model_dump_json(indent=2).encode() + b"\n"
    for name, content in ((WEIGHTS_NAME, weights), (LOG_NAME, lines), (MODEL_NAME, text)):
        with replacing(folder / name) as file, writing(folder / name):
            file.write(content)


def load_model(folder: Path) -> LayerModel:
    """Read a model from its folder.

    Raises:
        InvalidInputError: A file is missing, was changed, or is invalid.
    """
    return _load(folder)[0]


def load_training(folder: Path) -> tuple[LayerModel, str, int, tuple[LayerEpoch, ...]]:
    """Read a model, the digest of its settings and data, its best epoch, and the log of its training."""
    model, described = _load(folder)
    lines = json.loads(_content(folder / LOG_NAME, described.log_sha256))
    return model, described.training, described.best_epoch, tuple(LayerEpoch(**line) for line in lines)


def _load(folder: Path) -> tuple[LayerModel, _Description]:
    described = read_record(folder / MODEL_NAME, _Description, "description of a memory layer", "train it again")
    settings = LayerSettings.from_json(described.settings)
    settings.check_classes(len(described.class_names))
    path = folder / WEIGHTS_NAME
    content = _content(path, described.weights_sha256)
    with reading(path, "safetensors file", SafetensorError):
        tensors = load(content)
    shapes = settings.parameter_shapes(
        width=described.width, class_count=len(described.class_names), symbol_count=len(described.symbols)
    )
    for name, shape in shapes.items():
        found = tensors.get(name)
        if found is None or found.shape != shape or found.dtype != np.float32 or not np.isfinite(found).all():
            got = "none" if found is None else f"{found.dtype} of shape {found.shape}"
            raise input_error(path, f"tensor {name!r}", f"finite float32 of shape {shape}", got, _ADVICE)
    model = LayerModel(
        settings=settings,
        class_names=described.class_names,
        encoder=described.encoder,
        symbols=described.symbols,
        **{name: tensors[name] for name in shapes},
    )
    if model.extractor_version != described.extractor_version:
        raise input_error(
            folder / MODEL_NAME, "extractor_version", model.extractor_version, described.extractor_version, _ADVICE
        )
    return model, described


def _content(path: Path, sha256: str) -> bytes:
    check_is_file(path)
    with reading(path, "file of a memory layer"):
        content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise InvalidInputError(
            f"{path}: expected the content that {MODEL_NAME} names, SHA-256 {sha256[:16]}..., got {found[:16]}...; "
            f"the file was changed: {_ADVICE}"
        )
    return content


def _packed(model: LayerModel) -> bytes:
    """The parameters as a safetensors file."""
    return save({name: np.ascontiguousarray(values) for name, values in model.parameters().items()})
