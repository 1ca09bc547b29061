"""The output of a stored memory layer for a document: exemplar vectors, logits, and contributions of tokens.

Sources: as `layer` and `losses`, which compute the same in torch for mini-batches. Here each document is computed
alone, in float64, and rounded to float32 at the end, so that it has the same bits whatever else is computed with it: an
exemplar that is extracted again equals the one that is stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from venn_admit.core.types import BoolArray, Float32Array, FloatArray
from venn_admit.errors import InvalidInputError
from venn_admit.layer.contributions import Contributions
from venn_admit.layer.model import LayerModel
from venn_admit.layer.settings import LayerForm
from venn_admit.layer.states.index import Kind
from venn_admit.layer.symbols import no_symbols, symbol_numbers


@dataclass(frozen=True, slots=True, eq=False)
class TokenContributions:
    """How the logits of a document come about, by token.

    Attributes:
        tokens: T texts, or none if they are unknown.
        contributions: (T, C) float64. With the intercept they add up to the logits: contributions.sum(0) + intercept.
            With two linear layers they come from the one that the logits come from, scores from the other.
        intercept: (C,) float64, the part of the logits that belongs to no token.
        scores: (T, C) float64, the local score of each class at each token: v plus the part of V p that sits there,
            less the same for the background class if there is one.
        detected: (T, C) bool, whether the token is evidence for the class: its score exceeds 0; never the background.
        representative: The token that stands for the document: the first with the largest score of the predicted class.
        predicted: argmax f; ties go to the lower class.
    """

    tokens: tuple[str, ...]
    contributions: FloatArray
    intercept: FloatArray
    scores: FloatArray
    detected: BoolArray
    representative: int
    logits: FloatArray
    predicted: int


@dataclass(frozen=True, slots=True, eq=False)
class Exemplars:
    """Exemplars of one document: its n tokens, or the document itself with n = 1.

    Attributes:
        vectors: (n, D) float32, r.
        logits: (n, C) float32, f.
    """

    vectors: Float32Array
    logits: Float32Array


def exemplars_of(
    model: LayerModel, states: npt.NDArray[np.floating], level: Kind | None = None, tokens: Sequence[str] = ()
) -> Exemplars:
    """Return the exemplars of a document.

    r is g_t for a token: its filter applications, before ReLU (Schmaltz 2021). For a document it is the maximum of ReLU
    of these over the tokens, followed by g of the representative token if the settings say so. The logits of a token of
    a layer for documents are its local scores, as in the source's network for grammar.

    Args:
        states: (T, H), of its tokens, finite.
        level: What an exemplar is; None: what it is for the layer. A layer for documents has tokens, too.
        tokens: T texts, or none; a layer that takes symbols needs them.

    Raises:
        InvalidInputError: The states have another width than the model's, the texts that it needs are missing, or a
            layer for tokens was asked for documents.
    """
    level = level_of(model, level)
    applications = _applications(model, states, tokens)  # (T, M)
    if model.settings.form is LayerForm.LINEAR:
        return _rounded(applications, applications @ model.exact[1] + model.head_bias)
    parts = _decompose(model, applications)
    if level == "token":
        return _rounded(applications, parts.scores)
    return _document_exemplar(model, applications, parts)


def level_of(model: LayerModel, level: Kind | None) -> Kind:
    """Return what an exemplar is.

    Raises:
        InvalidInputError: The exemplars of the layer are tokens, and documents were asked for.
    """
    own = model.settings.form.kind
    if level == "document" and own == "token":
        raise InvalidInputError(
            f"level: expected token, because the exemplars of a memory layer of form {model.settings.form} are tokens, "
            "got document; train a memory layer for documents"
        )
    return level or own


def exemplar_with_contributions(
    model: LayerModel, states: npt.NDArray[np.floating], tokens: Sequence[str] = ()
) -> tuple[Exemplars, TokenContributions]:
    """Return the exemplar of a document, and what each token contributes to its logits.

    f = V p + v + max_t s_t (`layer.document_logits`). A filter belongs to the token where it is largest, so V p is a
    sum over tokens; the largest local score of a class belongs to its token. What is left, 2 v, is the intercept. With
    two linear layers f = U p + u, which is a sum over tokens with u as intercept.

    Args:
        states: (T, H), of the document's tokens, finite.

    Raises:
        InvalidInputError: The states have another width than the model's, the texts that it needs are missing, or its
            exemplars are tokens.
    """
    require_documents(model)
    applications = _applications(model, states, tokens)
    parts = _decompose(model, applications)
    return _document_exemplar(model, applications, parts), _contributions(model, parts, tokens)


def contributions_to_margin(model: LayerModel, found: TokenContributions) -> Contributions:
    """Return what each token contributes to the margin of the predicted class over the runner-up."""
    first = found.predicted
    second = max((number for number in range(len(found.logits)) if number != first), key=found.logits.__getitem__)
    return Contributions.of_tokens(
        model.class_names[first],
        model.class_names[second],
        float(found.intercept[first] - found.intercept[second]),
        found.contributions[:, first] - found.contributions[:, second],
        found.tokens,
    )


def require_documents(model: LayerModel) -> None:
    """Check that the exemplars of a layer are documents, whose logits its tokens carry."""
    if model.settings.form.kind == "token":
        raise InvalidInputError(
            f"expected a memory layer whose exemplars are documents, got one of form {model.settings.form}; "
            "the logits of a token are its own"
        )


def _document_exemplar(model: LayerModel, applications: FloatArray, parts: "_Parts") -> Exemplars:
    vector = parts.pooled
    if model.settings.with_representative:
        vector = np.concatenate([vector, applications[_representative(parts)]])
    return _rounded(vector[np.newaxis], parts.logits[np.newaxis])


def _contributions(model: LayerModel, parts: "_Parts", tokens: Sequence[str]) -> TokenContributions:
    scores = _scores(model, parts)
    detected = scores > 0
    if model.settings.background is not None:
        detected[:, model.settings.background] = False
    return TokenContributions(
        tokens=tuple(tokens),
        contributions=parts.contributions,
        intercept=parts.intercept,
        scores=scores,
        detected=detected,
        representative=_representative(parts),
        logits=parts.logits,
        predicted=int(parts.logits.argmax()),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """A document decomposed: p (M,), local scores (T, C), logits f (C,), and how these add up: (T, C) and (C,)."""

    pooled: FloatArray
    scores: FloatArray
    logits: FloatArray
    contributions: FloatArray
    intercept: FloatArray


def _applications(model: LayerModel, states: npt.NDArray[np.floating], tokens: Sequence[str]) -> FloatArray:
    """The filter applications g, (T, M)."""
    if states.ndim != 2 or states.shape[1] != model.width or not len(states):
        raise InvalidInputError(
            f"expected token states of shape (T >= 1, {model.width}), got {states.shape}; "
            "use the encoder that the memory layer was trained with"
        )
    inputs = states.astype(np.float64)
    if model.settings.symbols:
        if len(tokens) != len(states):
            raise no_symbols("tokens")
        known, vectors = model.symbol_inputs
        inputs = np.concatenate([inputs, vectors[symbol_numbers(known, tokens)]], axis=1)  # (T, H + k)
    return inputs @ model.exact[0] + model.filter_bias


def _decompose(model: LayerModel, applications: FloatArray) -> _Parts:
    place = applications.argmax(axis=0)  # (M,), the first where several tokens share a maximum
    pooled = np.maximum(applications[place, np.arange(len(place))], 0.0)
    parts = pooled[:, np.newaxis] * model.exact[1]  # (M, C)
    scores = np.tile(model.head_bias.astype(np.float64), (len(applications), 1))  # (T, C)
    np.add.at(scores, place, parts)
    if model.settings.form is LayerForm.TWO_LAYERS:
        global_parts = pooled[:, np.newaxis] * model.exact_global  # (M, C)
        contributions = np.zeros_like(scores)
        np.add.at(contributions, place, global_parts)
        logits = global_parts.sum(axis=0) + model.global_bias
        return _Parts(pooled, scores, logits, contributions, model.global_bias.astype(np.float64))
    largest, classes = scores.argmax(axis=0), np.arange(scores.shape[1])  # (C,)
    logits = parts.sum(axis=0) + model.head_bias + scores[largest, classes]
    by_token = scores - model.head_bias  # (T, C)
    contributions = by_token.copy()
    contributions[largest, classes] += by_token[largest, classes]
    return _Parts(pooled, scores, logits, contributions, 2 * model.head_bias.astype(np.float64))


def _scores(model: LayerModel, parts: _Parts) -> FloatArray:
    background = model.settings.background
    return parts.scores if background is None else parts.scores - parts.scores[:, [background]]


def _representative(parts: _Parts) -> int:
    return int(parts.scores[:, parts.logits.argmax()].argmax())


def _rounded(vectors: FloatArray, logits: FloatArray) -> Exemplars:
    return Exemplars(vectors.astype(np.float32), logits.astype(np.float32))
