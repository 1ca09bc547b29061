"""How a memory layer is built and trained. No other module needs torch to know it."""

import math
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Literal, Self

from venn_admit.errors import InvalidInputError

DEFAULT_FILTERS, DEFAULT_EPOCHS, DEFAULT_PATIENCE = 384, 50, 5
DEFAULT_LEARNING_RATE, DEFAULT_MIN_MAX_WEIGHT = 0.001, 1.0
DEFAULT_SYMBOL_LENGTH = 10
_SEED_LIMIT = 1 << 63
_CAME_LATER = frozenset({"symbols", "min_max_epochs", "several_labels"})
PRESENCE = ("absent", "present")
"""The classes of one label, if documents have several."""

Phase = Literal["cross-entropy", "min-max"]
"""What is minimised in a training that has two phases, one after the other."""


class LayerForm(StrEnum):
    """What an exemplar is, and how its logits come about; docs/explanation/memory-layer.md has the formulas.

    DOCUMENT: an exemplar is a document; ReLU, maximum over the tokens, linear head.
    TWO_LAYERS: the same with two linear layers over the maxima: one for the logits, one for the local scores of tokens
    (the source's network for documents).
    LINEAR: an exemplar is a token; a linear head over its filters alone (the source's network for proteins).
    DECOMPOSED: an exemplar is a token; its logits are its part in the head over the maxima of its document (the
    source's network for grammar).
    """

    DOCUMENT = "document"
    TWO_LAYERS = "two-layers"
    LINEAR = "linear"
    DECOMPOSED = "decomposed"

    @property
    def kind(self) -> Literal["document", "token"]:
        """What must be labelled for training: documents or tokens."""
        return "document" if self in {LayerForm.DOCUMENT, LayerForm.TWO_LAYERS} else "token"


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """The settings of a memory layer. The same settings and data give the same layer, bit for bit, on one thread.

    Attributes:
        filters: M >= 1, the number of filters, and so the length of an exemplar vector. The source has 1,000.
        with_representative: Whether the vector of a document is followed by the filters of its representative token,
            for 2 M numbers in all. Documents only.
        background: A class that no token is evidence for, such as "no error": other classes must then exceed it at a
            token to be detected there. None if every class has evidence of its own. Documents only.
        min_max_weight: >= 0, the weight of the min-max loss beside the cross-entropy; 0 leaves it out. Documents only.
            Above 0 with two linear layers, whose local scores are trained by nothing else.
        class_weights: (C,) > 0, the weight of a class in the loss; "balanced" for weights in inverse proportion to the
            class's frequency in training, with a mean of 1 over the examples; None for 1 throughout.
        learning_rate: > 0, of Adam.
        max_epochs: >= 1.
        patience: >= 1. Training stops after this many epochs without a lower loss on the dev split.
        batch_tokens: >= 1. A mini-batch holds documents of similar length with at most this many tokens together, or
            one longer document.
        dev_share: In (0, 1), the expected share of documents that are not trained on, but choose the epoch.
        seed: In [-2**63, 2**63): of the dev split, of the start and of the order of mini-batches.
        symbols: k >= 0, the length of a learnt vector for each text that a token can have, which follows the token's
            state; 0 for none. The source has 10, for residues of proteins.
        min_max_epochs: >= 0. Above 0, training has two phases: at most `max_epochs` by the cross-entropy alone, then at
            most this many in which the filters and local scores learn by the min-max loss alone. 0: both losses at
            once. Two linear layers only: the logits of one would be lost.
        several_labels: Whether a document has any number of labels. Each label then has one logit, that of its
            presence, and the cross-entropy is the mean over labels of the binary one. Follows from the data.
    """

    form: LayerForm
    filters: int = DEFAULT_FILTERS
    with_representative: bool = False
    background: int | None = None
    min_max_weight: float = DEFAULT_MIN_MAX_WEIGHT
    class_weights: tuple[float, ...] | Literal["balanced"] | None = None
    learning_rate: float = DEFAULT_LEARNING_RATE
    max_epochs: int = DEFAULT_EPOCHS
    patience: int = DEFAULT_PATIENCE
    batch_tokens: int = 2048
    dev_share: float = 0.1
    seed: int = 0
    symbols: int = 0
    min_max_epochs: int = 0
    several_labels: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidInputError at a value that is out of its range."""
        for name in ("filters", "max_epochs", "patience", "batch_tokens"):
            _require(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        for name in ("symbols", "min_max_epochs"):
            _require(getattr(self, name) >= 0, name, "at least 0", getattr(self, name))
        rate, weight = self.learning_rate, self.min_max_weight
        _require(math.isfinite(rate) and rate > 0, "learning_rate", "a number above 0", rate)
        _require(math.isfinite(weight) and weight >= 0, "min_max_weight", "a number of at least 0", weight)
        _require(0 < self.dev_share < 1, "dev_share", "a share above 0 and below 1", self.dev_share)
        _require(-_SEED_LIMIT <= self.seed < _SEED_LIMIT, "seed", "a number in [-2**63, 2**63)", self.seed)
        if self.form.kind == "token":
            for name in ("with_representative", "background"):
                given = getattr(self, name)
                _require(given is None or given is False, name, "none, because exemplars are tokens", given)
        if self.several_labels:
            _require(self.form.kind == "document", "labels", "one of each token", "several")
            none = "none, because documents have several labels"
            _require(self.background is None, "background", none, "a class")
            option = "balanced" if self.class_weights == "balanced" else "class_weights"
            _require(self.class_weights is None, option, none, self.class_weights)
        if self.form is LayerForm.TWO_LAYERS:
            _require(weight > 0, "min_max_weight", "a number above 0, which trains the local scores", weight)
        else:
            none = f"0 without two linear layers, as form {LayerForm.TWO_LAYERS} has them"
            _require(not self.min_max_epochs, "min_max_epochs", none, self.min_max_epochs)
        weights = self.class_weights
        if isinstance(weights, tuple):
            right = all(math.isfinite(value) and value > 0 for value in weights)
            _require(right, "class_weights", "numbers above 0", weights)
        else:
            _require(weights in {None, "balanced"}, "class_weights", "numbers, 'balanced' or none", weights)

    @property
    def vector_length(self) -> int:
        """D, the length of an exemplar vector."""
        return 2 * self.filters if self.with_representative else self.filters

    @property
    def phases(self) -> tuple[tuple[Phase | None, int], ...]:
        """The phases of training, each with the most epochs that it has; None for both losses at once."""
        if not self.min_max_epochs:
            return ((None, self.max_epochs),)
        return (("cross-entropy", self.max_epochs), ("min-max", self.min_max_epochs))

    def parameter_shapes(self, *, width: int, class_count: int, symbol_count: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter by name, in the order in which their start is drawn.

        Args:
            width: H, the length of a token state.
            symbol_count: S; 0 if the layer takes no symbols.
        """
        shapes: dict[str, tuple[int, ...]] = {
            "filter_weight": (self.filters, width + self.symbols),
            "filter_bias": (self.filters,),
            "head_weight": (class_count, self.filters),
            "head_bias": (class_count,),
        }
        if self.form is LayerForm.TWO_LAYERS:
            shapes |= {"global_weight": (class_count, self.filters), "global_bias": (class_count,)}
        return shapes | ({"symbol_weight": (symbol_count, self.symbols)} if self.symbols else {})

    def check_classes(self, class_count: int) -> None:
        """Check what is said of single classes."""
        _require(class_count >= 2, "classes", "at least 2", class_count)
        if isinstance(self.class_weights, tuple):
            given = len(self.class_weights)
            _require(given == class_count, "class_weights", f"{class_count}, one for each class", given)
        if self.background is not None:
            inside = 0 <= self.background < class_count
            _require(inside, "background", f"a class, 0..{class_count - 1}", self.background)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON values by name; fields of later versions only if set, so that digests stay."""
        values = asdict(self)
        return {name: value for name, value in values.items() if value or name not in _CAME_LATER}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Return the settings of a dictionary that `as_json` gave."""
        names = {field.name for field in fields(cls)}
        right = names - _CAME_LATER <= set(values) <= names
        _require(right, "settings", ", ".join(sorted(names)), ", ".join(map(ascii, sorted(values))))
        weights = values["class_weights"]
        try:
            form = LayerForm(values["form"])
            return cls(
                **{**values, "form": form, "class_weights": tuple(weights) if isinstance(weights, list) else weights}
            )
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"settings: expected those of a memory layer, got {error}") from error


def _require(holds: bool, name: str, expected: str, got: object) -> None:
    if not holds:
        raise InvalidInputError(f"{name}: expected {expected}, got {got}; choose another value")
