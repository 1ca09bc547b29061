"""Documents with any number of labels: one layer for all of them, and a task of two classes for each."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from tests.layer.made_up import ENCODER, SMALL, WIDTH, draw_documents, draw_model, write_states
from venn_admit.core.types import Float32Array
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.layer.apply import extract
from venn_admit.layer.batches import split_dev
from venn_admit.layer.layer import LossTally, MemoryLayer, Objective, labels_of_sets
from venn_admit.layer.model import LayerModel
from venn_admit.layer.outputs import exemplar_with_contributions, exemplars_of
from venn_admit.layer.settings import PRESENCE, LayerForm, LayerSettings
from venn_admit.layer.states.index import StateDocument
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.states.writer import ShardWriter
from venn_admit.layer.training import train

BUDGET = 256 << 20
LABELS = ("billing", "delivery", "product")
DOCUMENT = replace(SMALL, several_labels=True)
TWO_LAYERS = replace(DOCUMENT, form=LayerForm.TWO_LAYERS, min_max_weight=0.5)
FORMS = pytest.mark.parametrize("settings", [DOCUMENT, TWO_LAYERS, replace(DOCUMENT, min_max_weight=0)])


def documents_with_labels(count: int, seed: int = 0) -> list[StateDocument]:
    """Documents whose tokens are evidence for each of their labels, none to three; every tenth has unknown labels."""
    rng = np.random.default_rng(seed)
    directions = np.random.default_rng(99).normal(size=(len(LABELS), WIDTH))
    documents = []
    for number in range(count):
        has, length = rng.random(len(LABELS)) < 0.4, int(rng.integers(4, 20))
        states = rng.normal(scale=0.6, size=(length, WIDTH))
        for place, label in enumerate(np.flatnonzero(has)):
            states[place] += 2 * directions[label]
        known = number % 10 != 9
        documents.append(
            StateDocument(
                external_id=f"made up {number}",
                states=states.astype(np.float32),
                label=int((has * 2 ** np.arange(len(LABELS))).sum()) if known else -1,
                token_labels=None,
                tokens=tuple(f"t{place}" for place in range(length)),
                attributes={},
            )
        )
    return documents


def write_sets(folder: Path, documents: list[StateDocument], *, labels: tuple[str, ...] = LABELS) -> StateShards:
    with ShardWriter(
        folder,
        kind="document",
        width=WIDTH,
        class_names=labels,
        encoder=ENCODER,
        dtype="float32",
        several_labels=True,
        memory_budget=1 << 20,
    ) as writer:
        for document in documents:
            writer.append(document)
    return StateShards(folder)


def trained(folder: Path, shards: StateShards, settings: LayerSettings) -> LayerModel:
    return train(shards, settings, folder, progress=lambda _: None, memory_budget=BUDGET).model


def has_label(document: StateDocument, label: int) -> int:
    return document.label >> label & 1


def logits_and_scores(model: LayerModel, states: np.ndarray) -> tuple[list[float], list[list[float]]]:
    """The logit of each label, and its local score at each token, filter by filter."""
    applied = states.astype(np.float64) @ model.filter_weight.T.astype(np.float64) + model.filter_bias  # (T, M)
    logits, scores = [], []
    for label in range(len(LABELS)):
        local, pooled = [float(model.head_bias[label])] * len(states), []
        for number in range(applied.shape[1]):
            place = int(applied[:, number].argmax())
            pooled.append(max(float(applied[place, number]), 0.0))
            local[place] += float(model.head_weight[label, number]) * pooled[-1]
        if model.settings.form is LayerForm.TWO_LAYERS:
            weight, bias = model.global_weight[label], float(model.global_bias[label])
            logits.append(bias + sum(float(w) * p for w, p in zip(weight, pooled, strict=True)))
        else:
            total = sum(float(w) * p for w, p in zip(model.head_weight[label], pooled, strict=True))
            logits.append(total + float(model.head_bias[label]) + max(local))
        scores.append(local)
    return logits, scores


def cost(score: float, target: int) -> float:
    """Binary cross-entropy."""
    return float(np.logaddexp(0, -score if target else score))


def loss_of(model: LayerModel, document: StateDocument) -> float:
    """The mean over labels of the cross-entropy of presence, and of the min-max loss of the label's local scores."""
    logits, scores = logits_and_scores(model, document.states)
    total = 0.0
    for label in range(len(LABELS)):
        has = has_label(document, label)
        ends = cost(max(scores[label]), has) + cost(min(scores[label]), 0)
        total += cost(logits[label], has) + model.settings.min_max_weight * ends / 2
    return total / len(LABELS)


