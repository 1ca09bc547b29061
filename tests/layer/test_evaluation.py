"""How well a memory layer does, and the KNN beside it: counts against plain loops, and what is asked of the data."""

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.layer.made_up import SMALL, WIDTH, draw_documents, draw_model, write_states
from venn_admit.core.approximation.knn import approximate
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.types import Support
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.layer.apply import extract
from venn_admit.layer.approximation import fit_on, fit_share, training_exemplars
from venn_admit.layer.evaluation import Detection, LevelEvaluation, count_detections, evaluate_layer
from venn_admit.layer.model import LayerModel
from venn_admit.layer.outputs import exemplar_with_contributions, exemplars_of
from venn_admit.layer.settings import LayerForm, LayerSettings
from venn_admit.layer.states.index import Kind
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.training import train

BUDGET = 256 << 20
DOCUMENTS = LayerSettings(LayerForm.DOCUMENT, filters=10)
TOKENS = LayerSettings(LayerForm.DECOMPOSED, filters=10)


def test_precision_recall_and_f_half() -> None:
    found = Detection(label=1, found=3, detected=4, present=10, tokens=100)
    assert (found.precision, found.recall) == (0.75, 0.3)
    assert found.f_half == pytest.approx(1.25 * 0.75 * 0.3 / (0.25 * 0.75 + 0.3))
    assert found.f_half_of_all == pytest.approx(1.25 * 0.1 * 1.0 / (0.25 * 0.1 + 1.0))
    assert found.f_half_at_random == pytest.approx(1.25 * 0.1 * 0.04 / (0.25 * 0.1 + 0.04))
    nothing = Detection(label=1, found=0, detected=0, present=0, tokens=5)
    measures = (nothing.precision, nothing.recall, nothing.f_half, nothing.f_half_of_all, nothing.f_half_at_random)
    assert np.isnan(measures).all()
    assert Detection(label=1, found=0, detected=0, present=2, tokens=5).f_half == 0


def test_detections_are_counted_by_class() -> None:
    rng = np.random.default_rng(0)
    label, detected = rng.integers(-1, 3, 200), rng.random((200, 3)) < 0.4
    for number, found in enumerate(count_detections(label, detected)):
        pairs = [(bool(hit[number]), y == number) for hit, y in zip(detected, label.tolist(), strict=True)]
        assert found == Detection(
            label=number,
            found=pairs.count((True, True)),
            detected=pairs.count((True, True)) + pairs.count((True, False)),
            present=pairs.count((True, True)) + pairs.count((False, True)),
            tokens=200,
        )


def evaluated(model: LayerModel, shards: StateShards, **options: Any) -> LevelEvaluation:
    return evaluate_layer(model, shards, memory_budget=20_000, **options)


def test_documents_are_evaluated_by_their_labels(tmp_path: Path) -> None:
    documents, model = draw_documents(40), draw_model(DOCUMENTS)
    found = evaluated(model, write_states(tmp_path / "states", documents))
    right = sum(exemplars_of(model, document.states).logits.argmax() == document.label for document in documents)
    assert found.network is not None
    overall = found.network.accuracy.tallies.overall
    assert (overall.correct, overall.count, overall.documents) == (right, 40, None)
    assert (found.level, found.points, found.documents) == ("document", 40, 40)
    assert (found.evidence, found.knn, found.agreement, found.partitions) == ((), None, None, None)


def test_tokens_of_a_layer_for_documents_are_evaluated_by_local_scores(tmp_path: Path) -> None:
    documents = draw_documents(40, kind="token", background=0)
    model = draw_model(replace(DOCUMENTS, background=0))
    found = evaluated(model, write_states(tmp_path / "states", documents), level="token")
    assert found.network is not None
    present = detected = right = 0
    for document in documents:
        assert document.token_labels is not None
        words = document.token_labels >= 0
        parts = exemplar_with_contributions(model, document.states)[1]
        present += int((document.token_labels == 1).sum())
        detected += int(parts.detected[words, 1].sum())
        right += int((parts.detected[words, 1] == (document.token_labels[words] == 1)).sum())
    # With two classes, of which one is the background, the larger local score is what detects.
    assert (found.evidence[1].present, found.evidence[1].detected) == (present, detected)
    assert found.network.detections[1] == found.evidence[1]
    assert found.network.accuracy.tallies.overall.correct == right


