"""What a stored layer says of a document."""

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.layer.made_up import WIDTH, draw_model
from venn_admit.errors import InvalidInputError
from venn_admit.layer.contributions import sum_rows
from venn_admit.layer.outputs import (
    contributions_to_margin,
    exemplar_with_contributions,
    exemplars_of,
)
from venn_admit.layer.settings import LayerForm, LayerSettings

DOCUMENT = LayerSettings(LayerForm.DOCUMENT, filters=20)
TWO_LAYERS = LayerSettings(LayerForm.TWO_LAYERS, filters=20)


def draw_states(length: int, seed: int = 1) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.random.default_rng(seed).normal(size=(length, WIDTH)).astype(np.float32)


@pytest.mark.parametrize("settings", [DOCUMENT, TWO_LAYERS])
@pytest.mark.parametrize("length", [1, 2, 30])
def test_contributions_add_up_to_the_logits(settings: LayerSettings, length: int) -> None:
    model, states = draw_model(settings, class_count=3), draw_states(length)
    found = exemplar_with_contributions(model, states)[1]
    assert_allclose(found.contributions.sum(axis=0) + found.intercept, found.logits, rtol=0, atol=1e-5)
    assert_allclose(exemplars_of(model, states).logits[0], found.logits, rtol=1e-6)
    assert found.predicted == found.logits.argmax()


@pytest.mark.parametrize("settings", [DOCUMENT, TWO_LAYERS])
@pytest.mark.parametrize("length", [1, 7, 30])
def test_contributions_add_up_to_the_margin_over_the_runner_up(settings: LayerSettings, length: int) -> None:
    model = draw_model(settings, class_count=3)
    found = exemplar_with_contributions(model, draw_states(length), ["a"] * length)[1]
    behind, ahead = np.argsort(found.logits)[-2:]
    margin = found.logits[ahead] - found.logits[behind]
    of_each = found.contributions[:, ahead] - found.contributions[:, behind]  # (T,)
    constant = found.intercept[ahead] - found.intercept[behind]
    assert math.fsum([*of_each, constant]) == pytest.approx(margin, abs=1e-12)

    made = contributions_to_margin(model, found)
    assert (made.class_name, made.runner_up) == (model.class_names[ahead], model.class_names[behind])
    assert (made.margin, made.intercept) == pytest.approx((margin, constant), abs=1e-6)
    for share in made.tokens:
        assert share.contribution == pytest.approx(of_each[share.position], abs=1e-6)
    *parts, total = sum_rows(made)
    assert [row.name for row in (parts[-1], total)] == ["intercept", f"margin over {made.runner_up}"]
    assert sum(Decimal(row.figure) for row in parts) == Decimal(total.figure)


def test_with_two_linear_layers_one_gives_logits_and_the_other_local_scores() -> None:
    """Both against a loop over filters; vectors and local scores are those of one layer alone."""
    model, states = draw_model(TWO_LAYERS, class_count=3), draw_states(9)
    exemplar, found = exemplar_with_contributions(model, states)
    alone, of_one = exemplar_with_contributions(draw_model(DOCUMENT, class_count=3), states)
    assert (exemplar.vectors == alone.vectors).all()
    assert (found.scores == of_one.scores).all()
    assert (exemplars_of(model, states, "token").logits == found.scores.astype(np.float32)).all()
    applied = states.astype(np.float64) @ model.filter_weight.T.astype(np.float64) + model.filter_bias  # (T, M)
    expected = np.zeros((9, 3))
    for position in range(20):
        place = applied[:, position].argmax()
        expected[place] += model.global_weight[:, position] * max(applied[place, position], 0)
    assert_allclose(found.contributions, expected, rtol=0, atol=1e-10)
    assert_allclose(exemplar.logits[0], expected.sum(axis=0) + model.global_bias, rtol=1e-6)
    assert found.scores[found.representative, found.predicted] == found.scores[:, found.predicted].max()


