"""Hooks on torch modules: what they store is what a file would hold, and modules are left as they were."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sqlalchemy import Engine
from sqlalchemy import text as text_of
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import venn_admit
from tests.package.networks import (
    CLASS_NAMES,
    DIMENSION,
    Cnn,
    Text,
    Texts,
    by_hand,
    collate,
    picture_loader,
    pictures,
    text_loader,
    trained,
)
from venn_admit.errors import InvalidInputError
from venn_admit.interface.hooks.modules import moved
from venn_admit.interface.hooks.pooling import pooled

TRAIN, HELD_OUT, NEW = 150, 400, 70


@pytest.fixture
def cnn() -> Cnn:
    torch.manual_seed(0)
    return Cnn()


@pytest.fixture
def text() -> Text:
    torch.manual_seed(1)
    return Text()


def create(connection: venn_admit.Connection, name: str, dimension: int = DIMENSION) -> venn_admit.Classifier:
    return connection.create(name, CLASS_NAMES, dimension=dimension, neighbours=5)


def stored(engine: Engine, classifier: venn_admit.Classifier) -> list[dict[str, Any]]:
    """Every exemplar of a classifier, to the last bit, by its id."""
    with engine.connect() as session:
        query = text_of(
            """
            SELECT external_id, document_id, split, label, attributes, network_logits, content_digest,
                vector ::real [] AS vector
            FROM venn_admit.exemplar
            INNER JOIN venn_admit.classifier ON classifier.id = exemplar.classifier_id
            LEFT JOIN venn_admit.exemplar_vector ON exemplar_id = exemplar.id
            WHERE name = :name
            ORDER BY external_id
            """
        )
        return [dict(row) for row in session.execute(query, {"name": classifier.name}).mappings()]


def set_up(classifier: venn_admit.Classifier, train: Any, held_out: Any) -> None:
    classifier.ingest(train, split="train")
    classifier.ingest(held_out)
    classifier.fit()
    classifier.calibrate(method="venn-admit", alpha="0.3", kappa=5, q_bins=[0, 1])


def refused(hooked: venn_admit.HookedBatches) -> str:
    """The message with which batches are refused."""
    with pytest.raises(venn_admit.InvalidInputError) as refusal:
        hooked.arrays()
    return str(refusal.value)


def test_what_is_stored_and_decided_is_what_files_give(
    connection: venn_admit.Connection, engine: Engine, cnn: Cnn, tmp_path: Path
) -> None:
    hooked = venn_admit.hook(trained(cnn), layer="pool")
    loaders = {name: picture_loader(count, seed) for seed, (name, count) in enumerate(COUNTS.items())}
    by_hook, by_file = create(connection, "by hook"), create(connection, "by file")
    set_up(by_hook, hooked.over(loaders["train"]), hooked.over(loaders["held-out"]))
    assert cnn.training
    files = {name: by_hand(cnn, loader, tmp_path / f"{name}.npz") for name, loader in loaders.items()}
    set_up(by_file, files["train"], files["held-out"])

    rows = stored(engine, by_hook)
    assert len(rows) == TRAIN + HELD_OUT
    assert rows == stored(engine, by_file)
    decided = by_hook.score(hooked.over(loaders["new"]))
    expected = by_file.score(files["new"])
    assert decided.num_rows == NEW
    assert decided.drop_columns("calibration").equals(expected.drop_columns("calibration"))
    assert len(set(decided["decided_class"].to_pylist())) > 1

    evaluated = by_hook.evaluate(hooked.over(loaders["new"]), source="new").to_dict()
    assert evaluated["methods"] == by_file.evaluate(files["new"], source="new").to_dict()["methods"]
    assert by_hook.ingest(hooked.over(loaders["held-out"])).new == 0  # a DataLoader can be read again
    (one,) = decided.slice(3, 1).to_pylist()
    arrays = hooked.over(loaders["new"]).arrays()
    assert by_hook.decide(arrays["vectors"][3]).lower == one["lower"]


COUNTS = {"train": TRAIN, "held-out": HELD_OUT, "new": NEW}


def test_texts_with_ids_documents_and_attributes(connection: venn_admit.Connection, engine: Engine, text: Text) -> None:
    hooked = venn_admit.hook(text, layer="encoder.body", reduce="mean")
    classifier = create(connection, "texts")
    names: dict[str, Any] = {"ids": "id", "documents": "document", "attributes": ["length"]}
    done = classifier.ingest(hooked.over(text_loader(90, 5, shuffle=True), **names), split="train")
    assert (done.rows, done.new) == (90, 90)
    rows = stored(engine, classifier)
    texts = Texts(90, 5)
    for row in rows:
        number = int(row["external_id"].rpartition("-")[2])
        assert row["label"] == texts.labels[number]
        assert (row["document_id"], row["attributes"]) == (str(number // 2), {"length": len(texts.tokens[number])})
        states = text.encoder["body"](text.embedding(torch.from_numpy(texts.tokens[number])))  # (T, D)
        np.testing.assert_allclose(row["vector"], states.mean(0).detach(), rtol=1e-4, atol=1e-6)


def test_shuffled_rows_have_the_ids_of_their_content(connection: venn_admit.Connection, cnn: Cnn) -> None:
    classifier, hooked = create(connection, "shuffled"), venn_admit.hook(cnn, layer="pool")
    single = {"batch_size": 1}  # what stands beside a row in its batch may change its last bits
    assert classifier.ingest(hooked.over(picture_loader(60, 0, **single))).new == 60
    assert classifier.ingest(hooked.over(picture_loader(60, 0, shuffle=True, **single))).new == 0
    classifier.ingest(hooked.over(picture_loader(60, 9)), split="train")
    shuffled = picture_loader(60, 0, shuffle=True)
    with pytest.raises(venn_admit.InvalidInputError, match="ids: expected some, because the DataLoader does not read"):
        classifier.score(hooked.over(shuffled))
    with pytest.raises(venn_admit.InvalidInputError, match=r"ids: expected a name, .* got values for all rows"):
        hooked.over(shuffled, ids=range(60))


def test_logits_only(connection: venn_admit.Connection, cnn: Cnn) -> None:
    classifier = connection.create("bare", CLASS_NAMES, logits_only=True)
    assert classifier.ingest(venn_admit.hook(cnn).over(picture_loader(90, 1))).new == 90
    with pytest.raises(venn_admit.InvalidInputError, match="output of layer 'pool': expected none, because") as refusal:
        classifier.ingest(venn_admit.hook(cnn, "pool").over(picture_loader(9, 1)))
    assert "dimension=D" in refusal.value.__notes__[0]


class TestNothingIsStored:
    def test_if_a_vector_is_not_finite(self, connection: venn_admit.Connection, engine: Engine, cnn: Cnn) -> None:
        given, labels = pictures(100, 3)
        given[77, 0, 4, 4] = torch.nan
        classifier = create(connection, "broken")
        loader = DataLoader(TensorDataset(given, labels), batch_size=10)
        message = r"^Cnn: row 77, output of layer 'pool'\[0\]: expected a finite number, got nan"
        with pytest.raises(venn_admit.InvalidInputError, match=message):
            classifier.ingest(venn_admit.hook(cnn, "pool").over(loader))
        assert stored(engine, classifier) == []
        assert_left_alone(cnn)

    def test_if_the_module_fails(self, connection: venn_admit.Connection, engine: Engine, cnn: Cnn) -> None:
        cnn.train()
        classifier = create(connection, "failing")
        batches = [*picture_loader(64, 0), (torch.zeros(2, 3), torch.zeros(2))]
        with pytest.raises(RuntimeError, match="input"):
            classifier.ingest(venn_admit.hook(cnn, "pool").over(batches))
        assert stored(engine, classifier) == []
        assert cnn.training
        assert_left_alone(cnn)

    @pytest.mark.parametrize(
        ("dimension", "classes", "message"),
        [
            (4, CLASS_NAMES, r"output of layer 'pool': expected shape \(n, 4\), .*, got \(32, 6\); name another layer"),
            (6, CLASS_NAMES[:2], r"Cnn: logits: expected shape \(n, 2\), a column for each class, got \(32, 3\)"),
        ],
    )
    def test_if_sizes_differ(
        self, connection: venn_admit.Connection, cnn: Cnn, dimension: int, classes: tuple[str, ...], message: str
    ) -> None:
        classifier = connection.create("sizes", classes, dimension=dimension)
        with pytest.raises(venn_admit.InvalidInputError, match=message):
            classifier.ingest(venn_admit.hook(cnn, "pool").over(picture_loader(64, 0)))

    def test_if_no_layer_is_named(self, connection: venn_admit.Connection, cnn: Cnn) -> None:
        message = r"vectors: expected shape \(n, 6\), .*, got none; name the layer: hook\(model, layer=...\)"
        with pytest.raises(venn_admit.InvalidInputError, match=message):
            create(connection, "unnamed").ingest(venn_admit.hook(cnn).over(picture_loader(9, 0)))

    def test_if_there_are_no_rows(self, connection: venn_admit.Connection, cnn: Cnn) -> None:
        classifier, hooked = create(connection, "empty"), venn_admit.hook(cnn, "pool")
        for none in (iter(()), pictures(0, 0)[0]):
            with pytest.raises(venn_admit.InvalidInputError, match="logits: expected at least one row, got 0"):
                classifier.ingest(hooked.over(none))

    def test_if_a_generator_was_read(self, connection: venn_admit.Connection, cnn: Cnn) -> None:
        classifier = create(connection, "generator")
        hooked = venn_admit.hook(cnn, "pool").over(batch for batch in picture_loader(64, 0))
        assert classifier.ingest(hooked).new == 64
        with pytest.raises(venn_admit.InvalidInputError, match="got a generator, which was; call over"):
            classifier.ingest(hooked)

    def test_if_arrays_are_given_as_well(self, connection: venn_admit.Connection, cnn: Cnn) -> None:
        hooked = venn_admit.hook(cnn, "pool").over(picture_loader(9, 0))
        with pytest.raises(venn_admit.InvalidInputError, match="got both: data and labels"):
            create(connection, "both").ingest(hooked, labels=[0] * 9)


def assert_left_alone(module: nn.Module) -> None:
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    assert not torch.is_inference_mode_enabled()


def test_modes_gradients_and_hooks_are_left_as_they_were(cnn: Cnn) -> None:
    cnn.train()
    cnn.features[1].eval()  # a frozen part
    modes = {name: part.training for name, part in cnn.named_modules()}
    hooked = venn_admit.hook(cnn, "pool").over(picture_loader(40, 0))
    one, again = hooked.arrays(), hooked.arrays()
    np.testing.assert_array_equal(one["logits"], again["logits"])  # no dropout
    assert {name: part.training for name, part in cnn.named_modules()} == modes
    assert_left_alone(cnn)
    parts = hooked.parts()
    next(parts)  # nothing is in force between two batches either
    assert cnn.training
    assert_left_alone(cnn)
    cnn(pictures(4, 0)[0]).sum().backward()  # training goes on


class Caching(nn.Module):
    """Makes a tensor in its first call, and keeps it."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(DIMENSION, 3)
        self.scale: Tensor | None = None

    def forward(self, rows: Tensor) -> Tensor:
        if self.scale is None:
            self.scale = torch.full((DIMENSION,), 0.5)
        logits: Tensor = self.head(rows * self.scale)
        return logits