def test_labels_of_tokens_give_documents_labels_if_there_is_a_background(tmp_path: Path) -> None:
    documents = draw_documents(40, kind="token", background=0)
    states = write_states(tmp_path / "states", documents)
    found = evaluated(draw_model(replace(DOCUMENTS, background=0)), states, level="document")
    assert found.network is not None
    of_documents = draw_documents(40, background=0)
    present = [detection.present for detection in found.network.detections]
    lost = [  # whose labelled tokens are none that begins a word
        number
        for number, document in enumerate(documents)
        if document.token_labels is not None and of_documents[number].label == 1 and (document.token_labels != 1).all()
    ]
    labels = [document.label for document in of_documents]
    assert present == [labels.count(0) + len(lost), labels.count(1) - len(lost)]
    with pytest.raises(NotReadyError, match="expected documents with labels to evaluate by, got none among 40"):
        evaluated(draw_model(DOCUMENTS), states, level="document")


def test_tokens_are_evaluated_with_documents_as_the_sample(tmp_path: Path) -> None:
    documents = draw_documents(40, kind="token", background=0)
    found = evaluated(draw_model(TOKENS), write_states(tmp_path / "states", documents))
    assert found.network is not None
    overall = found.network.accuracy.tallies.overall
    assert overall.documents == found.documents == 40
    assert overall.count == found.points == sum(detection.present for detection in found.network.detections)
    assert overall.correct == sum(detection.found for detection in found.network.detections)


def test_memory_grows_by_less_than_a_byte_a_token_and_class(tmp_path: Path) -> None:
    classes, length = 200, 1000
    model = draw_model(replace(DOCUMENTS, background=0), class_count=classes)
    rng = np.random.default_rng(0)
    peaks = []
    for count in (10, 30):
        documents = [
            replace(
                document,
                states=rng.normal(size=(length, WIDTH)).astype(np.float32),
                token_labels=rng.integers(0, classes, length),
                tokens=(),
            )
            for document in draw_documents(count, kind="token")
        ]
        shards = write_states(tmp_path / f"{count}", documents, class_count=classes)
        tracemalloc.start()
        try:
            found = evaluate_layer(model, shards, level="token", memory_budget=1 << 20)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert found.evidence[1].tokens == found.points == count * length
    assert peaks[1] - peaks[0] < 20 * length * classes


def test_labels_of_documents_say_nothing_of_tokens(tmp_path: Path) -> None:
    states = write_states(tmp_path / "documents", draw_documents(5))
    for model in (draw_model(TOKENS), draw_model(DOCUMENTS)):
        with pytest.raises(NotReadyError, match="expected tokens with labels to evaluate by, got none among"):
            evaluated(model, states, level="token")
    with pytest.raises(InvalidInputError, match="level: expected token, because the exemplars"):
        evaluated(draw_model(TOKENS), states, level="document")


@pytest.mark.parametrize("level", ["document", "token"])
def test_the_knn_stands_beside_the_network(level: Kind, tmp_path: Path) -> None:
    """Counted again by the core's own parts, from exemplars that are all held at once."""
    model, k = draw_model(replace(DOCUMENTS, background=0)), 5
    train = write_states(tmp_path / "train", draw_documents(60, background=0, seed=1))
    states = write_states(tmp_path / "states", draw_documents(80, kind="token", background=0, seed=2))
    fit_rows, rows = fit_share(states, seed=0)
    assert sorted([*fit_rows, *rows]) == list(range(80))
    assert 8 < len(fit_rows) < 35
    with training_exemplars(model, train, level, folder=tmp_path, memory_budget=20_000) as training:
        knn = fit_on(model, training, states, fit_rows, level, neighbour_count=k, memory_budget=20_000)
        found = evaluated(model, states, level=level, rows=rows, knn=knn)

    (support,) = extract(model, train, level=level, inherit_labels=True, memory_budget=1 << 30)
    (points,) = extract(model, states, level=level, order=rows, memory_budget=1 << 30)
    assert support.vectors is not None
    assert points.vectors is not None
    assert (support.labels >= 0).all()
    view = approximate(
        exact_neighbours(points.vectors, support.vectors, k), Support(support.logits, support.labels), knn.parameters
    )
    known, network = points.labels >= 0, points.logits.argmax(axis=1)
    label = points.labels[known]
    assert found.knn is not None
    assert found.network is not None
    assert found.partitions is not None
    assert found.agreement is not None
    assert found.points == len(label)
    assert found.knn.accuracy.tallies.overall.correct == (view.predicted[known] == label).sum()
    assert found.network.accuracy.tallies.overall.correct == (network[known] == label).sum()
    assert found.agreement.correct == (network == view.predicted)[known].sum()
    partitions = found.partitions
    assert partitions.knn is not None
    assert partitions.network is not None
    by_q = np.bincount(view.match_count[known], minlength=k + 1)
    edges = partitions.agreement.match_edges
    assert partitions.agreement.count.sum(axis=1).tolist() == np.add.reduceat(by_q, edges[:-1]).tolist()
    assert partitions.knn.correct.sum() == found.knn.accuracy.tallies.overall.correct
    assert partitions.network.correct.sum() == found.network.accuracy.tallies.overall.correct
    assert partitions.agreement.correct.sum() == found.agreement.correct
    assert {path.name for path in tmp_path.iterdir()} == {"train", "states"}  # no file of vectors is left


