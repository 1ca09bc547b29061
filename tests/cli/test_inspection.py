"""Evaluating a memory layer by document and token, inspecting documents, and what decisions show of it."""

import csv
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.program import Program
from tests.cli.test_extract import SMALL, write_texts, write_words
from tests.layer.encoders.networks import save_network
from venn_admit.layer.contributions import contributions_in, own_contributions


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reviews, and some of them word by word, with labels of the words that tell."""
    folder = tmp_path_factory.mktemp("texts")
    save_network(folder / "network")
    for seed, (name, count) in enumerate({"train": 200, "held-out": 600, "test": 100}.items(), start=1):
        write_texts(folder / f"{name}.csv", count, seed=seed)
    with (folder / "test.csv").open(newline="") as file:
        texts = [(row["id"], row["text"]) for row in csv.DictReader(file)]
    (folder / "words.conll").write_text(
        "\n\n".join(
            f"# id = {external_id}-words\n"
            + "\n".join(f"{word}\t{'good' if word in ('good', 'not') else 'bad'}" for word in text.split())
            for external_id, text in texts
        )
    )
    return folder


@pytest.fixture
def trained(program: Program, files: Path, tmp_path: Path) -> tuple[Any, ...]:
    """A model in which "bad" is the background, as the options that name it and its encoder."""
    model, network = tmp_path / "model", ("--encoder", files / "network")
    train = ("extract", "train", files / "train.csv", "--out", model, *SMALL, *network)
    refused = program(*train, "--background", "neutral")
    assert (refused.code, "background: expected one of the classes 'bad', 'good'" in refused.stderr) == (2, True)
    assert program(*train, "--background", "bad").code == 0
    return model, *network


def test_evaluate_by_document_and_by_token(program: Program, files: Path, trained: tuple[Any, ...]) -> None:
    model, *network = trained
    evaluate = ("extract", "evaluate", model)
    alone = program(*evaluate, files / "test.csv", *network, "--json").result
    assert list(alone["levels"]) == ["document"]
    found = alone["levels"]["document"]
    assert (found["points"], found["knn"], found["partitions"]) == (100, None, None)
    out = model.parent / "test.parquet"
    applied = program("extract", "apply", model, files / "test.csv", *network, "--out", out, "--json").result
    assert found["network"]["accuracy"]["share"] == applied["accuracy"]

    knn = ("--train", files / "train.csv", "--fit", files / "held-out.csv", "--k", 10)
    beside = program(*evaluate, files / "test.csv", *network, *knn, "--json").result["levels"]["document"]
    assert (beside["points"], beside["training_exemplars"], beside["fit_exemplars"]) == (100, 200, 600)
    assert beside["network"] == found["network"]
    assert sum(map(sum, beside["partitions"]["count"])) == 100
    assert sum(map(sum, beside["partitions"]["agreeing"])) == beside["agreement"]["right"]

    words = program(*evaluate, files / "words.conll", *network, "--train", files / "train.csv", "--json")
    assert words.code == 0, words.stderr
    assert list(words.result["levels"]) == ["document", "token"]
    tokens = words.result["levels"]["token"]
    assert tokens["points"] == sum(one["present"] for one in tokens["network"]["classes"])
    assert tokens["evidence"][1] == tokens["network"]["classes"][1]
    assert words.result["levels"]["document"]["points"] == tokens["documents"] < 100

    told = program(*evaluate, files / "test.csv", *network, "--train", files / "train.csv", "--level", "token")
    assert told.code == 0, told.stderr
    assert "none of which is labelled; the KNN has" in told.stdout
    assert "as the network" in told.stdout


def test_what_cannot_be_evaluated_is_told(program: Program, files: Path, trained: tuple[Any, ...]) -> None:
    model, *network = trained
    evaluate = ("extract", "evaluate", model, files / "test.csv", *network)
    for options, code, message in (
        (("--level", "word"), 2, "level: expected document or token, got 'word'"),
        (("--fit", files / "held-out.csv"), 2, "fit: expected only together with --train"),
        (("--k", 3), 2, "k: expected only together with --train"),
        (("--level", "token"), 4, "expected tokens with labels to evaluate by, got none"),
        (("--train", files / "test.csv"), 2, "expected at least one, got 100 that are left out"),
        (("--train", files / "train.csv", "--k", 201), 4, "expected at least 201 labelled training exemplars"),
    ):
        refused = program(*evaluate, *options)
        assert (refused.code, message in refused.stderr) == (code, True), refused.stderr


def test_states_that_were_seen_are_not_evaluated(program: Program, tmp_path: Path) -> None:
    """Their texts are unknown, so that they are told apart by their ids."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 90)
    states = generator.standard_normal((270, 6)) + np.repeat(labels, 3)[:, None]
    for name, part in (("train", slice(0, 60)), ("new", slice(60, 90))):
        (tmp_path / name).mkdir()
        tokens = slice(3 * part.start, 3 * part.stop)
        own: dict[str, Any] = {
            "states": states[tokens],
            "lengths": np.full(part.stop - part.start, 3),
            "y": labels[part],
        }
        np.savez(tmp_path / name / "states.npz", **own)
        np.savez(tmp_path / name / "named.npz", **own, id=np.array([f"{name}-{row}" for row in range(len(own["y"]))]))
    train = tmp_path / "train" / "named.npz"
    assert program("extract", "train", train, "--classes", "no,yes", "--out", tmp_path / "model", *SMALL).code == 0
    evaluate = ("extract", "evaluate", tmp_path / "model")
    knn = ("--k", 3, "--json")
    new = program(*evaluate, tmp_path / "new" / "named.npz", "--train", train, *knn)
    assert new.code == 0, new.stderr
    for file, train_file, fit in (
        (train, train, None),
        (tmp_path / "new" / "named.npz", train, train),
        (tmp_path / "new" / "states.npz", tmp_path / "train" / "states.npz", None),
    ):
        options = () if fit is None else ("--fit", fit)
        refused = program(*evaluate, file, "--train", train_file, *knn, *options)
        assert (refused.code, "expected documents that are not in" in refused.stderr) == (2, True), refused.stderr
    assert "got 30 with an id that is there, such as 'states:0'" in refused.stderr
    assert "give ids that tell them apart" in refused.stderr


