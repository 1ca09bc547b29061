"""Verbs from texts to exemplars, and the one that goes on to a first report."""

import csv
import json
import random
import re
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.cli.program import Program, nothing_stored
from tests.layer.encoders.networks import WIDTH, save_network
from tests.layer.made_up import draw_documents, write_states
from venn_admit.cli import output
from venn_admit.layer.contributions import own_contributions
from venn_admit.layer.model import load_model

SMALL = ("--filters", 8, "--epochs", 4)
GOOD, BAD = ("good", "very good", "not bad"), ("bad", "very bad", "not good")


def write_texts(path: Path, count: int, *, seed: int, labelled: bool = True) -> Path:
    """Reviews of films, of which one in ten is labelled the wrong way."""
    generator = random.Random(seed)
    seen: set[str] = set()
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text", "label"] if labelled else ["id", "text"])
        while len(seen) < count:
            good = generator.random() < 0.5
            noun = "".join(generator.choices("bcdfghklmnprstvw", k=5))
            text = f"The {noun} was a {generator.choice(GOOD if good else BAD)} film, {noun}."
            seen.add(text)
            label = "good" if good != (generator.random() < 0.1) else "bad"
            rows.writerow([f"{path.stem}-{len(seen)}", text, label][: 3 if labelled else 2])
    return path


def write_words(path: Path, count: int = 80) -> Path:
    """Sentences of 3 and 4 words in turn, 280 words in 80 of them, of which those called film are labelled B."""
    kinds = [("the\tO", "film\tB", "was\tO"), ("a\tO", "film\tB")]
    sentences = ["\n".join((*kinds[number % 2], f"{path.stem}{number}\tO")) for number in range(count)]
    path.write_text("\n\n".join(sentences))
    return path