@FORMS
def test_the_loss_and_the_log_of_a_training_are_those_of_a_loop(tmp_path: Path, settings: LayerSettings) -> None:
    """On the dev split, with the parameters of the best epoch."""
    documents = documents_with_labels(200)
    shards = write_sets(tmp_path / "states", documents)
    done = train(shards, settings, tmp_path / "model", progress=lambda _: None, memory_budget=BUDGET)
    _, dev = split_dev(shards, np.flatnonzero(shards.labels >= 0), dev_share=settings.dev_share, seed=settings.seed)
    held = [documents[row] for row in dev.tolist()]
    line = done.log[done.best_epoch - 1]
    assert line.dev_loss == pytest.approx(np.mean([loss_of(done.model, one) for one in held]), rel=1e-5)
    pairs = [
        (has_label(one, label), int(logit > 0))
        for one in held
        for label, logit in enumerate(logits_and_scores(done.model, one.states)[0])
    ]
    assert line.dev_accuracy == pytest.approx(np.mean([truly == said for truly, said in pairs]))
    f_half = []
    for which in (0, 1):
        hits = sum(truly == said == which for truly, said in pairs)
        truly, said = (sum(pair[side] == which for pair in pairs) for side in (0, 1))
        precision, recall = hits / said, hits / truly
        f_half.append(1.25 * precision * recall / (0.25 * precision + recall))
    assert line.dev_f_half == pytest.approx(np.mean(f_half))


def test_every_set_of_63_labels_is_read_as_it_is_written(tmp_path: Path) -> None:
    names = tuple(f"label {number}" for number in range(63))
    rng = np.random.default_rng(0)
    has = rng.random((20, 63)) < 0.5
    has[0], has[1] = True, False
    drawn = documents_with_labels(20)
    documents = [
        replace(one, label=sum(2**number for number in np.flatnonzero(has[row]).tolist()))
        for row, one in enumerate(drawn)
    ]
    shards = write_sets(tmp_path / "states", documents, labels=names)
    assert (labels_of_sets(torch.from_numpy(shards.labels), 63).numpy() == has).all()
    for number, name in enumerate(names):
        assert (shards.of_label(name).labels == has[:, number]).all()


@FORMS
def test_each_label_is_a_task_of_two_classes(tmp_path: Path, settings: LayerSettings) -> None:
    """The logit of absent is 0, and that of present the label's; labels, vectors and local scores by a loop."""
    documents = documents_with_labels(200)
    shards = write_sets(tmp_path / "states", documents)
    whole = trained(tmp_path / "model", shards, settings)
    right, versions = 0, set()
    vectors: list[Float32Array] = []
    for number, label in enumerate(LABELS):
        model = whole.of_label(label)
        assert model.class_names == PRESENCE
        (batch,) = extract(model, shards.of_label(label), memory_budget=BUDGET)
        assert batch.labels.tolist() == [
            -1 if document.label < 0 else has_label(document, number) for document in documents
        ]
        assert batch.vectors is not None
        versions.add(model.extractor_version)
        vectors.append(batch.vectors)
        for row, document in enumerate(documents):
            logits, scores = logits_and_scores(whole, document.states)
            assert batch.logits[row, 0] == 0
            assert batch.logits[row, 1] == pytest.approx(logits[number], abs=1e-5)
            if row < 20:
                exemplar, found = exemplar_with_contributions(model, document.states)
                assert_allclose(found.scores[:, 1], scores[number], rtol=0, atol=1e-5)
                assert not found.scores[:, 0].any()
                assert (found.detected[:, 1] == (found.scores[:, 1] > 0)).all()
                assert not found.detected[:, 0].any()
                assert (exemplar.vectors[0] == exemplars_of(model, document.states).vectors[0]).all()
            right += int(batch.logits[row].argmax()) == batch.labels[row]
    assert len(versions | {whole.extractor_version}) == 4, "exemplars of two labels are never mixed"
    assert all((vector == vectors[0]).all() for vector in vectors), "the filters are the same for all labels"
    assert right > 0.8 * 3 * sum(document.label >= 0 for document in documents)


