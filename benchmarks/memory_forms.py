"""`python -m benchmarks.memory_forms`: the forms of a memory layer for documents, side by side.

Which words of generated messages are about billing, learnt from labels of messages alone, as in `approximation`:
accuracy by message, and what is detected by word. Which team should answer a message of `examples/messages`: accuracy.
Figures are means over `--seeds` networks on the same messages; the encoder's `--layer` is the last by default.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.approximation import BUDGET, OTHER, SUBJECT, write_words
from venn_admit.cli.waiting import Showing
from venn_admit.flows.extraction.options import SourceOptions
from venn_admit.flows.extraction.states import OpenedStates, Resources, open_states
from venn_admit.flows.extraction.train import train_layer
from venn_admit.layer.evaluation import evaluate_layer
from venn_admit.layer.model import LayerModel
from venn_admit.layer.settings import LayerForm, LayerSettings
from venn_admit.layer.states.reader import StateShards

MESSAGES = Path(__file__).parents[1] / "examples" / "messages"
SIZES = {"train": 800, "test": 400}
FORMS = {
    "document": LayerSettings(LayerForm.DOCUMENT),
    "two-layers": LayerSettings(LayerForm.TWO_LAYERS),
    "two-layers, in phases": LayerSettings(LayerForm.TWO_LAYERS, min_max_epochs=50),
}
COLUMNS = ("form", "messages", "words: F0.5", "precision", "recall", "teams")


class _Tasks:
    """What is trained on and evaluated."""

    def __init__(self, folder: Path, layers: tuple[int, ...], display: Showing) -> None:
        self._resources = Resources(folder, BUDGET, display)
        words = SourceOptions(kind="document", class_names=(SUBJECT, OTHER), layers=layers)
        teams = SourceOptions(kind="document", layers=layers)
        write_words(folder, SIZES)
        self._words = self._opened(folder / "train.csv", words)
        self._test_words = self._opened(folder / "test.conll", replace(words, kind="token"))
        self._teams = self._opened(MESSAGES / "train.csv", teams)
        self._test_teams = self._opened(MESSAGES / "test.csv", teams)

    def _opened(self, path: Path, options: SourceOptions) -> OpenedStates:
        return open_states(path, options, self._resources)

    def _trained(self, states: OpenedStates, settings: LayerSettings) -> LayerModel:
        with tempfile.TemporaryDirectory() as folder:
            return train_layer(states, settings, Path(folder) / "model", self._resources).model

    def figures(self, settings: LayerSettings) -> Iterator[float]:
        """Yield the figures of one network, in the order of the columns."""
        model = self._trained(self._words, replace(settings, background=1))
        yield _accuracy(model, self._test_words.shards)
        found = evaluate_layer(model, self._test_words.shards, level="token", memory_budget=BUDGET).evidence[0]
        yield from (found.f_half, found.precision, found.recall)
        yield _accuracy(self._trained(self._teams, settings), self._test_teams.shards)


def _accuracy(model: LayerModel, shards: StateShards) -> float:
    network = evaluate_layer(model, shards, level="document", memory_budget=BUDGET).network
    assert network is not None, "the messages are labelled"
    return network.accuracy.tallies.overall.share


def main(seeds: int = 2, layer: int | None = None) -> None:
    """Print a row for each form."""
    table = Table(*COLUMNS)
    with tempfile.TemporaryDirectory() as folder, Showing() as display:
        tasks = _Tasks(Path(folder), () if layer is None else (layer,), display)
        for name, settings in FORMS.items():
            runs = [tuple(tasks.figures(replace(settings, seed=seed))) for seed in range(seeds)]
            table.add_row(name, *(f"{fmean(figures):.3f}" for figures in zip(*runs, strict=True)))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
