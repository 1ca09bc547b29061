"""The memory layer on token states on disk, an epoch of training and extraction, against the bare layer in memory."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from benchmarks.data import generator
from benchmarks.measure import Measurement, compare
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.types import IntArray
from venn_admit.layer.apply import extract
from venn_admit.layer.batches import epoch_batches
from venn_admit.layer.settings import LayerForm, LayerSettings
from venn_admit.layer.states.index import EncoderIdentity, StateDocument
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.states.writer import ShardWriter
from venn_admit.layer.training import train

_WIDTH = 384
_MEAN_LENGTH = 50


def measure(large: bool) -> Iterator[Measurement]:
    token_count = 1_000_000 if large else 100_000
    for form in (LayerForm.DOCUMENT, LayerForm.LINEAR):
        with tempfile.TemporaryDirectory() as folder:
            shards = _write_states(Path(folder) / "states", token_count, form)
            yield from _of_form(Path(folder) / "layer", shards, form, turns=1 if large else 3)


def _of_form(folder: Path, shards: StateShards, form: LayerForm, turns: int) -> Iterator[Measurement]:
    settings = LayerSettings(form, filters=_WIDTH, max_epochs=1)
    parts = epoch_batches(shards.lengths, np.arange(shards.document_count), batch_tokens=2048, generator=generator())
    size = f"{shards.token_count:,} tokens of {_WIDTH}, M={_WIDTH}"
    models = []

    def ours() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        trained = train(
            shards, settings, folder, progress=lambda _: None, memory_budget=DEFAULT_MEMORY_BUDGET, threads=1
        )
        models.append(trained.model)

    yield compare(
        f"training, form {form}, one epoch",
        size,
        "filters, head and their gradients, states in memory",
        ours,
        lambda: _bare_epoch(shards.lengths, parts, form),
        turns=turns,
    )
    yield compare(
        f"extraction, form {form}",
        size,
        "the filters of all tokens, float64, states in memory",
        lambda: sum(len(batch.labels) for batch in extract(models[0], shards, memory_budget=DEFAULT_MEMORY_BUDGET)),
        lambda: _bare_filters(shards.lengths),
        turns=turns,
    )


def _bare_epoch(lengths: IntArray, parts: list[IntArray], form: LayerForm) -> None:
    """Filters, maximum, head, cross-entropy and gradients of mini-batches of the same shapes.

    No step is taken, and nothing is decomposed: there are no local scores, and so no min-max loss.
    """
    torch.set_num_threads(1)
    filters, head = torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.Linear(_WIDTH, 2)
    states = torch.randn(int(max(len(part) * lengths[part].max() for part in parts)), _WIDTH)
    for part in parts:
        longest = int(lengths[part].max())
        applied = filters(states[: len(part) * longest])  # (B T, M)
        if form is LayerForm.DOCUMENT:
            applied = applied.view(len(part), longest, _WIDTH).max(dim=1).values.relu()  # (B, M)
        logits = head(applied)
        torch.autograd.backward(cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64)))


def _bare_filters(lengths: IntArray) -> None:
    weight = generator().normal(size=(_WIDTH, _WIDTH))
    states = generator().normal(size=(int(lengths.max()), _WIDTH))
    for length in lengths.tolist():
        np.matmul(states[:length], weight)


def _write_states(folder: Path, token_count: int, form: LayerForm) -> StateShards:
    """Documents of 5 to 95 tokens, of two classes, in float16."""
    rng = generator()
    encoder = EncoderIdentity(name="drawn at random")
    with ShardWriter(folder, kind=form.kind, width=_WIDTH, class_names=("a", "b"), encoder=encoder) as writer:
        left, number = token_count, 0
        while left:
            length = min(left, int(rng.integers(5, 2 * _MEAN_LENGTH - 4)))
            label = int(rng.integers(2))
            states = rng.normal(label * 0.1, 1.0, (length, _WIDTH)).astype(np.float32)
            labels = None if form is LayerForm.DOCUMENT else np.full(length, label)
            given = label if form is LayerForm.DOCUMENT else -1
            writer.append(StateDocument(f"d{number}", states, given, labels, (), {}))
            left, number = left - length, number + 1
    return StateShards(folder)
