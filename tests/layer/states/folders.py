"""Folders of states for tests."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from venn_admit.layer.states.index import NOT_A_WORD, EncoderIdentity, StateDocument
from venn_admit.layer.states.writer import ShardWriter

ENCODER = EncoderIdentity(name="a network", digest="", layers=(3, 5), max_tokens=128)
CLASS_NAMES = ("no", "yes")
WIDTH = 6
# So little that a shard holds a few documents only.
SMALL_BUDGET = 8 << 10


def documents(count: int, *, labelled_tokens: bool = False, seed: int = 0) -> Iterator[StateDocument]:
    generator = np.random.default_rng(seed)
    for number in range(count):
        length = int(generator.integers(1, 20))
        states = generator.standard_normal((length, WIDTH)).astype(np.float16).astype(np.float32)
        yield StateDocument(
            external_id=f"dokument ü{number}",
            states=states,
            label=-1 if labelled_tokens else int(generator.integers(-1, 2)),
            token_labels=generator.integers(NOT_A_WORD, 2, length) if labelled_tokens else None,
            tokens=tuple(f"t{place}" for place in range(length)) if number % 2 else (),
            attributes={"text": f"text ü {number}", "rank": number},
        )


def writer(folder: Path, *, labelled_tokens: bool = False, source: str = "") -> ShardWriter:
    return ShardWriter(
        folder,
        kind="token" if labelled_tokens else "document",
        width=WIDTH,
        class_names=CLASS_NAMES,
        encoder=ENCODER,
        source=source,
        memory_budget=SMALL_BUDGET,
    )


def write(folder: Path, count: int = 40, *, labelled_tokens: bool = False) -> list[StateDocument]:
    """Write a folder of several shards, and return its documents."""
    written = list(documents(count, labelled_tokens=labelled_tokens))
    with writer(folder, labelled_tokens=labelled_tokens) as shards:
        for document in written:
            shards.append(document)
    return written
