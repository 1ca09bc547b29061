"""The memory layer in NumPy, one document at a time, against the one in torch that was trained, in mini-batches."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from tests.layer.made_up import WIDTH, draw_documents, draw_model, lengths_of
from venn_admit.layer.layer import MemoryLayer, batch_logits, decompose
from venn_admit.layer.outputs import exemplar_with_contributions, exemplars_of
from venn_admit.layer.settings import LayerForm, LayerSettings


@pytest.mark.parametrize("form", LayerForm)
def test_stored_layer_says_what_the_trained_one_does(form: LayerForm) -> None:
    settings = LayerSettings(form, filters=18)
    model, documents = draw_model(settings, class_count=3), draw_documents(20, class_count=3)
    layer = MemoryLayer(settings, width=WIDTH, class_count=3, dtype=torch.float64)
    with torch.no_grad():
        for name, values in model.parameters().items():
            getattr(layer, name).copy_(torch.from_numpy(values))
        states = torch.from_numpy(np.concatenate([document.states for document in documents])).double()
        lengths = torch.from_numpy(lengths_of(documents))
        logits, _ = batch_logits(layer, states, lengths, settings)
        scores = decompose(layer, states, lengths).scores
    found = np.concatenate([exemplars_of(model, document.states).logits for document in documents])
    assert_allclose(found, logits.numpy(), rtol=1e-6, atol=1e-6)
    if form is LayerForm.DOCUMENT:
        for number, document in enumerate(documents):
            expected = scores[number, :, : len(document.states)].T.numpy()
            assert_allclose(exemplar_with_contributions(model, document.states)[1].scores, expected, rtol=0, atol=1e-10)