def test_a_module_can_be_trained_after_its_first_call_was_a_hooked_one() -> None:
    module, rows = Caching(), torch.ones(4, DIMENSION)
    venn_admit.hook(module, "head").over(rows).arrays()
    module(rows.requires_grad_()).sum().backward()
    assert rows.grad is not None


def test_a_layer_that_is_changed_in_place_is_seen_as_it_was() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 5), nn.ReLU(inplace=True), nn.Linear(5, 3))
    rows = torch.randn(20, 4)
    found = venn_admit.hook(network, "0").over([rows]).arrays()
    np.testing.assert_array_equal(found["vectors"], network[0](rows).detach().numpy())
    assert (found["vectors"] < 0).any()
    taken = venn_admit.hook(network, network[2], take="input").over([rows]).arrays()
    np.testing.assert_array_equal(taken["vectors"], np.maximum(found["vectors"], 0))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions(connection: venn_admit.Connection, engine: Engine, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, DIMENSION), nn.Tanh(), nn.Linear(DIMENSION, 3)).to(dtype)
    rows = torch.randn(30, 4, dtype=dtype)
    classifier = create(connection, "precise")
    hooked = venn_admit.hook(network, "1")
    assert classifier.ingest(hooked.over([(rows, [0, 1, 2] * 10)], ids=lambda _: range(30)), split="train").new == 30
    expected = network[:2](rows).detach().float().numpy()
    for row in stored(engine, classifier):
        assert np.array_equal(np.float32(row["vector"]), expected[int(row["external_id"])])
    # Rows of an array of another precision are converted as the module needs them.
    assert hooked.over(rows.double().numpy(), batch_size=7).arrays()["logits"].shape == (30, 3)


