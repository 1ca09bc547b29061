"""The layer against plain torch, and its gradients against differences."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import one_hot

from tests.layer.made_up import WIDTH
from venn_admit.layer.layer import (
    Decomposition,
    MemoryLayer,
    batch_logits,
    decompose,
    document_logits,
    example_losses,
    min_max_losses,
)
from venn_admit.layer.settings import LayerForm, LayerSettings, Phase

LENGTHS = torch.tensor([5, 1, 7, 3])
FILTERS, CLASSES = 6, 3


PLAIN = LayerSettings(LayerForm.DOCUMENT, filters=FILTERS)
TWO_LAYERS = LayerSettings(LayerForm.TWO_LAYERS, filters=FILTERS)


def made(settings: LayerSettings) -> MemoryLayer:
    return MemoryLayer(settings, width=WIDTH, class_count=CLASSES, dtype=torch.float64)


def drawn(settings: LayerSettings = PLAIN, seed: int = 0) -> tuple[MemoryLayer, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(int(LENGTHS.sum()), WIDTH, generator=generator, dtype=torch.float64)
    return made(replace(settings, seed=seed)), states


def test_convolution_of_kernel_width_1_is_the_linear_map_of_each_token() -> None:
    layer, states = drawn()
    convolution = torch.nn.Conv1d(WIDTH, FILTERS, 1, dtype=torch.float64)
    with torch.no_grad():
        convolution.weight.copy_(layer.filter_weight.unsqueeze(2))
        assert convolution.bias is not None
        convolution.bias.copy_(layer.filter_bias)
    expected = convolution(states.T.unsqueeze(0)).squeeze(0).T  # (n, M)
    assert torch.allclose(layer.filters(states), expected, rtol=0, atol=1e-12)


def test_pooled_head_is_that_of_plain_torch() -> None:
    layer, states = drawn()
    parts = decompose(layer, states, LENGTHS)
    for number, document in enumerate(states.split_with_sizes(LENGTHS.tolist())):
        applied = torch.nn.functional.conv1d(
            document.T.unsqueeze(0), layer.filter_weight.unsqueeze(2), layer.filter_bias
        )  # (1, M, T)
        pooled = torch.nn.functional.max_pool1d(applied.relu(), len(document)).squeeze(2)  # (1, M)
        expected = torch.nn.functional.linear(pooled, layer.head_weight, layer.head_bias).squeeze(0)
        assert torch.allclose(parts.total[number], expected, rtol=0, atol=1e-12)


def test_scores_of_tokens_add_up_to_the_head() -> None:
    layer, states = drawn()
    parts = decompose(layer, states, LENGTHS)
    bias = layer.head_bias.reshape(1, -1, 1)
    assert torch.allclose((parts.scores - bias).sum(dim=2) + layer.head_bias, parts.total, rtol=0, atol=1e-12)
    assert parts.present.sum(dim=1).tolist() == LENGTHS.tolist()
    behind = ~parts.present.unsqueeze(1).expand_as(parts.scores)
    assert torch.equal(parts.scores[behind], bias.expand_as(parts.scores)[behind])


def test_scores_are_those_of_a_loop_over_filters() -> None:
    layer, states = drawn()
    scores = decompose(layer, states, LENGTHS).scores
    for number, document in enumerate(states.split_with_sizes(LENGTHS.tolist())):
        activations = layer.filters(document).relu()
        expected = layer.head_bias.detach().clone().repeat(len(document), 1)  # (T, C)
        for position in range(FILTERS):
            place = int(activations[:, position].argmax())
            expected[place] += layer.head_weight[:, position] * activations[place, position]
        assert torch.allclose(scores[number, :, : len(document)].T, expected, rtol=0, atol=1e-12)


def test_two_linear_layers_share_the_maxima() -> None:
    """Logits come from the second by a loop over filters, local scores from the first as with one layer alone."""
    (layer, states), (plain, _) = drawn(TWO_LAYERS), drawn(PLAIN)
    logits, parts = batch_logits(layer, states, LENGTHS, TWO_LAYERS)
    assert parts is not None
    assert torch.equal(parts.scores, decompose(plain, states, LENGTHS).scores)
    for number, document in enumerate(states.split_with_sizes(LENGTHS.tolist())):
        expected = layer.global_bias.detach().clone()  # (C,)
        for position in range(FILTERS):
            expected += layer.global_weight[:, position] * layer.filters(document)[:, position].relu().max()
        assert torch.allclose(logits[number], expected, rtol=0, atol=1e-12)


def test_batch_does_not_change_a_document() -> None:
    layer, states = drawn()
    together = document_logits(decompose(layer, states, LENGTHS))
    alone = [
        document_logits(decompose(layer, document, torch.tensor([len(document)])))
        for document in states.split_with_sizes(LENGTHS.tolist())
    ]
    assert torch.allclose(together, torch.cat(alone), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        PLAIN,
        LayerSettings(LayerForm.DOCUMENT, filters=FILTERS, background=1, min_max_weight=0.5),
        LayerSettings(LayerForm.DOCUMENT, filters=FILTERS, min_max_weight=0),
        TWO_LAYERS,
        replace(TWO_LAYERS, background=1, min_max_weight=0.5),
        replace(PLAIN, several_labels=True),
        replace(TWO_LAYERS, several_labels=True),
        LayerSettings(LayerForm.LINEAR, filters=FILTERS),
        LayerSettings(LayerForm.DECOMPOSED, filters=FILTERS),
    ],
    ids=lambda settings: f"{settings.form}-{settings.background}-{settings.min_max_weight}-{settings.several_labels}",
)
def test_gradients_are_those_of_differences(settings: LayerSettings) -> None:
    layer, states = drawn(settings, seed=3)
    count = len(LENGTHS) if settings.form.kind == "document" else len(states)
    labels = torch.arange(count) % CLASSES
    names = [name for name, _ in layer.named_parameters()]

    def loss(*values: torch.Tensor) -> torch.Tensor:
        changed = made(settings)
        for name, value in zip(names, values, strict=True):
            delattr(changed, name)
            setattr(changed, name, value)
        logits, parts = batch_logits(changed, states, LENGTHS, settings)
        return example_losses(logits, labels, parts, settings).sum()

    inputs = tuple(parameter.detach().clone().requires_grad_() for parameter in layer.parameters())
    assert torch.autograd.gradcheck(loss, inputs)


LABELS = torch.arange(len(LENGTHS)) % CLASSES
HEAD, GLOBAL, FILTER = (frozenset({f"{name}_weight", f"{name}_bias"}) for name in ("head", "global", "filter"))


def gradients(settings: LayerSettings, phase: Phase | None) -> dict[str, torch.Tensor]:
    """Those of the mean loss that are not 0, by parameter."""
    layer, states = drawn(settings, seed=3)
    logits, parts = batch_logits(layer, states, LENGTHS, settings, phase)
    torch.autograd.backward(example_losses(logits, LABELS, parts, settings, phase).mean())
    found = {name: parameter.grad for name, parameter in layer.named_parameters()}
    return {name: gradient for name, gradient in found.items() if gradient is not None and gradient.any()}


def test_each_linear_layer_learns_by_its_own_loss() -> None:
    first, second = gradients(TWO_LAYERS, "cross-entropy"), gradients(TWO_LAYERS, "min-max")
    both = gradients(TWO_LAYERS, None)
    assert first.keys() == GLOBAL | FILTER
    assert second.keys() == both.keys() == GLOBAL | FILTER | HEAD

    layer, states = drawn(TWO_LAYERS, seed=3)
    targets = one_hot(LABELS, CLASSES).double()
    torch.autograd.backward(min_max_losses(decompose(layer, states, LENGTHS), targets, None).mean())
    by_min_max = {name: parameter.grad for name, parameter in layer.named_parameters()}
    assert by_min_max["global_weight"] is by_min_max["global_bias"] is None
    for name in HEAD | FILTER:
        expected = by_min_max[name]
        assert expected is not None
        assert torch.equal(second[name], expected), "the cross-entropy does not move the filters any more"
        assert torch.allclose(both[name], expected + first.get(name, torch.zeros(())), rtol=0, atol=1e-12)
    for name in GLOBAL:
        assert torch.equal(second[name], first[name])


def parts_of(scores: list[list[list[float]]]) -> Decomposition:
    """Documents of one length with these token scores (B, C, T)."""
    tensor = torch.tensor(scores, dtype=torch.float64)
    present = torch.ones((tensor.shape[0], tensor.shape[2]), dtype=torch.bool)
    return Decomposition(tensor.sum(dim=2), tensor, present)


def cost(score: float, target: float) -> float:
    """Binary cross-entropy of a score, computed plainly."""
    share = 1 / (1 + np.exp(-score))
    return float(-(target * np.log(share) + (1 - target) * np.log(1 - share)))


def test_min_max_loss_of_two_classes_is_the_sources() -> None:
    """With the first class as background: max and min of the difference of scores, against (0, 0) or (1, 0)."""
    parts = parts_of([[[0.2, -1.0, 0.5], [1.5, 0.3, -2.0]], [[0.1, 0.0, 0.4], [-0.5, 2.0, 0.7]]])
    losses = min_max_losses(parts, torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double(), background=0)
    expected = [(cost(1.3, 1) + cost(-2.5, 0)) / 2, (cost(2.0, 0) + cost(-0.6, 0)) / 2]
    assert losses.tolist() == pytest.approx(expected, abs=1e-12)


def test_min_max_loss_without_background_takes_every_class() -> None:
    parts = parts_of([[[0.2, -1.0], [1.5, 0.3]]])
    losses = min_max_losses(parts, torch.tensor([[0.0, 1.0]]).double(), background=None)
    assert losses.item() == pytest.approx((cost(0.2, 0) + cost(1.5, 1) + cost(-1.0, 0) + cost(0.3, 0)) / 4, abs=1e-12)


def test_document_of_one_token_has_no_smallest_score() -> None:
    losses = min_max_losses(parts_of([[[0.2], [1.5]]]), torch.tensor([[0.0, 1.0]]).double(), background=0)
    assert losses.item() == pytest.approx(cost(1.3, 1), abs=1e-12)


def test_seed_decides_the_start() -> None:
    same, again, other = (made(replace(PLAIN, seed=seed)) for seed in (-4, -4, 5))
    assert torch.equal(same.filter_weight, again.filter_weight)
    assert not torch.equal(same.filter_weight, other.filter_weight)
