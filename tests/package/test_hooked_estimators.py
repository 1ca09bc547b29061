"""Hooks on estimators of scikit-learn and on functions, and what of batches is what."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import venn_admit

FEATURES, CLASSES = 4, ("ham", "spam", "worse")


def blobs(count: int, seed: int, classes: int = 3) -> tuple[np.ndarray[Any, Any], list[str]]:
    centers = np.random.default_rng(0).normal(scale=2, size=(classes, FEATURES))
    points, numbers = make_blobs(count, centers=centers, cluster_std=1.5, random_state=seed)
    return points, [CLASSES[number] for number in numbers]


TRAINING = blobs(300, 1)


@pytest.fixture(scope="module")
def pipeline() -> Any:
    return make_pipeline(StandardScaler(), PCA(3), LogisticRegression()).fit(*TRAINING)


def arrays(model: Any, data: Any, layer: Any = None, **columns: Any) -> dict[str, Any]:
    return venn_admit.hook(model, layer).over(data, **columns).arrays()


def test_a_pipeline_decides_as_its_arrays_do(connection: venn_admit.Connection, pipeline: Any, tmp_path: Path) -> None:
    held_out, new = blobs(500, 2), blobs(80, 3)
    hooked = venn_admit.hook(pipeline)
    by_hook = connection.create("by hook", CLASSES, dimension=3, neighbours=5)
    by_file = connection.create("by file", CLASSES, dimension=3, neighbours=5)

    def file(name: str, points: Any, labels: list[str]) -> Path:
        seen, path = pipeline[:-1].transform(points), tmp_path / f"{name}.npz"
        np.savez(path, r=seen, f=pipeline.decision_function(points), y=[CLASSES.index(label) for label in labels])
        return path

    by_hook.ingest(hooked.over(TRAINING[0], labels=TRAINING[1]), split="train")
    by_hook.ingest(hooked.over(held_out[0], labels=np.array(held_out[1]), batch_size=64))
    by_file.ingest(file("train", *TRAINING), split="train")
    by_file.ingest(file("held-out", *held_out))
    for classifier in (by_hook, by_file):
        classifier.fit()
        classifier.calibrate(method="venn-admit", alpha="0.2", kappa=10, q_bins=[0, 1])
    decided = by_hook.score(hooked.over(new[0]))
    assert len(set(decided["decided_class"].to_pylist())) > 2
    assert decided.drop_columns("calibration").equals(by_file.score(file("new", *new)).drop_columns("calibration"))


def test_vectors_and_logits_of_pipelines(pipeline: Any) -> None:
    points = blobs(50, 4)[0]
    found = arrays(pipeline, points)
    np.testing.assert_array_equal(found["vectors"], pipeline[:-1].transform(points))
    np.testing.assert_array_equal(found["logits"], pipeline.decision_function(points))
    scaled = StandardScaler().fit(points).transform
    for layer, expected in {
        "standardscaler": pipeline[:1].transform(points),
        pipeline[0]: pipeline[:1].transform(points),
        scaled: scaled(points),
    }.items():
        np.testing.assert_array_equal(arrays(pipeline, points, layer)["vectors"], expected)
    searched = GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}).fit(*TRAINING)
    found = arrays(searched, points)
    np.testing.assert_array_equal(found["vectors"], points)
    np.testing.assert_array_equal(found["logits"], searched.decision_function(points))


def test_of_two_classes_there_are_two_logits() -> None:
    points, labels = blobs(100, 5, classes=2)
    model = LogisticRegression().fit(points, labels)
    logits = arrays(model, points)["logits"]
    single = model.decision_function(points)
    np.testing.assert_array_equal(logits, np.stack([-single / 2, single / 2], axis=1))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities, model.predict_proba(points))


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
def test_of_a_perceptron_the_last_hidden_layer_is_taken(activation: str) -> None:
    model = make_pipeline(StandardScaler(), MLPClassifier((7, 5), activation, max_iter=30, random_state=0))
    with pytest.warns(UserWarning, match="Maximum iterations"):
        model.fit(*TRAINING)
    points = blobs(40, 6)[0]
    found = arrays(model, points)
    network = model[-1]
    logits = found["vectors"] @ network.coefs_[-1] + network.intercepts_[-1]
    np.testing.assert_allclose(found["logits"], np.log(model.predict_proba(points)))
    np.testing.assert_allclose(
        logits - logits.max(axis=1, keepdims=True), found["logits"] - found["logits"].max(axis=1, keepdims=True)
    )


def test_probabilities_of_zero_stay_finite() -> None:
    forest = RandomForestClassifier(5, random_state=0).fit(*TRAINING)
    points = blobs(40, 6)[0]
    assert (forest.predict_proba(points) == 0).any()
    assert np.isfinite(arrays(forest, points)["logits"]).all()


def test_texts_and_sparse_features() -> None:
    texts, labels = ["good film", "bad film", "good good", "awful"] * 5, ["a", "b", "a", "b"] * 5
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    found = arrays(model, texts, labels=labels, batch_size=3)
    np.testing.assert_array_equal(found["vectors"], model[:-1].transform(texts).toarray())
    assert found["labels"] == [0, 1, 0, 1] * 5
    sparse = model[:-1].transform(texts)
    np.testing.assert_array_equal(arrays(model[-1], sparse.tocoo(), batch_size=3)["vectors"], sparse.toarray())


def test_columns_of_a_frame() -> None:
    points, labels = blobs(60, 7)
    frame = pd.DataFrame(points, columns=list("abcd")).assign(
        kind=labels, key=[f"k{row}" for row in range(60)], page=np.arange(60) // 3, place="here"
    )
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame[list("abcd")], labels)
    named: dict[str, Any] = {"labels": "kind", "ids": "key", "documents": "page", "attributes": ["place"]}
    found = arrays(model, frame, **named, batch_size=7)
    np.testing.assert_array_equal(found["vectors"], model[:-1].transform(frame[list("abcd")]))
    assert found["labels"] == [CLASSES.index(label) for label in labels]
    assert (found["ids"], found["documents"]) == (frame["key"].tolist(), frame["page"].tolist())
    assert found["attributes"] == {"place": ["here"] * 60}
    chunks = (frame[first : first + 25] for first in range(0, 60, 25))
    assert arrays(model, chunks, **named)["ids"] == frame["key"].tolist()
    chosen = ColumnTransformer([("kept", StandardScaler(), ["a", "b"])])
    picky = make_pipeline(chosen, LogisticRegression()).fit(frame, labels)
    assert arrays(picky, frame, inputs=["a", "b"])["vectors"].shape == (60, 2)
    plain = frame[list("abcd")]
    whole = arrays(model, plain, labels=frame["kind"], ids=frame["key"], attributes=frame[["place"]], batch_size=7)
    assert (whole["labels"], whole["ids"]) == (found["labels"], found["ids"])
    assert whole["attributes"] == found["attributes"]


def test_labels_are_the_estimators() -> None:
    points, names = blobs(90, 8)
    numbers = [CLASSES.index(name) + 1 for name in names]
    model = LogisticRegression().fit(points, numbers)  # whose classes are 1, 2 and 3
    assert arrays(model, points, labels=numbers)["labels"] == [number - 1 for number in numbers]
    assert arrays(model, points[:3], labels=[None, -1, float("nan")])["labels"] == [-1] * 3
    with pytest.raises(venn_admit.InvalidInputError, match=r"row 1, labels: .* classes \(1, 2, 3\), got 0"):
        arrays(model, points[:2], labels=[1, 0])
    with pytest.raises(venn_admit.InvalidInputError, match="row 8, labels: "):
        arrays(model, points[:9], labels=[1] * 8 + [4], batch_size=3)
    signed = LogisticRegression().fit(points, np.sign(np.array(numbers) - 1.5).astype(int))
    assert arrays(signed, points[:2], labels=[-1, 1])["labels"] == [0, 1]


def test_classes_in_another_order_are_refused(connection: venn_admit.Connection, pipeline: Any) -> None:
    for names, message in {
        (
            "spam",
            "ham",
            "worse",
        ): "classes: expected the order of the classifier, spam, ham, worse, got ham, spam, worse",
        ("ham", "spam"): "classes: expected 2, as the classifier has, got 3: ham, spam, worse",
    }.items():
        classifier = connection.create(", ".join(names), names, dimension=3)
        with pytest.raises(venn_admit.InvalidInputError, match=message):
            classifier.ingest(venn_admit.hook(pipeline).over(TRAINING[0], labels=TRAINING[1]))


POINTS = blobs(50, 9)[0]


@pytest.mark.parametrize(
    ("model", "layer", "message"),
    [
        (LogisticRegression(), None, "model: expected a fitted estimator, got one without classes_; call fit first"),
        (LinearRegression(), None, "expected an estimator with decision_function or predict_proba, got neither"),
        (KMeans(2), None, "decision_function or predict_proba, got neither"),
        (SVC(decision_function_shape="ovo").fit(*TRAINING), None, "got one for each pair of classes; set dec"),
        (OneVsRestClassifier(LogisticRegression()).fit(POINTS, POINTS > 0), None, "got several outputs"),
        (
            RandomForestClassifier(2).fit(POINTS, np.stack([POINTS[:, 0] > 0, POINTS[:, 1] // 1], 1)),
            None,
            "several outp",
        ),
        (LogisticRegression().fit(*TRAINING), "scale", "'scale'; steps before the last one are: none"),
        (
            LogisticRegression().fit(*TRAINING),
            3,
            "expected the name of a step, a fitted transformer or a function, got",
        ),
        (3, None, "model: expected a torch module, a fitted estimator, or a function, got an int"),
        (max, "layer", "layer: expected none for a function"),
    ],
)
def test_models_that_do_not_serve(model: Any, layer: Any, message: str) -> None:
    with pytest.raises(venn_admit.InvalidInputError, match=message):
        venn_admit.hook(model, layer)


def test_options_of_modules_are_refused(pipeline: Any) -> None:
    with pytest.raises(
        venn_admit.InvalidInputError, match="take, reduce: expected with a torch module only, got a Pipe"
    ):
        venn_admit.hook(pipeline, take="input", reduce="mean")
    with pytest.raises(venn_admit.InvalidInputError, match="steps before the last one are: 'stand"):
        venn_admit.hook(pipeline, "logisticregression")


def test_features_that_are_no_numbers() -> None:
    model = CalibratedClassifierCV(make_pipeline(TfidfVectorizer(), LogisticRegression()), cv=2)
    texts = ["good film", "bad film"] * 10
    model.fit(texts, ["a", "b"] * 10)
    with pytest.raises(venn_admit.InvalidInputError, match="features: expected numbers, got values of type <U9; give"):
        arrays(model, texts)
    assert arrays(model, texts, lambda given: np.array([[len(one)] for one in given]))["vectors"].shape == (20, 1)


def halves(rows: Any) -> tuple[Any, Any]:
    """A model of another kind: half of a row is r, the rest f."""
    rows = np.asarray(rows)
    return rows[:, :2], rows[:, 2:]


class TestBatches:
    @pytest.mark.parametrize(
        ("batch", "columns"),
        [
            ((POINTS, list(range(50))), {}),
            ([POINTS, list(range(50))], {}),
            ((POINTS, list(range(50))), {"labels": lambda batch: batch[1]}),
            ((POINTS, "unused", np.arange(50)), {"inputs": 0, "labels": 2}),
            ((np.arange(50), POINTS, np.zeros(50)), {"labels": 0, "attributes": {"zero": 2}}),
            ({"rows": POINTS, "label": np.arange(50), "more": 3}, {}),
            ({"x": POINTS, "label": np.arange(50)}, {"inputs": "x", "labels": "label"}),
            ({"x": POINTS, "label": np.arange(50)}, {"inputs": lambda batch: batch["x"], "labels": "label"}),
            ({"x": POINTS}, {"inputs": lambda batch: {"rows": batch["x"]}, "labels": range(50)}),
            ({"rows": POINTS, "y": np.arange(50)}, {"inputs": ["rows"], "labels": "y"}),
        ],
    )
    def test_in_any_form(self, batch: Any, columns: dict[str, Any]) -> None:
        found = arrays(halves, [batch], **columns)
        np.testing.assert_array_equal(found["vectors"], POINTS[:, :2])
        np.testing.assert_array_equal(found["logits"], POINTS[:, 2:])
        assert found["labels"] == list(range(50))

    def test_of_texts_are_one_input(self) -> None:
        lengths = lambda texts: (None, np.array([[len(one), 0.0] for one in texts]))  # noqa: E731
        assert arrays(lengths, [["ab", "abc"], ["a"]])["logits"][:, 0].tolist() == [2, 3, 1]

    def test_without_rows_are_left_out(self) -> None:
        assert len(arrays(halves, [POINTS[:3], POINTS[:0], POINTS[3:5]])["logits"]) == 5

    @pytest.mark.parametrize(
        ("data", "columns", "message"),
        [
            ("text", {}, "expected batches, such as a DataLoader, or an array of rows, got a str"),
            ({"rows": POINTS}, {}, "got a dict; a single batch goes into a list"),
            (5, {}, "got an int"),
            (POINTS, {"batch_size": 0}, "batch_size: expected at least 1, got 0"),
            ([(POINTS, 1, 2)], {}, "inputs: expected a batch with one member .*, got 3, of which 3 are not named"),
            ([{"x": POINTS}], {}, "members that the model takes by name, which takes rows, got a dict .* 'x'; choose"),
            (
                [{"rows": POINTS}],
                {"ids": "id"},
                "ids: the batch has no member 'id'; it is a dict with the members 'rows'",
            ),
            ([(POINTS, [1])], {"labels": 2}, "labels: the batch has no member 2; it is a tuple of 2 members"),
            ([POINTS], {"ids": "id"}, "ids: the batch has no member 'id'; it is an ndarray"),
            ([(POINTS, [1])], {}, "labels: expected 50 values, one for each row of the batch, got 1"),
            ([(POINTS, 7)], {}, "labels: expected 50 values, .* got an int"),
            ([(POINTS, POINTS)], {}, r"labels: expected 50 values, .* got shape \(50, 4\)"),
            ([POINTS], {"ids": range(49)}, "ids: expected 50 values, .* got 49 for all rows"),
            ([POINTS], {"ids": range(51)}, "halves: ids: expected 50 values, one for each row, got 51"),
            (
                [POINTS],
                {"inputs": 1.5},
                "inputs: expected a name, a position, a list of them, or a function, got a float",
            ),
        ],
    )
    def test_that_do_not_serve(self, data: Any, columns: dict[str, Any], message: str) -> None:
        with pytest.raises(venn_admit.InvalidInputError, match=message):
            arrays(halves, data, **columns)

    @pytest.mark.parametrize(
        ("made", "message"),
        [
            (POINTS, r"model: expected a pair \(vectors, logits\) from a function, got an ndarray"),
            ((POINTS[:3], POINTS), r"vectors: expected 50 rows, as many as the logits have, got shape \(3, 4\)"),
            ((POINTS[0], POINTS), r"vectors: expected shape \(n, D\), got \(4,\)"),
            ((None, POINTS[0]), r"logits: expected shape \(n, C\), got \(4,\)"),
        ],
    )
    def test_of_a_function_that_does_not_serve(self, made: Any, message: str) -> None:
        with pytest.raises(venn_admit.InvalidInputError, match=message):
            arrays(lambda _: made, [POINTS])