def test_inputs_are_moved_to_the_module() -> None:
    place = (torch.device("meta"), torch.float16)
    found = moved({"x": [torch.zeros(2), (np.zeros(2), "kept")], "n": np.zeros(2, np.int64)}, place)
    assert found["x"][0].device.type == found["x"][1][0].device.type == found["n"].device.type == "meta"
    assert (found["x"][0].dtype, found["x"][1][0].dtype, found["n"].dtype) == (
        torch.float32,
        torch.float16,
        torch.int64,
    )
    assert found["x"][1][1] == "kept"


class Sequence(nn.Module):
    """States of a sequence, a tuple of a recurrent layer, and outputs as they are asked for."""

    def __init__(self, returned: str = "logits") -> None:
        super().__init__()
        self.rnn = nn.GRU(4, DIMENSION, batch_first=True)
        self.activation = nn.Tanh()
        self.parts = nn.ModuleList([nn.Linear(DIMENSION, 3)])
        self.returned = returned

    def forward(self, steps: Tensor) -> Any:
        states, _ = self.rnn(steps)
        logits = self.parts[0](self.activation(self.activation(states[:, -1])))
        match self.returned:
            case "tuple":
                return logits, states
            case "named":
                return {"scores": logits, "loss": logits.sum()}
            case "one":
                return logits[:, :1]
            case "flat":
                return logits[:, 0]
            case "text":
                return "no tensor"
        return logits