def test_inspect_is_refused_before_anything_is_encoded(program: Program, files: Path, trained: tuple[Any, ...]) -> None:
    model, *network = trained
    words = ("extract", "train", write_words(model.parent / "words.conll"), "--task", "token", *network, *SMALL)
    assert program(*words, "--out", model.parent / "of-words").code == 0
    kept = set((program.home / "states").iterdir())
    inspect = ("extract", "inspect", model, files / "test.csv", *network)
    for arguments, code, message in (
        ((*inspect, "--id", "nobody"), 3, "the file has no document 'nobody'"),
        ((*inspect, "--row", 100), 2, "row: expected 0 to 99, got 100"),
        ((*inspect, "--row", 1, "--id", "test-1"), 2, "row: expected only without --id"),
        ((*inspect, "--near", 3), 2, "near: expected only together with --train"),
        (
            ("extract", "inspect", model.parent / "of-words", files / "test.csv", *network),
            2,
            "expected a memory layer whose exemplars are documents",
        ),
    ):
        refused = program(*arguments)
        assert (refused.code, message in refused.stderr) == (code, True), refused.stderr
    assert set((program.home / "states").iterdir()) == kept


def test_inspect_is_refused_before_states_are_converted(program: Program, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    states, labels = generator.normal(size=(90, 4)).astype(np.float32), np.arange(30) % 2
    states[::3, 0] += 4 * labels
    own: dict[str, Any] = {"states": states, "lengths": np.full(30, 3), "y": labels}
    np.savez(tmp_path / "named.npz", **own, id=np.array([f"own-{row}" for row in range(30)]))
    np.savez(tmp_path / "unnamed.npz", **own)
    rows = {"states": states.reshape(30, 3, 4).tolist(), "label": labels.tolist()}
    ids = pa.array([f"own-{row}" for row in range(30)])
    pq.write_table(pa.table(rows).append_column("external_id", ids), tmp_path / "named.parquet")
    pq.write_table(pa.table(rows), tmp_path / "unnamed.parquet")
    train = ("extract", "train", tmp_path / "named.npz", "--classes", "no,yes", "--out", tmp_path / "model", *SMALL)
    assert program(*train).code == 0
    kept = set((program.home / "states").iterdir())
    for name, ending in product(("named", "unnamed"), ("npz", "parquet")):
        inspect = ("extract", "inspect", tmp_path / "model", tmp_path / f"{name}.{ending}")
        for asked, code, message in (
            (("--id", "nobody"), 3, "the file has no document 'nobody'"),
            (("--row", 30), 2, "row: expected 0 to 29, got 30"),
        ):
            refused = program(*inspect, *asked)
            assert (refused.code, message in refused.stderr) == (code, True), refused.stderr
    assert set((program.home / "states").iterdir()) == kept
    for name, ending in product(("named", "unnamed"), ("npz", "parquet")):
        wanted = "own-7" if name == "named" else "unnamed:7"
        file = tmp_path / f"{name}.{ending}"
        found = program("extract", "inspect", tmp_path / "model", file, "--id", wanted, "--json")
        assert found.result["external_id"] == wanted


def tokens_of(program: Program, files: Path, trained: tuple[Any, ...], name: str) -> list[dict[str, Any]]:
    """The exemplars of the tokens of a file, in order, with the labels of their documents."""
    model, *network = trained
    out = model.parent / f"{name}-tokens.parquet"
    apply = ("extract", "apply", model, files / f"{name}.csv", *network, "--level", "token", "--document-labels")
    assert program(*apply, "--out", out).code == 0
    return [row | json.loads(row.pop("attributes")) for row in pq.read_table(out).to_pylist()]


def test_inspect_shows_what_carries_a_prediction(program: Program, files: Path, trained: tuple[Any, ...]) -> None:
    model, *network = trained
    inspect = ("extract", "inspect", model, files / "test.csv", *network)
    out = model.parent / "test.parquet"
    assert program("extract", "apply", model, files / "test.csv", *network, "--out", out).code == 0
    row = pq.read_table(out).to_pylist()[7]
    found = program(*inspect, "--row", 7, "--train", files / "train.csv", "--near", 2, "--json").result
    kept = own_contributions(json.loads(row["attributes"]), ("bad", "good"), row["logits"])
    assert kept is not None
    assert found["contributions"] == kept.as_attribute()
    assert found["logits"] == pytest.approx(row["logits"])
    assert [token["contribution"] for token in found["tokens"]] == [share.contribution for share in kept.tokens]
    training, own = (tokens_of(program, files, trained, name) for name in ("train", "test"))
    vector_at = {one["position"]: one["vector"] for one in own if one["document_id"] == row["external_id"]}
    vectors = np.array([one["vector"] for one in training])
    for token in found["tokens"]:
        distances = np.linalg.norm(vectors - np.array(vector_at[token["position"]]), axis=1)
        nearest = [training[place] for place in np.argsort(distances, kind="stable")[:2]]
        assert [(one["document_id"], one["position"], one["token"], one["label"]) for one in token["near"]] == [
            (one["document_id"], one["position"], one["token"], ("bad", "good")[one["label"]]) for one in nearest
        ]
        assert [one["distance"] for one in token["near"]] == pytest.approx(np.sort(distances)[:2])
    by_id = program(*inspect, "--id", row["external_id"])
    assert f"margin over {kept.runner_up}" in by_id.stdout
    assert "Nearest training tokens" not in by_id.stdout
    nobody = program(*inspect, "--id", "nobody")
    assert (nobody.code, "the file has no document 'nobody'" in nobody.stderr) == (3, True)
    beyond = program(*inspect, "--row", 100)
    assert (beyond.code, "row: expected 0 to 99, got 100" in beyond.stderr) == (2, True)


@pytest.mark.slow
def test_decisions_show_what_carries_them(program: Program, files: Path, trained: tuple[Any, ...]) -> None:
    model, *network = trained
    exemplars = {}
    for name in ("train", "held-out", "test"):
        exemplars[name] = model.parent / f"{name}.parquet"
        apply = ("extract", "apply", model, files / f"{name}.csv", *network, "--out", exemplars[name])
        assert program(*apply).code == 0
    assert program("create", "reviews", "--classes", "bad,good", "--dim", 8, "--k", 5).code == 0
    for name in ("train", "held-out"):
        assert program("ingest", "reviews", exemplars[name], "--split", name).code == 0
    assert program("fit", "reviews").code == 0
    assert program("calibrate", "reviews", "--method", "venn-abers", "--promise", "pointwise").code == 0
    assert program("score", "reviews", exemplars["test"], "--out", model.parent / "decisions.parquet").code == 0

    row = pq.read_table(exemplars["test"]).to_pylist()[3]
    kept = json.loads(row["attributes"])
    carried = own_contributions(kept, ("bad", "good"), row["logits"])
    assert carried is not None
    replay = ("replay", "--classifier", "reviews", "--id", row["external_id"])
    again = program(*replay, "--json").result
    assert again["attributes"] == kept
    assert all(contributions_in(one["attributes"], one["network_class"]) is not None for one in again["neighbours"])
    told = program(*replay).stdout
    decided = program("decide", "reviews", exemplars["test"], "--row", 3)
    for shown in (told, decided.stdout):
        assert f"What carries {carried.class_name} over {carried.runner_up}, the runner-up" in shown
        assert f"{carried.margin:+.3f}" in shown
        assert "carried by" in shown
        assert "`venn-admit extract inspect MODEL FILE --id ID --train TRAINING`" in shown
        assert "rest_count" not in shown
    assert program("decide", "reviews", exemplars["test"], "--row", 3, "--json").result["attributes"] == kept


@pytest.mark.slow
def test_a_classifier_of_tokens_goes_the_whole_way(program: Program, files: Path, trained: tuple[Any, ...]) -> None:
    """Tokens of a model of documents are ingested, calibrated, scored and replayed as any exemplars are."""
    model, *network = trained
    words = (files / "words.conll").read_text().split("\n\n")
    (model.parent / "known.conll").write_text("\n\n".join(words[:70]))
    (model.parent / "new.conll").write_text("\n\n".join(words[70:]))
    made = {"train": files / "train.csv", "known": model.parent / "known.conll", "new": model.parent / "new.conll"}
    exemplars = {name: model.parent / f"{name}-tokens.parquet" for name in made}
    for name, file in made.items():
        inherit = ["--document-labels"] if name == "train" else []
        apply = ("extract", "apply", model, file, *network, "--out", exemplars[name], "--json")
        result = program(*apply, "--level", "token", *inherit).result
        assert (result["level"], result["labelled"], result["dimension"]) == ("token", result["rows"], 8)
    assert result["extractor_version"].endswith(":token")
    row = pq.read_table(exemplars["new"]).to_pylist()[1]
    assert json.loads(row["attributes"])["position"] == 1
    assert row["document_id"] == "test-71-words"

    assert program("create", "words", "--classes", "bad,good", "--dim", 8, "--k", 5).code == 0
    assert program("ingest", "words", exemplars["train"], "--split", "train").code == 0
    documents = model.parent / "documents.parquet"
    assert program("extract", "apply", model, files / "held-out.csv", *network, "--out", documents).code == 0
    mixed = program("ingest", "words", documents, "--split", "held-out")
    assert (mixed.code, "extractor" in mixed.stderr) == (2, True)
    assert program("ingest", "words", exemplars["known"], "--split", "held-out").code == 0
    assert program("fit", "words").code == 0
    assert program("calibrate", "words", "--method", "venn-abers", "--promise", "pointwise").code == 0
    decisions = model.parent / "decisions.parquet"
    assert program("score", "words", exemplars["new"], "--out", decisions).code == 0
    assert pq.read_table(decisions).num_rows == pq.read_table(exemplars["new"]).num_rows
    assert program("evaluate", "words", exemplars["new"], "--json").code == 0
    replay = ("replay", "--classifier", "words", "--id", row["external_id"])
    neighbours = program(*replay, "--json").result["neighbours"]
    assert len(neighbours) == 5
    told = " ".join(program(*replay).stdout.split())
    training = {one["external_id"]: one["attributes"] for one in pq.read_table(exemplars["train"]).to_pylist()}
    for one in neighbours:
        assert one["attributes"] == json.loads(training[one["external_id"]])
        assert {"token", "position"} <= set(one["attributes"])
        assert f"token {one['attributes']['token']}, position {one['attributes']['position']}" in told


def test_names_that_extraction_needs_are_refused(program: Program, files: Path, trained: tuple[Any, ...]) -> None:
    model, *network = trained
    (model.parent / "own.csv").write_text("text,contributions\na good film,mine\n")
    (model.parent / "cut.csv").write_text("text,tokens_cut\na good film,3\n")
    out = ("--out", model.parent / "out.parquet")
    own = program("extract", "apply", model, model.parent / "own.csv", *network, *out)
    assert (own.code, "expected no attribute 'contributions'" in own.stderr) == (2, True)
    cut = program("extract", "apply", model, model.parent / "cut.csv", *network, *out)
    assert (cut.code, "expected no column 'tokens_cut'" in cut.stderr) == (2, True)
    lone = program("extract", "apply", model, files / "test.csv", *network, *out, "--document-labels")
    assert (lone.code, "document-labels: expected with --level token alone" in lone.stderr) == (2, True)
    words = (*out, "--level", "token", "--document-labels")
    labelled = program("extract", "apply", model, files / "words.conll", *network, *words)
    assert (labelled.code, "document-labels: expected labels of each document" in labelled.stderr) == (2, True)
    assert not (model.parent / "out.parquet").exists()