def write_unlike(path: Path, part: int, count: int = 300) -> Path:
    """Sentences of 5 words, none of which is another's, in this part or in others: equal ones would be copies."""
    words = ["good", "bad", "the", "was", "a", "not", "very", "."]

    def sentence(number: int) -> str:
        first, *rest = (words[number // 8**place % 8] for place in range(4))
        return "\n".join([f"{first}\tO", "film\tB", *(f"{word}\tO" for word in rest)])

    path.write_text("\n\n".join(sentence(300 * part + number) for number in range(count)))
    return path


def not_encoded(program: Program) -> bool:
    states = program.home / "states"
    return not states.exists() or not list(states.iterdir())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    save_network(folder / "network")
    write_texts(folder / "train.csv", 200, seed=1)
    write_texts(folder / "held-out.csv", 600, seed=2)
    write_texts(folder / "test.csv", 100, seed=3)
    write_texts(folder / "new.csv", 20, seed=4, labelled=False)
    return folder


def test_train_and_apply(program: Program, files: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "model", tmp_path / "exemplars.parquet"
    network = files / "network"
    trained = program("extract", "train", files / "train.csv", "--encoder", network, "--out", model, *SMALL, "--json")
    assert trained.code == 0, trained.stderr
    assert trained.result["classes"] == ["bad", "good"]
    assert (trained.result["documents"], trained.result["dimension"], trained.result["cut"]) == (200, 8, 0)
    version = trained.result["extractor_version"]
    said = program("extract", "train", files / "train.csv", "--encoder", network, "--out", model, *SMALL).stdout
    assert said.endswith(f" its extractor version is {version}.\n")
    assert (program.home / "states").stat().st_mode & 0o077 == 0

    applied = program("extract", "apply", model, files / "test.csv", "--encoder", network, "--out", out, "--json")
    assert applied.code == 0, applied.stderr
    assert (applied.result["rows"], applied.result["labelled"]) == (100, 100)
    table = pq.read_table(out).to_pylist()
    right = [row["label"] == int(np.argmax(row["logits"])) for row in table]
    assert applied.result["extractor_version"] == version
    assert applied.result["accuracy"] == pytest.approx(sum(right) / 100)
    assert (table[0]["external_id"], len(table[0]["vector"])) == ("test-1", 8)
    assert '"text": "The ' in table[0]["attributes"]

    told = program("extract", "apply", model, files / "new.csv", "--encoder", network, "--out", out)
    said = f"Wrote 20 exemplars to {out}; their extractor version is {version}."
    assert (told.code, told.stdout.splitlines()[-1]) == (0, said)
    assert pq.read_table(out)["label"].null_count == 20


def test_words(program: Program, files: Path, tmp_path: Path) -> None:
    write_words(tmp_path / "words.conll")
    options = ("--encoder", files / "network")
    file, model = tmp_path / "words.conll", tmp_path / "model"
    done = program("extract", "train", file, "--task", "token", *options, "--out", model, *SMALL, "--json")
    assert done.code == 0, done.stderr
    assert (done.result["classes"], done.result["tokens"]) == (["B", "O"], 280)
    applied = program("extract", "apply", model, file, *options, "--out", tmp_path / "words.parquet", "--json")
    assert (applied.result["rows"], applied.result["documents"]) == (280, 80)
    first = pq.read_table(tmp_path / "words.parquet").to_pylist()[1]
    assert '"token": "film"' in first["attributes"]
    assert first["document_id"] is not None


def test_states_of_ones_own_network(program: Program, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 120)
    states = generator.standard_normal((360, WIDTH)) + np.repeat(labels, 3)[:, None]
    np.savez(tmp_path / "states.npz", states=states, lengths=np.full(120, 3), y=labels)
    train = ("extract", "train", tmp_path / "states.npz", "--out", tmp_path / "model", *SMALL, "--json")
    assert program(*train).stderr.startswith(f"error: {tmp_path / 'states.npz'}: expected the names of the classes")
    done = program(*train, "--classes", "no,yes", "--encoder", "mine")
    assert (done.code, done.result["documents"]) == (0, 120)
    out = ("--out", tmp_path / "exemplars.parquet", "--json")
    assert program("extract", "apply", tmp_path / "model", tmp_path / "states.npz", *out).result["rows"] == 120
    other = program("extract", "apply", tmp_path / "model", tmp_path / "states.npz", *out, "--encoder", "other")
    assert other.code == 2
    assert "expected states of the encoder that the memory layer was trained with" in other.stderr


def test_a_layer_takes_logits_and_symbols_beside_the_states(program: Program, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 360)
    arrays: dict[str, Any] = {
        "states": generator.standard_normal((360, WIDTH)),
        "lengths": np.full(120, 3),
        "token_y": labels,
        "token": np.array(["A", "C"])[labels],
    }
    logits = np.stack([-labels, labels], axis=1) + generator.standard_normal((360, 2))
    np.savez(tmp_path / "states.npz", **arrays, token_logits=logits)
    np.savez(tmp_path / "bare.npz", **arrays)
    train = ("extract", "train", tmp_path / "states.npz", "--task", "token", "--classes", "no,yes", *SMALL, "--json")
    both = ("--side", "logits", "--side", "symbol", "--learning-rate", 0.05)
    done = program(*train, "--out", tmp_path / "model", *both)
    assert done.code == 0, done.stderr
    made = load_model(tmp_path / "model")
    assert (made.settings.symbols, made.symbols, made.encoder.side_logits, made.width) == (10, ("A", "C"), 2, WIDTH + 2)
    assert done.result["dev_accuracy"] > 0.9
    out = ("--out", tmp_path / "exemplars.parquet", "--json")
    assert program("extract", "apply", tmp_path / "model", tmp_path / "states.npz", *out).result["accuracy"] > 0.9
    for refused, message in (
        (
            program("extract", "apply", tmp_path / "model", tmp_path / "bare.npz", *out),
            "expected L logits at each token",
        ),
        (
            program(*train, "--out", tmp_path / "no", "--side", "tokens"),
            "side: expected logits or symbol, got 'tokens'",
        ),
        (program(*train, "--out", tmp_path / "no", "--symbol-length", 3), "expected with --side symbol alone"),
        (program(*train, "--out", tmp_path / "no", *both, "--symbol-length", 0), "symbol-length: expected at least 1"),
    ):
        assert (refused.code, message in refused.stderr) == (2, True), refused.stderr
    shorter = program(*train, "--out", tmp_path / "shorter", "--side", "symbol", "--symbol-length", 2)
    assert (shorter.code, load_model(tmp_path / "shorter").symbol_weight.shape) == (0, (2, 2))


def test_errors_come_before_long_work(program: Program, files: Path, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("text,label\na,x\nb,x\n")
    train = ("--encoder", files / "network", "--out", tmp_path / "model")
    one = program("extract", "train", tmp_path / "one.csv", *train)
    assert (one.code, "labels: expected 2 to 1,000 classes, got 1 ('x')" in one.stderr) == (2, True)
    (tmp_path / "one.jsonl").write_text('{"text": "a", "label": ["x"]}\n{"text": "b", "label": []}\n')
    one = program("extract", "train", tmp_path / "one.jsonl", *train)
    assert (one.code, "expected 2 to 63 labels in all, got 1 ('x'); for a single one," in one.stderr) == (2, True)
    task = program("extract", "train", files / "train.csv", "--task", "words", *train)
    assert (task.code, "task: expected document or token, got 'words'" in task.stderr) == (2, True)
    layers = program("extract", "train", files / "train.csv", "--layers", "last", *train)
    assert (layers.code, "layers: expected numbers such as 3,5, got 'last'" in layers.stderr) == (2, True)
    twice = program("extract", "train", files / "train.csv", "--classes", "bad,good,bad", *train)
    assert (twice.code, "classes: expected each name once, got bad more than once" in twice.stderr) == (2, True)
    missing = program("extract", "apply", tmp_path / "model", files / "new.csv", "--out", tmp_path / "new.parquet")
    assert (missing.code, "expected a file, got no such file" in missing.stderr) == (2, True)


def test_an_encoder_of_other_weights_is_refused_before_it_encodes(
    program: Program, files: Path, tmp_path: Path
) -> None:
    train = ("extract", "train", files / "train.csv", "--encoder", files / "network", "--out", tmp_path / "model")
    assert program(*train, *SMALL).code == 0
    kept = set((program.home / "states").iterdir())
    other = save_network(tmp_path / "other", seed=1)
    apply = ("extract", "apply", tmp_path / "model", files / "new.csv", "--out", tmp_path / "new.parquet")
    refused = program(*apply, "--encoder", other)
    assert (refused.code, "expected the encoder that the memory layer was trained with" in refused.stderr) == (2, True)
    assert set((program.home / "states").iterdir()) == kept


def test_an_encoder_in_a_folder_must_be_named(program: Program, files: Path, tmp_path: Path) -> None:
    network = files / "network"
    train = ("extract", "train", files / "train.csv", "--encoder", network, "--out", tmp_path / "model")
    assert program(*train, *SMALL).code == 0
    unnamed = program("extract", "apply", tmp_path / "model", files / "new.csv", "--out", tmp_path / "new.parquet")
    known = load_model(tmp_path / "model").encoder
    assert (unnamed.code, f"expected the folder of {known.name}, which the memory layer" in unnamed.stderr) == (2, True)
    assert unnamed.stderr.rstrip().endswith("`--encoder FOLDER` names it")


def test_an_output_never_replaces_an_input(program: Program, files: Path, tmp_path: Path) -> None:
    texts = tmp_path / "reviews" / "train.parquet"
    texts.parent.mkdir()
    pq.write_table(pa.table({"text": ["good", "bad"] * 20, "label": ["good", "bad"] * 20}), texts)
    before = texts.read_bytes()
    apply = program("extract", "apply", tmp_path / "model", texts, "--out", texts)
    begin = ("start", "reviews", texts, files / "held-out.csv", "--out", texts.parent)
    for refused in (apply, program(*begin, "--encoder", files / "network", *SMALL)):
        assert (refused.code, "expected an output that is not an input" in refused.stderr) == (2, True)
    assert texts.read_bytes() == before


@pytest.mark.slow
@pytest.mark.usefixtures("blank_charts")
def test_results_of_start_follow_their_bars(
    program: Program, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a terminal, which shows both."""
    written = StringIO()
    for name in ("output", "messages"):
        monkeypatch.setattr(output, name, Console(file=written, width=120))
    begin = ("start", "reviews", files / "train.csv", files / "held-out.csv", "--out", tmp_path / "out", *SMALL)
    assert program(*begin, "--encoder", files / "network").code == 0
    said = written.getvalue()
    assert 0 < said.index("Ingesting train.parquet") < said.index("train: 200 exemplars") < said.index("Ingesting held")


@pytest.mark.slow
@pytest.mark.usefixtures("blank_charts")
def test_start_goes_the_whole_way(program: Program, files: Path, tmp_path: Path) -> None:
    leaked = tmp_path / "held-out.csv"
    first_text = (files / "train.csv").read_text().splitlines()[1]
    known = (files / "held-out.csv").read_text() + first_text.replace("train-1", "leaked") + "\n"
    leaked.write_text(known + "unlabelled,A film without a label.,\n")
    train = tmp_path / "train.csv"
    train.write_text((files / "train.csv").read_text() + "unlabelled,Another film without a label.,\n")
    begin = ("start", "reviews", train, leaked, "--test", files / "test.csv", *SMALL, "--form", "two-layers")
    options = ("--encoder", files / "network", "--out", tmp_path / "reviews")
    told = program(*begin, *options)
    assert told.code == 0, told.stderr
    assert load_model(tmp_path / "reviews" / "model").settings.form == "two-layers"
    assert f"{tmp_path / 'reviews' / 'train.parquet'}: 200 exemplars; the network's accuracy is " in told.stdout
    assert re.search(
        r"Calibration 1 is in use: alpha 0\.1\. (Certified with|Not certified: no policy)",
        " ".join(told.stdout.split()),
    )
    assert told.stdout.count("; 1 without a label left out.") == 2
    assert "held-out.csv: texts left out because another file has them too: 1." in told.stdout
    reading = f"new.csv --out new.parquet --encoder {files / 'network'}"
    assert f"venn-admit extract apply {tmp_path / 'reviews' / 'model'} {reading}\n" in told.stdout
    for name in ("evaluation/index.html", "report/index.html", "model/model.json", "test.parquet"):
        assert (tmp_path / "reviews" / name).is_file()

    again = program(*begin, *options, "--json").result
    assert again["held-out"]["ingested"]["new"] == 0
    assert (again["train"]["rows"], again["train"]["left_out"]) == (200, 1)
    assert (again["held-out"]["rows"], again["held-out"]["left_out"]) == (600, 1)
    assert again["evaluation"]["points"] == 100
    assert again["calibration"]["calibration"] == 2

    new = tmp_path / "new.parquet"
    apply = ("extract", "apply", tmp_path / "reviews" / "model", files / "new.csv", "--encoder", files / "network")
    assert program(*apply, "--out", new).code == 0
    scored = program("score", "reviews", new, "--out", tmp_path / "decisions.parquet", "--json")
    assert (scored.code, scored.result["rows"]) == (0, 20)


@pytest.mark.slow
@pytest.mark.usefixtures("blank_charts")
def test_start_with_labelled_words_decides_on_each_word(program: Program, files: Path, tmp_path: Path) -> None:
    train, held_out = (
        write_unlike(tmp_path / f"{name}.conll", place) for place, name in enumerate(("train", "held-out"))
    )
    options = ("--task", "token", "--encoder", files / "network", "--out", tmp_path / "words", *SMALL)
    done = program("start", "words", train, held_out, *options, "--json")
    assert done.code == 0, done.stderr
    assert [done.result[part]["rows"] for part in ("train", "held-out")] == [1500, 1500]
    assert done.result["calibration"]["calibration"] == 1
    new = write_unlike(tmp_path / "new.conll", 2, 10)
    apply = ("extract", "apply", tmp_path / "words" / "model", new, "--encoder", files / "network")
    assert program(*apply, "--out", tmp_path / "new.parquet").code == 0
    decisions = tmp_path / "decisions.parquet"
    scored = program("score", "words", tmp_path / "new.parquet", "--out", decisions, "--json")
    assert (scored.code, scored.result["rows"]) == (0, 50)
    predicted = pq.read_table(decisions)["predicted_class"].to_pylist()
    words = pq.read_table(tmp_path / "new.parquet")["attributes"].to_pylist()
    assert [name == "B" for name in predicted] == ['"token": "film"' in word for word in words]


def test_a_megabyte_of_text_is_cut_to_what_the_encoder_takes(program: Program, files: Path, tmp_path: Path) -> None:
    train = tmp_path / "train.csv"
    train.write_text((files / "train.csv").read_text() + f"long,{'good film ' * 110_000},good\n")
    network, model = ("--encoder", files / "network"), tmp_path / "model"
    trained = program("extract", "train", train, *network, "--out", model, *SMALL, "--json")
    assert trained.code == 0, trained.stderr
    assert (trained.result["documents"], trained.result["cut"]) == (201, 1)
    applied = program("extract", "apply", model, train, *network, "--out", tmp_path / "out.parquet", "--json")
    assert applied.code == 0, applied.stderr
    last = pq.read_table(tmp_path / "out.parquet").to_pylist()[-1]
    assert (last["external_id"], np.isfinite(last["vector"]).all()) == ("long", True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--alpha", "1"), "alpha must lie strictly between 0 and 1; got 1"),
        (("--background", "neutral"), "background: expected one of the classes 'bad', 'good', got 'neutral'"),
        (
            ("--classes", "bad,good", "--background", "b"),
            "background: expected one of the classes 'bad', 'good'",
        ),
        (("--test", "nope.csv"), "nope.csv: expected a file, got no such file; check the path"),
        (("--task", "token", "--background", "bad"), "background: expected with documents alone, because tokens have"),
    ],
)
def test_start_refuses_wrong_values_before_it_encodes(
    program: Program, files: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    begin = ("start", "reviews", files / "train.csv", files / "held-out.csv", "--out", tmp_path / "out", *SMALL)
    refused = program(*begin, "--encoder", files / "network", *options)
    assert (refused.code, message in refused.stderr) == (2, True), refused.stderr
    assert not_encoded(program)


def test_start_refuses_labels_of_any_file_before_it_encodes(program: Program, files: Path, tmp_path: Path) -> None:
    test = tmp_path / "test.csv"
    test.write_text((files / "test.csv").read_text() + "mine,What a film.,grand\n")
    begin = ("start", "reviews", files / "train.csv", files / "held-out.csv", "--out", tmp_path / "out", *SMALL)
    refused = program(*begin, "--test", test, "--encoder", files / "network")
    assert (refused.code, "label: expected one of the classes 'bad', 'good', or" in refused.stderr) == (2, True)
    assert not_encoded(program)


def test_start_needs_labels_on_both_sides(program: Program, files: Path, tmp_path: Path) -> None:
    begin = ("start", "reviews", files / "train.csv", files / "new.csv", "--out", tmp_path / "out", *SMALL)
    refused = program(*begin, "--encoder", files / "network")
    assert (refused.code, "held-out: expected labels, got none; label some" in refused.stderr) == (4, True)
    assert not_encoded(program)


def test_start_counts_no_label_of_a_text_that_is_left_out(program: Program, files: Path, tmp_path: Path) -> None:
    """Those of the held-out texts that are in the training file too."""
    held_out = tmp_path / "held-out.csv"
    held_out.write_text(
        "\n".join([*(files / "train.csv").read_text().splitlines()[:20], "mine,A film that nobody labelled.,"])
    )
    begin = ("start", "reviews", files / "train.csv", held_out, "--out", tmp_path / "out", *SMALL)
    refused = program(*begin, "--encoder", files / "network")
    assert (refused.code, "held-out: expected labels, got none; label some" in refused.stderr) == (4, True)
    assert not_encoded(program)


def test_apply_leaves_out_the_texts_of_other_files(program: Program, files: Path, tmp_path: Path) -> None:
    model, network = tmp_path / "model", ("--encoder", files / "network")
    assert program("extract", "train", files / "train.csv", *network, "--out", model, *SMALL).code == 0
    known = (files / "test.csv").read_text().splitlines()
    (tmp_path / "some.csv").write_text("\n".join(known[:31]))
    (text,) = [row[1] for row in csv.reader(known[31:32])]
    (tmp_path / "words.conll").write_text(text.replace(" ", "\n"))
    apply = ("extract", "apply", model, files / "test.csv", *network, "--out", tmp_path / "out.parquet")
    done = program(*apply, "--without", tmp_path / "some.csv", "--without", tmp_path / "words.conll", "--json")
    assert (done.result["rows"], done.result["left_out"]) == (69, 31)
    ids = {row["external_id"] for row in pq.read_table(tmp_path / "out.parquet").to_pylist()}
    assert ids == {f"test-{number}" for number in range(32, 101)}
    told = program(*apply, "--without", tmp_path / "some.csv")
    assert "test.csv: texts left out because another file has them too: 30." in told.stdout
    np.savez(tmp_path / "states.npz", states=np.ones((3, WIDTH)), lengths=np.array([3]))
    states = program(*apply, "--without", tmp_path / "states.npz")
    assert (states.code, "expected texts, which can be compared, got a file of states" in states.stderr) == (2, True)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "shards",
            ("--encoder", "mine"),
            "encoder: expected with a file of states or labelled words or a table",
        ),
        (
            "shards",
            ("--classes", "a,b"),
            "classes: expected with a file of states or labelled words or a table",
        ),
        ("shards", ("--max-tokens", 20), "max-tokens: expected with labelled words or a table of texts alone, got it"),
        (
            "shards",
            ("--side", "logits"),
            "expected states followed by logits, got states alone; choose other side inputs",
        ),
        (
            "words.conll",
            ("--side", "logits"),
            "side: expected with a folder of states or a file of states alone, got it",
        ),
        ("shards", ("--task", "token"), "expected labels of each token, got labels of each document; choose another"),
        (
            "states.npz",
            ("--layers", 2),
            "layers: expected with labelled words or a table of texts alone, got it",
        ),
        ("states.npz", ("--id-column", "x"), "id-column: expected with a table of texts alone, got it with a file of"),
        ("words.conll", ("--task", "token", "--text-column", "x"), "text-column: expected with a table of texts alone"),
    ],
)
def test_options_that_do_not_apply_are_refused(
    program: Program, tmp_path: Path, name: str, options: tuple[object, ...], message: str
) -> None:
    write_states(tmp_path / "shards", draw_documents(4))
    np.savez(tmp_path / "states.npz", states=np.ones((3, WIDTH)), lengths=np.array([3]))
    (tmp_path / "words.conll").write_text("a\tX\nb\tY\n")
    refused = program("extract", "train", tmp_path / name, "--out", tmp_path / "model", *options)
    assert (refused.code, message in refused.stderr) == (2, True), refused.stderr


def test_forms_and_settings_of_the_layer(program: Program, files: Path, tmp_path: Path) -> None:
    train = ("extract", "train", files / "train.csv", "--encoder", files / "network", *SMALL)
    asked = ("--representative", "--min-max-weight", 0, "--learning-rate", 0.01, "--patience", 2)
    assert program(*train, "--out", tmp_path / "model", *asked).code == 0
    made = load_model(tmp_path / "model").settings
    assert (made.with_representative, made.min_max_weight, made.learning_rate, made.patience) == (True, 0, 0.01, 2)
    words = (
        "extract",
        "train",
        write_words(tmp_path / "words.conll"),
        "--task",
        "token",
        "--encoder",
        files / "network",
        *SMALL,
    )
    assert program(*words, "--out", tmp_path / "words", "--form", "decomposed").code == 0
    assert load_model(tmp_path / "words").settings.form == "decomposed"
    for refused in (
        program(*train, "--out", tmp_path / "other", "--form", "linear"),
        program(*train, "--out", tmp_path / "other", "--min-max-epochs", 2),
        program(*train, "--out", tmp_path / "other", "--form", "two-layers", "--min-max-weight", 0),
        program(*words, "--out", tmp_path / "other", "--form", "document"),
        program(*words, "--out", tmp_path / "other", "--form", "two-layers"),
        program(*words, "--out", tmp_path / "other", "--min-max-weight", 2),
        program(*words, "--out", tmp_path / "other", "--representative"),
    ):
        assert refused.code == 2, refused.stderr
    assert not (tmp_path / "other").exists()


def test_a_layer_of_two_linear_layers_is_trained_in_phases_applied_and_inspected(
    program: Program, files: Path, tmp_path: Path
) -> None:
    model, test, network = tmp_path / "model", files / "test.csv", ("--encoder", files / "network")
    asked = ("--form", "two-layers", "--min-max-epochs", 3)
    trained = program("extract", "train", files / "train.csv", "--out", model, *network, *SMALL, *asked, "--json")
    assert trained.code == 0, trained.stderr
    assert trained.result["best_epoch"] > 4, "the second phase follows four epochs of the first"
    assert trained.result["epochs"] == 7
    out = tmp_path / "test.parquet"
    assert program("extract", "apply", model, test, *network, "--out", out).code == 0
    rows = pq.read_table(out).to_pylist()
    kept = [own_contributions(json.loads(row["attributes"]), ("bad", "good"), row["logits"]) for row in rows]
    assert len(kept) == 100
    assert None not in kept, "the contributions add up to the margin of the logits"
    assert len(rows[0]["vector"]) == trained.result["dimension"] == 8
    found = program("extract", "inspect", model, test, *network, "--row", 99, "--json").result
    assert kept[99] is not None
    assert found["contributions"] == kept[99].as_attribute()


@pytest.mark.slow
def test_start_refuses_a_classifier_of_other_classes(program: Program, files: Path, tmp_path: Path) -> None:
    assert program("create", "reviews", "--classes", "x,y", "--dim", 8).code == 0
    begin = ("start", "reviews", files / "train.csv", files / "held-out.csv", "--out", tmp_path / "out", *SMALL)
    with nothing_stored(program):
        outcome = program(*begin, "--encoder", files / "network")
    assert outcome.code == 2
    assert "classifier 'reviews' exists, with other classes" in outcome.stderr


def test_an_encoder_is_tuned_and_used(program: Program, files: Path, tmp_path: Path) -> None:
    encoder, source = tmp_path / "encoder", files / "train.csv"
    options = ("--encoder", files / "network", "--rounds", 1, "--learning-rate", 0.003, "--background", "bad", *SMALL)
    tuned = program("extract", "tune", source, "--out", encoder, *options, "--json")
    assert tuned.code == 0, tuned.stderr
    assert [line["round"] for line in tuned.result["rounds"]] == [0, 1]
    again = program("extract", "tune", source, "--out", encoder, *options)
    assert again.code == 0, again.stderr
    assert f"Epochs of the encoder: {tuned.result['rounds'][1]['round']}." in again.stdout
    assert "The best encoder is in" in again.stdout
    plain = program("extract", "tune", source, "--out", encoder, *options[:-6], *SMALL)
    assert plain.code == 2, "without a background it is another training"
    others = (*options[:-6], "--background", "neutral", *SMALL)
    refused = program("extract", "tune", source, "--out", tmp_path / "other", *others)
    assert (refused.code, "background: expected one of the classes 'bad', 'good'" in refused.stderr) == (2, True)
    trained = program("extract", "train", source, "--encoder", encoder, "--out", tmp_path / "model", *SMALL)
    assert trained.code == 0, trained.stderr


SEVERAL = """\
{{"id": "{0}-1", "text": "The {0} was a good film.", "label": ["praise"]}}
{{"id": "{0}-2", "text": "The {0} was a very bad film.", "label": ["long"]}}
{{"id": "{0}-3", "text": "The {0} was a very good film.", "label": ["praise", "long"]}}
{{"id": "{0}-4", "text": "The {0} was a bad film.", "label": []}}
"""


@pytest.fixture(scope="module")
def several(files: Path) -> Path:
    generator = random.Random(5)
    nouns = ["".join(generator.choices("bcdfghklmnprstvw", k=5)) for _ in range(60)]
    (files / "several.jsonl").write_text("".join(map(SEVERAL.format, nouns)))
    return files / "several.jsonl"


def test_a_layer_of_several_labels_is_evaluated_and_inspected_by_label(
    program: Program, files: Path, several: Path, tmp_path: Path
) -> None:
    model, network = tmp_path / "model", ("--encoder", files / "network")
    told = program("extract", "train", several, "--out", model, *network, "--filters", 32, "--learning-rate", 0.03)
    assert "2 labels (long, praise), D = 32" in told.stdout, told.stderr
    for label in ("long", "praise"):
        one = (model, several, "--label", label, *network, "--json")
        by_label = program("extract", "evaluate", *one).result
        assert by_label["classes"] == ["absent", "present"]
        assert by_label["levels"]["document"]["network"]["accuracy"]["share"] > 0.9
        found = program("extract", "inspect", *one, "--row", 2).result
        assert (found["label"], found["contributions"]["class"]) == ("present", "present")
        assert found["contributions"]["runner_up"] == "absent"


@pytest.mark.parametrize(
    ("model", "file", "options", "message"),
    [
        ("several", "several.jsonl", (), "label: expected one of the labels 'long', 'praise', got none; choose one"),
        ("several", "several.jsonl", ("--label", "short"), "expected one of the labels 'long', 'praise', got 'short'"),
        ("several", "test.csv", ("--label", "long"), "expected a list of labels of each document, as the memory layer"),
        (
            "several",
            "words.conll",
            ("--label", "long"),
            "of each document, as the memory layer was trained on, got one label of each token",
        ),
        ("one", "test.csv", ("--label", "good"), "label: expected none with a memory layer of one label a document"),
        ("one", "several.jsonl", (), "expected one label of each document, as the memory"),
        ("one", "lists.jsonl", (), "expected one label of each document, as the memory layer was trained on, got a li"),
    ],
)
def test_a_layer_takes_labels_of_the_kind_that_it_was_trained_on(
    program: Program, files: Path, several: Path, model: str, file: str, options: tuple[str, ...], message: str
) -> None:
    network = ("--encoder", files / "network")
    for name, source in (("several", several), ("one", files / "train.csv")):
        if not (files / name).exists():
            assert program("extract", "train", source, "--out", files / name, *network, *SMALL).code == 0
    (files / "lists.jsonl").write_text('{"text": "A film.", "label": ["good"]}\n')
    (files / "words.conll").write_text("a\tlong\nb\tpraise\n")
    refused = program("extract", "evaluate", files / model, files / file, *options, *network)
    assert (refused.code, message in " ".join(refused.stderr.split())) == (2, True), refused.stderr


def test_texts_without_labels_are_applied_by_label(
    program: Program, files: Path, several: Path, tmp_path: Path
) -> None:
    model, out, network = tmp_path / "model", tmp_path / "new.parquet", ("--encoder", files / "network")
    assert program("extract", "train", several, "--out", model, *network, *SMALL).code == 0
    applied = program("extract", "apply", model, files / "new.csv", "--label", "long", *network, "--out", out, "--json")
    assert (applied.result["rows"], applied.result["labelled"]) == (20, 0)


def test_an_encoder_is_tuned_on_several_labels(program: Program, files: Path, several: Path, tmp_path: Path) -> None:
    options = ("--encoder", files / "network", "--rounds", 1, "--learning-rate", 0.003, *SMALL)
    tuned = program("extract", "tune", several, "--out", tmp_path / "encoder", *options, "--json")
    first, second = tuned.result["rounds"]
    assert first["dev_loss"] != second["dev_loss"]


def test_start_refuses_several_labels(program: Program, files: Path, several: Path, tmp_path: Path) -> None:
    with nothing_stored(program):
        begin = ("start", "films", several, several, "--out", tmp_path / "out", *SMALL)
        refused = program(*begin, "--encoder", files / "network")
    assert (refused.code, "expected one label of each document, got lists of labels" in refused.stderr) == (2, True)
    assert "documents," not in refused.stdout, "nothing was encoded"