def test_what_moves_all_logits_alike_contributes_nothing() -> None:
    """A token that lowers every class by the same is no evidence for one of them."""
    model = draw_model(DOCUMENT, class_count=3)
    found = exemplar_with_contributions(model, draw_states(9))[1]
    lowered = found.contributions - np.eye(9)[:, [4]] * 100  # (T, C), all classes at token 4
    other = contributions_to_margin(model, replace(found, contributions=lowered, logits=found.logits - 100))
    assert other == contributions_to_margin(model, found)


def test_scores_are_the_bias_where_no_filter_is_largest() -> None:
    model, states = draw_model(DOCUMENT), draw_states(60)
    found = exemplar_with_contributions(model, states)[1]
    bare = (found.contributions == 0).all(axis=1)
    assert bare.any(), "60 tokens share 20 filters"
    assert_allclose(found.scores[bare], np.tile(model.head_bias, (bare.sum(), 1)))


def test_detections_exceed_the_background() -> None:
    settings = LayerSettings(LayerForm.DOCUMENT, filters=20, background=1)
    states = draw_states(12)
    plain = exemplar_with_contributions(draw_model(DOCUMENT, class_count=3), states)[1]
    found = exemplar_with_contributions(draw_model(settings, class_count=3), states, tokens=["a"] * 12)[1]
    assert_allclose(found.scores, plain.scores - plain.scores[:, [1]])
    assert not found.detected[:, 1].any()
    assert (found.detected[:, [0, 2]] == (found.scores[:, [0, 2]] > 0)).all()
    assert found.tokens == ("a",) * 12


def test_vector_of_a_document_is_its_maximum_over_tokens() -> None:
    model, states = draw_model(DOCUMENT), draw_states(9)
    applied = states.astype(np.float64) @ model.filter_weight.T.astype(np.float64) + model.filter_bias
    assert_allclose(exemplars_of(model, states).vectors[0], np.maximum(applied, 0).max(axis=0), rtol=1e-6)


def test_representative_token_can_follow_the_maximum() -> None:
    settings = LayerSettings(LayerForm.DOCUMENT, filters=20, with_representative=True)
    model, states = draw_model(settings), draw_states(9)
    found, vector = exemplar_with_contributions(model, states)[1], exemplars_of(model, states).vectors[0]
    assert len(vector) == model.vector_length == 40
    assert found.scores[found.representative, found.predicted] == found.scores[:, found.predicted].max()
    assert_allclose(vector[20:], states[found.representative] @ model.filter_weight.T + model.filter_bias, rtol=1e-4)
    assert_allclose(vector[:20], exemplars_of(draw_model(DOCUMENT), states).vectors[0])


def test_vector_of_a_token_is_its_filters_before_relu() -> None:
    states = draw_states(9)
    for form in (LayerForm.LINEAR, LayerForm.DECOMPOSED):
        model = draw_model(LayerSettings(form, filters=20))
        vectors = exemplars_of(model, states).vectors
        assert_allclose(vectors, states @ model.filter_weight.T + model.filter_bias, rtol=1e-4, atol=1e-5)
        assert (vectors < 0).any()


def test_logits_of_a_token_are_linear_in_its_filters() -> None:
    model, states = draw_model(LayerSettings(LayerForm.LINEAR, filters=20)), draw_states(9)
    found = exemplars_of(model, states)
    assert_allclose(found.logits, found.vectors @ model.head_weight.T + model.head_bias, rtol=1e-4, atol=1e-4)


def test_decomposed_logits_of_a_token_are_its_scores_in_the_document() -> None:
    states = draw_states(9)
    model = draw_model(LayerSettings(LayerForm.DECOMPOSED, filters=20))
    expected = exemplar_with_contributions(draw_model(DOCUMENT), states)[1].scores
    assert_allclose(exemplars_of(model, states).logits, expected, rtol=1e-6)


def test_states_of_another_width_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"expected token states of shape \(T >= 1, 16\), got \(9, 15\)"):
        exemplars_of(draw_model(DOCUMENT), draw_states(9)[:, :15])


def test_contributions_are_of_documents() -> None:
    with pytest.raises(InvalidInputError, match="exemplars are documents, got one of form linear"):
        exemplar_with_contributions(draw_model(LayerSettings(LayerForm.LINEAR, filters=20)), draw_states(9))
