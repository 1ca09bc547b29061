"""`python -m benchmarks.approximation`: how near the KNN comes to a memory layer's network, on generated messages.

For documents: which of three teams should answer a message, as in `examples/messages`, but more of them and of another
seed. For tokens: which words of a message are about billing, learnt from labels of messages alone, and evaluated by
labels of words. Both print accuracy and F0.5 of network and KNN, how often the two agree, and the partitions by q and
by d; by token also F0.5 of as many tokens at random as are detected. The encoder takes most of the time; `--train`,
`--held-out` and `--test` are numbers of messages. If network and KNN differ by more than a point, the exit status is 1.
"""

import csv
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console

from examples.make_messages import CLOSINGS, CONCERNS, DAYS, OPENINGS, PRODUCTS, VAGUE, write
from venn_admit.cli.tables.layer_tables import print_evaluation
from venn_admit.cli.waiting import Showing
from venn_admit.flows.extraction.evaluate import KnnSources, evaluate_states, levels_of
from venn_admit.flows.extraction.options import SourceOptions
from venn_admit.flows.extraction.states import OpenedStates, Resources, open_states
from venn_admit.flows.extraction.train import train_layer
from venn_admit.layer.model import LayerModel
from venn_admit.layer.settings import LayerForm, LayerSettings
from venn_admit.layer.states.index import Kind

SEED = 21
NEIGHBOURS = 25
BUDGET = 1 << 30
SUBJECT, OTHER = "billing", "other"
MOST_POINTS = 1.0
"""How far the accuracies of network and KNN may differ, as the source finds."""


class _Files:
    """Folders for one task, and what is read from its files."""

    def __init__(self, folder: Path, display: Showing, class_names: tuple[str, ...], layer: int | None) -> None:
        self._folder, self._class_names = folder, class_names
        self._resources = Resources(folder, BUDGET, display)
        self._layers = () if layer is None else (layer,)

    def opened(self, name: str) -> OpenedStates:
        path = self._folder / name
        kind: Kind = "token" if path.suffix == ".conll" else "document"
        options = SourceOptions(kind=kind, class_names=self._class_names, layers=self._layers)
        return open_states(path, options, self._resources)

    def report(self, settings: LayerSettings, test: str) -> bool:
        """Train on `train.csv`, fit on `held-out.csv`, and print the evaluation of a file.

        Returns whether the KNN is as often right as the network, within `MOST_POINTS`, at every level.
        """
        training = self.opened("train.csv")
        model: LayerModel = train_layer(training, settings, self._folder / "model", self._resources).model
        states = self.opened(test)
        found = evaluate_states(
            model,
            states,
            levels_of(model, states.shards, None),
            KnnSources(training, self.opened("held-out.csv"), NEIGHBOURS),
            self._resources,
        )
        differences = []
        for each in found:
            print_evaluation(model.class_names, each)
            measures = each.found
            for one in measures.evidence:
                if one.detected:
                    shown = f"{one.detected:,} tokens at random, as {model.class_names[one.label]}"
                    Console().print(
                        f"{shown}: F0.5 {one.f_half_at_random:.3f}; those that are evidence {one.f_half:.3f}."
                    )
            if measures.network is not None and measures.knn is not None:
                shares = [one.accuracy.tallies.overall.share for one in (measures.network, measures.knn)]
                differences.append(100 * (shares[1] - shares[0]))
                Console().print(f"Level {measures.level}: KNN less network {differences[-1]:+.2f} points.")
        return all(abs(difference) <= MOST_POINTS for difference in differences)


def write_words(folder: Path, sizes: dict[str, int]) -> None:
    """Write messages whose words are labelled, each file as texts labelled as a whole and as words in columns."""
    generator = random.Random(SEED)
    seen: set[str] = set()
    for name, size in sizes.items():
        with (
            (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as texts,
            (folder / f"{name}.conll").open("w", encoding="utf-8") as words,
        ):
            rows = csv.writer(texts, lineterminator="\n")
            rows.writerow(("id", "text", "label"))
            written = 0
            while written < size:
                labelled = _labelled_words(generator)
                text = " ".join(word for word, _ in labelled)
                if text in seen:
                    continue
                seen.add(text)
                label = SUBJECT if any(one == SUBJECT for _, one in labelled) else OTHER
                rows.writerow((f"{name}-{written}", text, label))
                words.write(f"# id = {name}-{written}\n" + "".join(f"{word}\t{one}\n" for word, one in labelled) + "\n")
                written += 1


def _labelled_words(generator: random.Random) -> list[tuple[str, str]]:
    """A message of one or two parts, word by word; words of a concern of billing are labelled so."""
    others = [concern for team, concerns in CONCERNS.items() if team != SUBJECT for concern in concerns]
    parts = [(generator.choice([*others, *VAGUE]), OTHER) for _ in range(generator.randrange(1, 3))]
    if generator.random() < 0.5:
        parts[generator.randrange(len(parts))] = (generator.choice(CONCERNS[SUBJECT]), SUBJECT)
    joined = [(generator.choice(OPENINGS), OTHER), *parts, (generator.choice(CLOSINGS), OTHER)]
    filled = {"product": generator.choice(PRODUCTS), "day": generator.choice(DAYS)}
    numbers = {"number": generator.randrange(2, 30), "order": generator.randrange(10_000, 99_999)}
    return [(word, label) for text, label in joined for word in text.format(**filled, **numbers).split()]


@contextmanager
def _part(title: str) -> Iterator[None]:
    console = Console()
    console.print(f"\n[bold]{title}[/bold]")
    start = time.perf_counter()
    yield
    console.print(f"{time.perf_counter() - start:,.0f} s")


def main(
    train: int = 3000,
    held_out: int = 3000,
    test: int = 6000,
    layer: int | None = None,
    tokens: bool = True,
    documents: bool = True,
) -> None:
    """Print both evaluations; the exit status is 1 if network and KNN differ by more than `MOST_POINTS`.

    Args:
        train: Messages to train on.
        held_out: Messages to fit the KNN on.
        test: Messages to evaluate; a quarter as many by token.
        layer: The layer of the encoder whose states are taken; by default the last.
        tokens: Whether to evaluate by token.
        documents: Whether to evaluate by document.
    """
    with tempfile.TemporaryDirectory() as folder, Showing() as display:
        by_document, by_token = Path(folder) / "documents", Path(folder) / "tokens"
        by_token.mkdir()
        are_near = []
        if documents:
            with _part("Which team answers: labels of messages"):
                write(by_document, SEED, {"train": train, "held-out": held_out, "test": test})
                settings = LayerSettings(LayerForm.DOCUMENT)
                are_near.append(_Files(by_document, display, tuple(CONCERNS), layer).report(settings, "test.csv"))
        if tokens:
            with _part("Which words are about billing: labels of messages for training, of words for evaluation"):
                write_words(by_token, {"train": train, "held-out": held_out, "test": test // 4})
                settings = LayerSettings(LayerForm.DOCUMENT, background=1)
                are_near.append(_Files(by_token, display, (SUBJECT, OTHER), layer).report(settings, "test.conll"))
    if not all(are_near):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