def test_knn_of_a_trained_layer_is_about_as_often_right_as_the_network(tmp_path: Path) -> None:
    """Within a point, as the source finds, and both are less often right where q is small and where d is large."""
    counts = {"train": 1000, "fit": 500, "test": 3000}
    states = {
        name: write_states(tmp_path / name, draw_documents(count, seed=seed, noise=1.2))
        for seed, (name, count) in enumerate(counts.items())
    }
    model = train(states["train"], SMALL, tmp_path / "model", progress=lambda _: None, memory_budget=BUDGET).model
    rows = np.arange(counts["fit"])
    with training_exemplars(model, states["train"], "document", folder=tmp_path, memory_budget=BUDGET) as training:
        knn = fit_on(model, training, states["fit"], rows, "document", neighbour_count=10, memory_budget=BUDGET)
        found = evaluate_layer(model, states["test"], knn=knn, memory_budget=BUDGET)
    assert found.points == counts["test"]
    assert found.network is not None
    assert found.knn is not None
    assert found.partitions is not None
    network, by_knn = (one.accuracy.tallies.overall.share for one in (found.network, found.knn))
    assert network < 0.99, "some documents are hard"
    assert abs(network - by_knn) <= 0.01
    for grid in (found.partitions.network, found.partitions.knn):
        assert grid is not None
        by_q, by_d = (grid.correct.sum(axis=axis) / grid.count.sum(axis=axis) for axis in (1, 0))
        assert grid.match_edges[[1, -2]].tolist() == [1, 10]  # the first bin is q = 0, the last q = K
        assert by_q[0] < by_q[-1]
        assert by_d[0] > by_d[-1]


def test_without_labels_the_knn_is_compared_with_the_network_alone(tmp_path: Path) -> None:
    model = draw_model(DOCUMENTS)
    train, states = (write_states(tmp_path / name, draw_documents(40, seed=seed)) for seed, name in enumerate("ab"))
    with training_exemplars(model, train, "token", folder=tmp_path, memory_budget=BUDGET) as training:
        knn = fit_on(model, training, states, np.arange(20), "token", neighbour_count=3, memory_budget=BUDGET)
        found = evaluated(model, states, level="token", rows=np.arange(20, 40), knn=knn)
    assert (found.network, found.knn, found.evidence) == (None, None, ())
    assert found.agreement is not None
    assert found.points == found.agreement.count == states.lengths[20:].sum()
    assert found.partitions is not None
    assert found.partitions.network is None


def test_too_little_for_a_knn_is_told(tmp_path: Path) -> None:
    model = draw_model(DOCUMENTS)
    train = write_states(tmp_path / "train", draw_documents(10))
    with training_exemplars(model, train, "document", folder=tmp_path, memory_budget=BUDGET) as training:
        with pytest.raises(NotReadyError, match="expected at least 2 documents to fit the KNN on, got 1"):
            fit_on(model, training, train, np.arange(1), "document", neighbour_count=3, memory_budget=BUDGET)
        with pytest.raises(NotReadyError, match=r"expected at least 11 labelled training exemplars, .* got 10"):
            fit_on(model, training, train, np.arange(10), "document", neighbour_count=11, memory_budget=BUDGET)
    unlabelled = write_states(tmp_path / "none", [replace(document, label=-1) for document in draw_documents(3)])
    refused = training_exemplars(model, unlabelled, "token", folder=tmp_path, memory_budget=BUDGET)
    with pytest.raises(NotReadyError, match="expected labelled training exemplars, got none"), refused:
        pass


def test_states_without_any_label_are_refused(tmp_path: Path) -> None:
    documents = draw_documents(30, kind="token")
    for document in documents:
        assert document.token_labels is not None
        document.token_labels[:] = -1
    shards = write_states(tmp_path / "states", documents)
    with pytest.raises(NotReadyError, match="expected tokens with labels to evaluate by, got none among"):
        evaluated(draw_model(TOKENS), shards)