class TestLayers:
    @pytest.mark.parametrize(
        ("layer", "message"),
        [
            (
                "encoder.bdy",
                "Text: layer: expected the name of one of its layers, got 'encoder.bdy'; near it are 'encoder.body'",
            ),
            ("bert.body", "near it are 'encoder.body'"),
            ("xyz", "its layers are 'embedding', 'encoder', "),
            (nn.Linear(1, 1), "got a Linear; it is no part of the module"),
            ("encoder", "'encoder': expected a layer that is called in each forward pass, got none; name a layer that"),
            ("encoder.unused", "expected a layer that is called in each forward pass, got none"),
            ("encoder.body", r"expected shape \(n, D\), got \(4, \d, 6\); states of a sequence are pooled by reduce="),
        ],
    )
    def test_that_do_not_serve(self, text: Text, layer: Any, message: str) -> None:
        with pytest.raises(venn_admit.InvalidInputError, match=message):
            venn_admit.hook(text, layer).over(text_loader(4, 0)).arrays()

    def test_that_are_called_twice(self) -> None:
        message = refused(venn_admit.hook(Sequence(), "activation").over([torch.zeros(2, 5, 4)]))
        assert "expected a layer that is called once in a forward pass, got 2 calls" in message

    def test_that_map_features(self, cnn: Cnn) -> None:
        loader = picture_loader(40, 0)
        message = refused(venn_admit.hook(cnn, "features").over(loader))
        assert '(32, 6, 6, 6); a feature map is pooled by reduce="mean" or "max"' in message
        mean = venn_admit.hook(cnn, "features", reduce="mean").over(loader).arrays()["vectors"]
        pool = venn_admit.hook(cnn, "pool").over(loader).arrays()["vectors"]
        np.testing.assert_allclose(mean, pool, rtol=1e-4, atol=1e-6)
        highest = venn_admit.hook(cnn, "features", reduce="max").over(loader).arrays()["vectors"]
        assert (highest >= mean).all()

    def test_that_return_tuples(self) -> None:
        torch.manual_seed(0)
        network, steps = Sequence(), torch.randn(5, 7, 4)
        states, last = network.rnn(steps)
        first = venn_admit.hook(network, "rnn", reduce="first").over([steps]).arrays()["vectors"]
        np.testing.assert_allclose(first, states[:, 0].detach(), rtol=1e-6)
        chosen = venn_admit.hook(network, "rnn", reduce=lambda returned: returned[1][-1]).over([steps]).arrays()
        np.testing.assert_allclose(chosen["vectors"], last[-1].detach(), rtol=1e-6)
        message = refused(venn_admit.hook(network, "rnn", reduce=lambda _: 3).over([steps]))
        assert "output of layer 'rnn': expected a tensor from reduce, got an int" in message

    def test_padding_does_not_count(self, text: Text) -> None:
        batch = collate([Texts(9, 2)[row] for row in range(9)])
        lengths = batch["length"]
        assert len(set(lengths)) > 1
        states = text.encoder["body"](text.embedding(batch["input_ids"])).detach().numpy()
        for reduce, expected in {
            "first": [states[row, -length] for row, length in enumerate(lengths)],
            "max": [states[row, -length:].max(0) for row, length in enumerate(lengths)],
            "mean": [states[row, -length:].mean(0) for row, length in enumerate(lengths)],
        }.items():
            found = venn_admit.hook(text, "encoder.body", reduce=reduce).over([batch]).arrays()
            np.testing.assert_allclose(found["vectors"], expected, rtol=1e-4, atol=1e-6)
        message = refused(venn_admit.hook(text, "encoder.body", reduce="mean").over([batch], mask=lambda _: [[1]] * 9))
        assert "expected a mask of shape (9, " in message

    @pytest.mark.parametrize("reduce", ["first", "mean", "max"])
    def test_of_which_no_position_counts_are_refused(self, reduce: str) -> None:
        states, mask = torch.ones(3, 4, 2), torch.tensor([[0, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
        assert pooled(states[::2], reduce, mask[::2]).tolist() == [[1.0, 1.0]] * 2
        with pytest.raises(InvalidInputError, match="a position that counts in every row, got none in row 1"):
            pooled(states, reduce, mask)

    def test_of_a_compiled_module_are_those_of_the_module(self, cnn: Cnn) -> None:
        compiled = torch.compile(cnn, backend="eager")
        found = venn_admit.hook(compiled, "pool").over(picture_loader(40, 0)).arrays()
        expected = venn_admit.hook(cnn, "pool").over(picture_loader(40, 0)).arrays()
        np.testing.assert_array_equal(found["vectors"], expected["vectors"])


class TestLogits:
    @pytest.mark.parametrize(
        ("returned", "choice"),
        [("tuple", None), ("tuple", 0), ("named", "scores"), ("named", lambda out: out["scores"])],
    )
    def test_are_chosen(self, returned: str, choice: Any) -> None:
        torch.manual_seed(0)
        network, steps = Sequence(returned), torch.randn(5, 7, 4)
        found = venn_admit.hook(network, "rnn", reduce="mean", logits=choice).over([steps]).arrays()["logits"]
        network.returned = "logits"
        np.testing.assert_array_equal(found, network(steps).detach())

    @pytest.mark.parametrize("returned", ["one", "flat"])
    def test_of_one_output_are_two(self, returned: str) -> None:
        torch.manual_seed(0)
        network, steps = Sequence(returned), torch.randn(5, 7, 4)
        found = venn_admit.hook(network, "rnn", reduce="mean").over([steps]).arrays()["logits"]
        single = network(steps).detach().reshape(-1)
        np.testing.assert_array_equal(found, np.stack([-single / 2, single / 2], axis=1))

    @pytest.mark.parametrize(
        ("returned", "choice", "message"),
        [
            ("named", None, "logits: expected an output with the member 'logits', got a dict with 'scores', 'loss'"),
            ("text", None, "logits: expected a tensor, got a str; choose it"),
            ("tuple", 5, "logits: expected an output with the member 5, got a tuple"),
            ("flat", None, r"logits: expected shape \(n, C\), got \(2,\)"),
        ],
    )
    def test_that_are_none(self, returned: str, choice: Any, message: str) -> None:
        with pytest.raises(venn_admit.InvalidInputError, match=message):
            venn_admit.hook(Sequence(returned), logits=choice).over([torch.zeros(2, 5, 4)]).arrays()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"take": "both"}, "take: expected output or input, got 'both'"),
        ({"layer": "pool", "reduce": "sum"}, "reduce: expected a function or one of first, mean, max, got 'sum'"),
        ({"reduce": "mean"}, "reduce: expected a layer to reduce, got none"),
        ({"logits": 1.5}, "logits: expected a name, a position or a function, got a float"),
    ],
)
def test_options_that_do_not_fit(cnn: Cnn, options: dict[str, Any], message: str) -> None:
    with pytest.raises(venn_admit.InvalidInputError, match=message):
        venn_admit.hook(cnn, **options)
