"""What a layer takes in beside the states: logits of the network, and learnt vectors of the symbols of tokens."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.layer.made_up import ENCODER, SMALL, WIDTH, draw_model, lengths_of, write_states
from venn_admit.core.types import FloatArray
from venn_admit.errors import InvalidInputError
from venn_admit.layer.apply import extract
from venn_admit.layer.evaluation import evaluate_layer
from venn_admit.layer.layer import MemoryLayer, batch_logits
from venn_admit.layer.model import MODEL_NAME, LayerModel, load_model
from venn_admit.layer.outputs import exemplars_of
from venn_admit.layer.settings import LayerForm, LayerSettings
from venn_admit.layer.states.conversion import convert_states
from venn_admit.layer.states.index import StateDocument
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.states.side_logits import side_logit_count
from venn_admit.layer.training import Trained, TrainingProgress, train

BUDGET = 256 << 20
SYMBOLS = ("A", "C", "D")
OF_SYMBOLS = replace(SMALL, form=LayerForm.LINEAR, symbols=4, max_epochs=15)


def residues(count: int, seed: int, *, noise: float = 1.0) -> list[StateDocument]:
    """Documents of noise, whose tokens have a class that the symbol alone decides: A and D are of 0, C is of 1."""
    rng = np.random.default_rng(seed)
    documents = []
    for number in range(count):
        length = int(rng.integers(4, 20))
        symbols = rng.integers(0, 3, length)
        documents.append(
            StateDocument(
                external_id=f"chain {number}",
                states=rng.normal(scale=noise, size=(length, WIDTH)).astype(np.float32),
                label=-1,
                token_labels=(symbols == 1).astype(np.int64),
                tokens=tuple(SYMBOLS[symbol] for symbol in symbols),
                attributes={},
            )
        )
    return documents


def run(shards: StateShards, out: Path, settings: LayerSettings, **more: Any) -> Trained:
    return train(shards, settings, out, memory_budget=BUDGET, **({"progress": lambda _: None} | more))


def accuracy(model: LayerModel, shards: StateShards) -> float:
    network = evaluate_layer(model, shards, memory_budget=BUDGET).network
    assert network is not None
    return network.accuracy.tallies.overall.share


def symbol_model(form: LayerForm) -> LayerModel:
    """Drawn, with vectors of three symbols behind the states."""
    settings = LayerSettings(form, filters=7, symbols=4)
    drawn = draw_model(replace(settings, symbols=0), width=WIDTH + 4, class_count=3)
    vectors = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
    return replace(drawn, settings=settings, symbols=SYMBOLS, symbol_weight=vectors)


def loop_scores(model: LayerModel, states: FloatArray, tokens: tuple[str, ...]) -> FloatArray:
    """The logits of tokens of the linear form, in plain loops."""
    found = []
    for state, token in zip(states, tokens, strict=True):
        vector = [0.0] * 4 if token not in SYMBOLS else model.symbol_weight[SYMBOLS.index(token)].tolist()
        values = [*state.tolist(), *vector]
        filters = [
            sum(weight * value for weight, value in zip(row, values, strict=True)) + bias
            for row, bias in zip(model.filter_weight.tolist(), model.filter_bias.tolist(), strict=True)
        ]
        found.append(
            [
                sum(weight * value for weight, value in zip(row, filters, strict=True)) + bias
                for row, bias in zip(model.head_weight.tolist(), model.head_bias.tolist(), strict=True)
            ]
        )
    return np.array(found)


def test_the_vector_of_a_symbol_follows_its_state() -> None:
    model, states = symbol_model(LayerForm.LINEAR), np.random.default_rng(1).normal(size=(4, WIDTH))
    tokens = ("C", "A", "unknown", "C")
    found = exemplars_of(model, states, tokens=tokens).logits
    np.testing.assert_allclose(found, loop_scores(model, states, tokens), rtol=1e-5)
    assert model.width == WIDTH


@pytest.mark.parametrize("form", LayerForm)
def test_stored_layer_says_what_the_trained_one_does(form: LayerForm) -> None:
    model = symbol_model(form)
    documents = [
        replace(one, tokens=tuple("ACDX"[place % 4] for place in range(len(one.states)))) for one in residues(9, 0)
    ]
    layer = MemoryLayer(model.settings, width=WIDTH, class_count=3, symbol_count=3, dtype=torch.float64)
    numbers = np.concatenate([["ACDX".index(token) for token in one.tokens] for one in documents])
    with torch.no_grad():
        for name, values in layer.named_parameters():
            values.copy_(torch.from_numpy(getattr(model, name)))
        states = torch.from_numpy(np.concatenate([one.states for one in documents])).double()
        inputs = layer.inputs(states, torch.from_numpy(numbers))
        expected, _ = batch_logits(layer, inputs, torch.from_numpy(lengths_of(documents)), model.settings)
    found = np.concatenate([exemplars_of(model, one.states, tokens=one.tokens).logits for one in documents])
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-5)


def test_symbols_are_learnt(tmp_path: Path) -> None:
    """The states say nothing; .67 of the tokens are of the class that occurs more often."""
    shards, others = (
        write_states(tmp_path / "train", residues(200, 1)),
        write_states(tmp_path / "test", residues(100, 2)),
    )
    with_them = run(shards, tmp_path / "with", OF_SYMBOLS).model
    without = run(shards, tmp_path / "without", replace(OF_SYMBOLS, symbols=0)).model
    assert with_them.symbols == SYMBOLS
    assert accuracy(with_them, others) > 0.98
    assert accuracy(without, others) < 0.75


def test_a_layer_with_symbols_comes_back_as_it_was_trained(tmp_path: Path) -> None:
    shards = write_states(tmp_path / "states", residues(60, 1))
    trained = run(shards, tmp_path / "model", OF_SYMBOLS).model
    loaded = load_model(tmp_path / "model")
    assert (loaded.extractor_version, loaded.symbols, loaded.settings) == (
        trained.extractor_version,
        SYMBOLS,
        OF_SYMBOLS,
    )
    (batch,), (again,) = (list(extract(model, shards, memory_budget=BUDGET)) for model in (trained, loaded))
    assert (batch.logits == again.logits).all()
    renamed = replace(trained, symbols=("A", "C", "E"))
    assert renamed.extractor_version != trained.extractor_version
    content = (tmp_path / "model" / MODEL_NAME).read_text()
    (tmp_path / "model" / MODEL_NAME).write_text(content.replace('"D"', '"E"'))
    with pytest.raises(InvalidInputError, match="extractor_version"):
        load_model(tmp_path / "model")


def test_an_interrupted_training_with_symbols_ends_with_the_same_bits(tmp_path: Path) -> None:
    shards = write_states(tmp_path / "states", residues(60, 1))
    settings = replace(OF_SYMBOLS, max_epochs=4)
    calm = run(shards, tmp_path / "calm", settings).model

    def stop(progress: TrainingProgress) -> None:
        if progress.epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(shards, tmp_path / "stopped", settings, progress=stop)
    resumed = run(shards, tmp_path / "stopped", settings).model
    assert (resumed.symbol_weight == calm.symbol_weight).all()
    assert resumed.extractor_version == calm.extractor_version


def test_tokens_without_texts_are_refused(tmp_path: Path) -> None:
    documents = residues(60, 1)
    bare = write_states(tmp_path / "bare", [replace(one, tokens=()) for one in documents])
    with pytest.raises(InvalidInputError, match="expected the text of each token, whose symbol is an input"):
        run(bare, tmp_path / "refused", OF_SYMBOLS)
    model = run(write_states(tmp_path / "states", documents), tmp_path / "model", OF_SYMBOLS).model
    with pytest.raises(InvalidInputError, match="expected the text of each token, whose symbol is an input"):
        list(extract(model, bare, memory_budget=BUDGET))


def test_versions_and_digests_of_layers_without_side_inputs_are_those_of_before() -> None:
    settings = LayerSettings(
        LayerForm.DOCUMENT, filters=5, with_representative=True, background=0, class_weights=(1.0, 2.5), seed=-7
    )
    assert draw_model(settings).extractor_version == "57ff060eecdddb12"
    assert "symbols" not in settings.as_json()
    assert "side_logits" not in ENCODER.model_dump(mode="json")
    assert LayerSettings.from_json(settings.as_json()) == settings


LENGTHS, STATES = np.array([2, 1]), np.arange(12, dtype=np.float32).reshape(3, 4)
LOGITS = np.array([[0.5, -1.0], [2.0, 0.25], [-3.0, 1.5]])


def write(path: Path, logits: Any) -> Path:
    if path.suffix == ".npz":
        np.savez(path, states=STATES, lengths=LENGTHS, **({} if logits is None else {"token_logits": logits}))
        return path
    columns = {"states": [STATES[:2].tolist(), STATES[2:].tolist()]}
    if logits is not None:
        columns["token_logits"] = [logits[:2].tolist(), logits[2:].tolist()]
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_logits_of_a_file_follow_its_states(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"states.{ending}", LOGITS)
    assert side_logit_count(path) == 2
    for count, expected in ((2, np.hstack([STATES, LOGITS])), (0, STATES)):
        folder = tmp_path / f"{count}"
        encoder = ENCODER.model_copy(update={"side_logits": count})
        convert_states(path, folder, kind="document", class_names=("no", "yes"), encoder=encoder)
        shards = StateShards(folder)
        assert (shards.width, shards.encoder) == (4 + count, encoder)
        np.testing.assert_array_equal(np.concatenate([one.states for one in shards.documents()]), expected)
        assert [one.attributes for one in shards.documents()] == [{}, {}]


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_a_file_without_logits_is_refused(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"states.{ending}", None)
    with pytest.raises(
        InvalidInputError, match="'token_logits': expected L logits at each token, an input of the memory"
    ):
        side_logit_count(path)
    encoder = ENCODER.model_copy(update={"side_logits": 3})
    path = write(path, LOGITS)
    with pytest.raises(InvalidInputError, match=r"row 0, token_logits: expected 2 lists of 3 logits, an input of the"):
        convert_states(path, tmp_path / "shards", kind="document", class_names=("no", "yes"), encoder=encoder)
