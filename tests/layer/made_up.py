"""Made-up token states whose token labels are known, and layers with parameters drawn at random."""

from pathlib import Path
from typing import Any

import numpy as np

from venn_admit.core.types import Float32Array, IntArray
from venn_admit.layer.model import LayerModel
from venn_admit.layer.settings import LayerForm, LayerSettings
from venn_admit.layer.states.index import NOT_A_WORD, EncoderIdentity, Kind, StateDocument
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.states.writer import ShardWriter

WIDTH = 16
ENCODER = EncoderIdentity(name="made up")


def draw_model(
    settings: LayerSettings,
    *,
    width: int = WIDTH,
    class_count: int = 2,
    seed: int = 0,
    encoder: EncoderIdentity = ENCODER,
) -> LayerModel:
    """A model whose parameters are drawn, not trained."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> Float32Array:
        return rng.normal(size=shape).astype(np.float32)

    shapes = settings.parameter_shapes(width=width, class_count=class_count, symbol_count=0)
    parameters: dict[str, Any] = {name: draw(*shape) for name, shape in shapes.items()}
    return LayerModel(
        settings=settings,
        class_names=tuple(f"class {number}" for number in range(class_count)),
        encoder=encoder,
        **parameters,
    )


def draw_documents(
    count: int,
    *,
    kind: Kind = "document",
    class_count: int = 2,
    background: int | None = None,
    seed: int = 0,
    noise: float = 0.6,
) -> list[StateDocument]:
    """Documents of noise, in which some tokens lie in the direction of the document's class; none for the background.

    With kind "token" these tokens have the document's class as their label, others the background, or -1 without one,
    and every fifth token is no word. The same documents come with either kind. With a noise of 1.2, a layer errs on
    some documents in a hundred.
    """
    rng = np.random.default_rng(seed)
    directions = np.random.default_rng(99).normal(size=(class_count, WIDTH))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    documents = []
    for number in range(count):
        label, length = int(rng.integers(class_count)), int(rng.integers(3, 25))
        states = rng.normal(scale=noise, size=(length, WIDTH))
        token_labels = np.full(length, -1 if background is None else background)
        if label != background:
            evidence = rng.random(length) < 0.1
            evidence[rng.integers(length)] = True
            states[evidence] += 4 * directions[label]
            token_labels[evidence] = label
        token_labels[4::5] = NOT_A_WORD
        documents.append(
            StateDocument(
                external_id=f"made up {number}",
                states=states.astype(np.float32),
                label=label if kind == "document" else -1,
                token_labels=token_labels if kind == "token" else None,
                tokens=tuple(f"t{place}" for place in range(length)),
                attributes={"number": number},
            )
        )
    return documents


def write_states(
    folder: Path, documents: list[StateDocument], *, class_count: int = 2, encoder: EncoderIdentity = ENCODER
) -> StateShards:
    """Write documents in several shards, and open them."""
    kind: Kind = "document" if documents[0].token_labels is None else "token"
    names = tuple(f"class {number}" for number in range(class_count))
    with ShardWriter(
        folder, kind=kind, width=WIDTH, class_names=names, encoder=encoder, dtype="float32", memory_budget=1 << 20
    ) as writer:
        for document in documents:
            writer.append(document)
    return StateShards(folder)


def lengths_of(documents: list[StateDocument]) -> IntArray:
    return np.array([len(document.states) for document in documents])


SMALL = LayerSettings(LayerForm.DOCUMENT, filters=12, max_epochs=4, learning_rate=0.01, batch_tokens=256)
"""Trains in a second."""