def test_an_interrupted_training_and_a_second_one_end_with_the_same_layer(tmp_path: Path) -> None:
    shards = write_sets(tmp_path / "states", documents_with_labels(100))
    once = trained(tmp_path / "one", shards, DOCUMENT)
    assert trained(tmp_path / "one", shards, SMALL).extractor_version == once.extractor_version, "read again"
    assert trained(tmp_path / "other", shards, SMALL).extractor_version == once.extractor_version
    assert once.settings.several_labels


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ([0b001, 0b011] * 30, "label 'billing' to train on, got none without it"),
        ([0b001, 0b010] * 30, "label 'product' to train on, got none with it"),
    ],
)
def test_a_label_that_no_document_has_or_lacks_is_refused(tmp_path: Path, sets: list[int], said: str) -> None:
    documents = [replace(one, label=label) for one, label in zip(documents_with_labels(60), sets, strict=True)]
    with pytest.raises(NotReadyError, match=said):
        trained(tmp_path / "model", write_sets(tmp_path / "states", documents), DOCUMENT)


def test_labels_and_layers_of_the_other_kind_are_refused(tmp_path: Path) -> None:
    several = draw_model(DOCUMENT, class_count=2)
    single = draw_model(SMALL, class_count=2)
    sets = write_sets(tmp_path / "sets", documents_with_labels(5), labels=("class 0", "class 1", "class 2"))
    plain = write_states(tmp_path / "plain", draw_documents(5))
    with pytest.raises(InvalidInputError, match="label: expected one of the labels 'class 0', 'class 1', got none"):
        several.of_label(None)
    with pytest.raises(InvalidInputError, match="got 'class 2'; choose one of them"):
        several.of_label("class 2")
    with pytest.raises(InvalidInputError, match="label: expected none with a memory layer of one label"):
        single.of_label("class 0")
    assert single.of_label(None) is single
    with pytest.raises(InvalidInputError, match="expected documents with any number of labels"):
        plain.of_label("class 0")
    for model, shards in (
        (several, plain),
        (draw_model(SMALL, class_count=3), sets),
        (draw_model(DOCUMENT, class_count=3), sets),
    ):
        with pytest.raises(InvalidInputError, match="expected one label of each document, got several; choose"):
            next(extract(model, shards, memory_budget=BUDGET))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"background": 0}, "background: expected none, because documents have several labels, got a class"),
        ({"class_weights": "balanced"}, "balanced: expected none, because documents have several labels, got balanced"),
        ({"form": LayerForm.LINEAR}, "labels: expected one of each token, got several"),
    ],
)
def test_settings_that_several_labels_cannot_have_are_refused(changed: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        replace(DOCUMENT, **changed)  # type: ignore[arg-type]


def test_a_batch_without_known_labels_has_no_loss() -> None:
    layer = MemoryLayer(DOCUMENT, width=WIDTH, class_count=3)
    states, lengths = torch.zeros((5, WIDTH)), np.array([2, 3])
    objective, tally = Objective(DOCUMENT, np.array([1, 1, 1])), LossTally(3)
    assert objective.loss(layer, states, lengths, np.array([-1, -1]), tally) is None
