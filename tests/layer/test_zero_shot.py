"""Words are found by a layer that learnt from labels of whole messages alone."""

from pathlib import Path

import pytest

from benchmarks.approximation import OTHER, SUBJECT, write_words
from tests.flows.test_extraction_states import Seen
from venn_admit.flows.extraction.options import SourceOptions
from venn_admit.flows.extraction.states import Resources, open_states
from venn_admit.layer.evaluation import evaluate_layer
from venn_admit.layer.settings import LayerForm, LayerSettings
from venn_admit.layer.states.index import Kind
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.training import train

BUDGET = 256 << 20


@pytest.mark.slow
def test_words_are_found_from_labels_of_messages(tmp_path: Path) -> None:
    """Chance is what detecting every word has, or as many words at random as are detected."""
    write_words(tmp_path, {"train": 600, "test": 100})

    def opened(name: str, kind: Kind) -> StateShards:
        options = SourceOptions(kind=kind, class_names=(SUBJECT, OTHER))
        return open_states(tmp_path / name, options, Resources(tmp_path, BUDGET, Seen())).shards

    settings = LayerSettings(LayerForm.DOCUMENT, background=1, max_epochs=8)
    shards = opened("train.csv", "document")
    model = train(shards, settings, tmp_path / "model", progress=lambda _: None, memory_budget=BUDGET).model
    found = evaluate_layer(model, opened("test.conll", "token"), level="token", memory_budget=BUDGET).evidence[0]
    assert found.precision > 0.9
    assert found.f_half > found.f_half_of_all + 0.05
    assert found.f_half > 3 * found.f_half_at_random
