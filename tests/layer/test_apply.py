"""From token states to exemplars, and on to a file that can be ingested."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.layer.made_up import ENCODER, draw_documents, draw_model, write_states
from tests.patience import PATIENCE_SECONDS
from venn_admit.core.content import content_digests
from venn_admit.errors import InvalidInputError
from venn_admit.files import read_exemplars
from venn_admit.files.output.tables import write_exemplars
from venn_admit.files.records import ExemplarBatch
from venn_admit.layer.apply import extract
from venn_admit.layer.contributions import own_contributions
from venn_admit.layer.model import LayerModel
from venn_admit.layer.outputs import exemplar_with_contributions, exemplars_of
from venn_admit.layer.settings import LayerForm, LayerSettings
from venn_admit.layer.states.index import NOT_A_WORD, Kind
from venn_admit.layer.states.reader import StateShards

BUDGET = 256 << 20
DOCUMENTS = LayerSettings(LayerForm.DOCUMENT, filters=10)
TOKENS = LayerSettings(LayerForm.LINEAR, filters=10)


def digests(batches: list[ExemplarBatch]) -> dict[str, bytes]:
    """The content of every exemplar by its id, as ingestion compares it."""
    found: dict[str, bytes] = {}
    for batch in batches:
        assert batch.vectors is not None
        contents = content_digests(batch.vectors, batch.logits, batch.document_ids)
        found |= dict(zip(batch.external_ids, contents, strict=True))
    return found


def extracted(model: LayerModel, shards: StateShards, memory_budget: int = BUDGET) -> list[ExemplarBatch]:
    return list(extract(model, shards, memory_budget=memory_budget))


def test_documents_become_exemplars(tmp_path: Path) -> None:
    documents = draw_documents(20)
    model = draw_model(DOCUMENTS)
    (batch,) = extracted(model, write_states(tmp_path / "states", documents))
    assert batch.vectors is not None
    assert batch.vectors.shape == (20, 10)
    assert batch.external_ids == [document.external_id for document in documents]
    assert batch.labels.tolist() == [document.label for document in documents]
    own = [{**values} for values in batch.attributes]
    assert [values.pop("contributions") is not None for values in own] == [True] * len(documents)
    assert own == [one.attributes for one in documents]
    assert batch.document_ids == [None] * 20
    for row, document in enumerate(documents):
        expected = exemplars_of(model, document.states)
        assert (batch.vectors[row] == expected.vectors).all()
        assert (batch.logits[row] == expected.logits).all()
        carried = own_contributions(batch.attributes[row], model.class_names, batch.logits[row].tolist())
        assert carried is not None
        predicted = int(expected.logits[0].argmax())
        assert carried.class_name == model.class_names[predicted]
        behind, ahead = np.sort(expected.logits[0])[-2:]
        assert carried.margin == pytest.approx(ahead - behind, abs=1e-5)


def test_words_become_exemplars_of_their_document(tmp_path: Path) -> None:
    documents = draw_documents(20, kind="token", background=0)
    batches = extracted(draw_model(TOKENS), write_states(tmp_path / "states", documents), memory_budget=20_000)
    assert len(batches) > 3
    rows = [
        (f"{document.external_id}:{place}", document.external_id, int(label), document.tokens[place], place)
        for document in documents
        if document.token_labels is not None
        for place, label in enumerate(document.token_labels)
        if label != NOT_A_WORD
    ]
    found = [
        (external_id, document_id, int(label), attributes["token"], attributes["position"])
        for batch in batches
        for external_id, document_id, label, attributes in zip(
            batch.external_ids, batch.document_ids, batch.labels, batch.attributes, strict=True
        )
    ]
    assert found == rows
    assert [batch.first_row for batch in batches] == np.cumsum([0] + [len(b.labels) for b in batches[:-1]]).tolist()


@pytest.mark.parametrize("form", LayerForm)
def test_exemplar_has_the_same_bits_whatever_it_comes_with(form: LayerForm, tmp_path: Path) -> None:
    documents = draw_documents(40, kind=form.kind)
    model = draw_model(LayerSettings(form, filters=37))
    whole = digests(extracted(model, write_states(tmp_path / "all", documents)))
    small = digests(extracted(model, write_states(tmp_path / "again", documents[::-1]), memory_budget=1))
    alone = digests(extracted(model, write_states(tmp_path / "one", documents[7:8])))
    assert whole == small
    assert alone.items() <= whole.items()


@pytest.mark.parametrize("settings", [DOCUMENTS, TOKENS], ids=["documents", "tokens"])
def test_file_of_exemplars_can_be_ingested(settings: LayerSettings, tmp_path: Path) -> None:
    documents = draw_documents(30, kind=settings.form.kind)
    documents[3] = replace(documents[3], attributes={"text": 'é "quoted"', "nested": {"a": [1, None]}})
    shards, model = write_states(tmp_path / "states", documents), draw_model(settings)
    path = tmp_path / "exemplars.parquet"
    rows = write_exemplars(path, extract(model, shards, memory_budget=20_000), extractor=model.extractor_version)
    expected = extracted(model, shards)
    read = list(read_exemplars(path, dimension=10, class_count=2))
    assert rows == sum(len(batch.labels) for batch in expected) == sum(len(batch.labels) for batch in read)
    assert digests(read) == digests(expected)
    assert {batch.extractor for batch in [*read, *expected]} == {model.extractor_version}
    for name in ("labels", "attributes", "document_ids"):
        assert [value for batch in read for value in getattr(batch, name)] == [
            value for batch in expected for value in getattr(batch, name)
        ]


def test_interrupted_writing_leaves_what_was_there(tmp_path: Path) -> None:
    shards, model, path = (
        write_states(tmp_path / "states", draw_documents(30)),
        draw_model(DOCUMENTS),
        tmp_path / "e.parquet",
    )
    write_exemplars(path, extract(model, shards, memory_budget=BUDGET))
    before = path.read_bytes()

    def broken() -> object:
        yield from extract(model, shards, memory_budget=BUDGET)
        raise InvalidInputError("a document is invalid")

    with pytest.raises(InvalidInputError, match="is invalid"):
        write_exemplars(path, broken())  # type: ignore[arg-type]
    assert path.read_bytes() == before
    with pytest.raises(InvalidInputError, match="expected at least one exemplar"):
        write_exemplars(path, [])
    assert {file.name for file in tmp_path.iterdir()} == {"states", "e.parquet"}


def test_tokens_of_a_layer_for_documents_are_exemplars_of_another_version(tmp_path: Path) -> None:
    documents, model = draw_documents(20), draw_model(replace(DOCUMENTS, with_representative=True))
    shards = write_states(tmp_path / "states", documents)
    (batch,) = extract(model, shards, level="token", memory_budget=BUDGET)
    assert batch.vectors is not None
    assert batch.extractor == model.version_at("token") != model.extractor_version == model.version_at("document")
    assert batch.vectors.shape == (shards.token_count, model.vector_length_at("token")) == (shards.token_count, 10)
    assert set(batch.labels.tolist()) == {-1}
    local = np.concatenate([exemplar_with_contributions(model, document.states)[1].scores for document in documents])
    np.testing.assert_array_equal(batch.logits, local.astype(np.float32))
    applied = documents[0].states.astype(np.float64) @ model.filter_weight.T + model.filter_bias
    np.testing.assert_allclose(batch.vectors[: len(applied)], applied, rtol=1e-5)
    (inheriting,) = extract(model, shards, level="token", inherit_labels=True, memory_budget=BUDGET)
    assert inheriting.labels.tolist() == np.repeat(shards.labels, shards.lengths).tolist()
    labelled = write_states(tmp_path / "labelled", draw_documents(3, kind="token"))
    with pytest.raises(InvalidInputError, match="document-labels: expected labels of each document, which its tokens"):
        list(extract(model, labelled, level="token", inherit_labels=True, memory_budget=BUDGET))


@pytest.mark.parametrize(("level", "name"), [("document", "contributions"), ("token", "token"), ("token", "position")])
def test_an_attribute_never_hides_one_that_is_added(level: Kind, name: str, tmp_path: Path) -> None:
    documents = [replace(document, attributes={name: "mine"}) for document in draw_documents(3)]
    with pytest.raises(InvalidInputError, match=f"document 'made up 0': expected no attribute '{name}'"):
        list(extract(draw_model(DOCUMENTS), write_states(tmp_path / "s", documents), level=level, memory_budget=BUDGET))


def test_states_of_another_encoder_are_refused(tmp_path: Path) -> None:
    other = ENCODER.model_copy(update={"name": "another"})
    shards = write_states(tmp_path / "states", draw_documents(3), encoder=other)
    with pytest.raises(
        InvalidInputError, match="expected states of the encoder that the memory layer was trained with"
    ):
        extracted(draw_model(DOCUMENTS), shards)


def test_other_classes_are_refused(tmp_path: Path) -> None:
    shards = write_states(tmp_path / "states", draw_documents(3), class_count=3)
    with pytest.raises(InvalidInputError, match="expected the classes 'class 0', 'class 1', got"):
        extracted(draw_model(DOCUMENTS), shards)


@pytest.mark.processes
def test_applying_and_evaluating_need_no_torch() -> None:
    modules = [f"venn_admit.layer.{name}" for name in ("apply", "evaluation", "settings", "states.writer")]
    code = f"import sys, {', '.join(modules)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=PATIENCE_SECONDS).returncode == 0
