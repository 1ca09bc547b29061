"""Fitting the KNN and the localizer: what is minimised, what is kept, and that it can be repeated."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from venn_admit.core.approximation import fit as localizer_training
from venn_admit.core.approximation import training
from venn_admit.core.approximation.distance_tiles import pairwise_distances
from venn_admit.core.approximation.fit import KnnFit, LocalizerFit, fit_knn, fit_localizer, localizer_rows
from venn_admit.core.approximation.knn import knn_logits
from venn_admit.core.approximation.localizer import localizer_logits
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.split_names import Split
from venn_admit.core.splits import assign_splits, hash_keys
from venn_admit.core.types import (
    BoolArray,
    Float32Array,
    FloatArray,
    IntArray,
    KnnParameters,
    Neighbours,
    Support,
    TrainingEpoch,
)
from venn_admit.errors import InvalidInputError, NotReadyError

EXAMPLES = Path(__file__).parents[3] / "examples" / "sentiment_small"
CLASS_COUNT = 3


@dataclass(frozen=True)
class Problem:
    """A made-up knn split: documents of one to nine rows, and a KNN to be found again."""

    vectors: Float32Array
    neighbours: Neighbours
    logits: Float32Array
    support: Support
    document_keys: list[str]
    row_keys: list[str]
    vp_vectors: Float32Array
    vp_logits: FloatArray

    def fit(self, *, seed: int = 0, max_epochs: int = 25) -> KnnFit:
        return fit_knn(
            self.neighbours,
            self.logits,
            self.support,
            document_keys=self.document_keys,
            row_keys=self.row_keys,
            seed=seed,
            max_epochs=max_epochs,
        )

    def fit_localizer(self, *, seed: int = 0, max_epochs: int = 25) -> LocalizerFit:
        return fit_localizer(
            pairwise_distances(self.vectors, self.vp_vectors),
            self.vp_logits,
            self.logits.astype(np.float64),
            document_keys=self.document_keys,
            row_keys=self.row_keys,
            seed=seed,
            max_epochs=max_epochs,
        )

    def reordered(self, rows: IntArray) -> "Problem":
        return replace(
            self,
            vectors=self.vectors[rows],
            neighbours=Neighbours(self.neighbours.indices[rows], self.neighbours.distances[rows]),
            logits=self.logits[rows],
            document_keys=[self.document_keys[row] for row in rows],
            row_keys=[self.row_keys[row] for row in rows],
        )

    def in_dev_half(self, seed: int) -> BoolArray:
        """Which rows are of the second half of the documents, in the order of their hash."""
        documents = sorted(set(self.document_keys))
        hashes = hash_keys(documents, seed=seed, purpose="knn documents").tolist()
        ranked = [document for _, document in sorted(zip(hashes, documents, strict=True))]
        dev_documents = set(ranked[(len(ranked) + 1) // 2 :])
        return np.array([document in dev_documents for document in self.document_keys])


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(0)
    training = rng.standard_normal((300, 4)).astype(np.float32)
    directions = 2.0 * rng.standard_normal((4, CLASS_COUNT))
    training_logits = (training @ directions).astype(np.float32)
    flipped = rng.random(300) < 0.2
    labels = np.where(flipped, rng.integers(0, CLASS_COUNT, 300), training_logits.argmax(axis=1))
    support = Support(training_logits, labels)
    document_numbers = np.repeat(np.arange(80), rng.integers(1, 10, 80))
    vectors = rng.standard_normal((len(document_numbers), 4)).astype(np.float32)
    neighbours = exact_neighbours(vectors, training, 5)
    true_parameters = KnnParameters(beta=np.array([0.6, -0.3, 0.0]), gamma=np.array([0.2, 0.6, 0.4]), eta=0.3)
    vp_vectors = rng.standard_normal((200, 4)).astype(np.float32)
    vp_neighbours = exact_neighbours(vp_vectors, training, 5)
    return Problem(
        vectors=vectors,
        neighbours=neighbours,
        logits=knn_logits(neighbours, support, true_parameters).astype(np.float32),
        support=support,
        document_keys=[f"document {number}" for number in document_numbers],
        row_keys=[f"row {row}" for row in range(len(document_numbers))],
        vp_vectors=vp_vectors,
        vp_logits=knn_logits(vp_neighbours, support, true_parameters),
    )


@pytest.fixture(scope="module")
def fit(problem: Problem) -> KnnFit:
    return problem.fit()


@pytest.fixture(scope="module")
def localizer_fit(problem: Problem) -> LocalizerFit:
    return problem.fit_localizer()


def parameters_of(line: TrainingEpoch) -> KnnParameters:
    return KnnParameters(
        beta=line.parameters[:CLASS_COUNT],
        gamma=line.parameters[CLASS_COUNT:-1],
        eta=float(line.parameters[-1]),
    )


def same_log(log: tuple[TrainingEpoch, ...], other: tuple[TrainingEpoch, ...]) -> bool:
    """Equal to the last bit, a NaN being equal to itself."""
    return len(log) == len(other) and all(
        (one.epoch, one.masked, one.discrepancies) == (two.epoch, two.masked, two.discrepancies)
        and np.array_equal([one.loss, *one.parameters], [two.loss, *two.parameters], equal_nan=True)
        for one, two in zip(log, other, strict=True)
    )


def test_sentiment_small_is_approximated() -> None:
    with np.load(EXAMPLES / "train.npz") as train, np.load(EXAMPLES / "valid.npz") as valid:
        document_keys = [str(document) for document in valid["doc"]]
        splits = np.array(assign_splits(document_keys, seed=0))
        rows = np.flatnonzero(splits == Split.KNN)
        neighbours = exact_neighbours(valid["r"][rows].astype(np.float32), train["r"].astype(np.float32), 25)
        logits = valid["f"][rows]
        support = Support(train["f"], train["y"].astype(np.int64))
    keys = [document_keys[row] for row in rows]
    fit = fit_knn(neighbours, logits, support, document_keys=keys, row_keys=keys, seed=0)
    assert 700 < fit.dev_count < 900
    assert fit.dev_discrepancies <= 0.04 * fit.dev_count


def test_training_finds_a_knn_again(fit: KnnFit, localizer_fit: LocalizerFit) -> None:
    assert fit.log[0].discrepancies >= 20
    assert fit.dev_discrepancies <= fit.log[0].discrepancies / 2
    assert localizer_fit.dev_discrepancies < localizer_fit.log[0].discrepancies
    unmasked = [line.loss for line in fit.log[1:] if not line.masked]
    assert unmasked[-1] < unmasked[0]


def test_starts_from_the_stated_parameters(problem: Problem, fit: KnnFit, localizer_fit: LocalizerFit) -> None:
    fit_half = ~problem.in_dev_half(0)
    start = parameters_of(fit.log[0])
    np.testing.assert_array_equal(start.beta, 0.0)
    np.testing.assert_array_equal(start.gamma, 1.0)
    assert start.eta == pytest.approx(np.median(problem.neighbours.distances[fit_half, 0]), rel=1e-12)
    distances = np.sort(pairwise_distances(problem.vectors[fit_half], problem.vp_vectors), axis=1)
    eta_loc = np.median(distances[:, 24] - distances[:, 0])
    assert localizer_fit.log[0].parameters == pytest.approx([eta_loc], rel=1e-12)


def test_halves_are_whole_documents(problem: Problem, fit: KnnFit, localizer_fit: LocalizerFit) -> None:
    dev_count = problem.in_dev_half(0).sum()
    for one in (fit, localizer_fit):
        assert (one.fit_count, one.dev_count) == (len(problem.logits) - dev_count, dev_count)


def test_log_agrees_with_the_knn(problem: Problem, fit: KnnFit) -> None:
    dev = problem.in_dev_half(0)
    neighbours = Neighbours(problem.neighbours.indices[dev], problem.neighbours.distances[dev])
    target = problem.logits[dev].argmax(axis=1)
    for line in fit.log:
        output = knn_logits(neighbours, problem.support, parameters_of(line))
        assert line.discrepancies == np.count_nonzero(output.argmax(axis=1) != target)


def test_log_agrees_with_the_localizer(problem: Problem, localizer_fit: LocalizerFit) -> None:
    dev = problem.in_dev_half(0)
    target = problem.logits[dev].argmax(axis=1)
    for line in localizer_fit.log:
        eta_loc = float(line.parameters[0])
        output = localizer_logits(problem.vectors[dev], problem.vp_vectors, problem.vp_logits, eta_loc)
        assert line.discrepancies == np.count_nonzero(output.argmax(axis=1) != target)


def test_first_loss_is_the_binary_cross_entropy(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "BATCH_ROWS", 10_000)  # one batch, evaluated at the start
    first = problem.fit(max_epochs=1).log[1]
    fit_half = ~problem.in_dev_half(0)
    output = knn_logits(
        Neighbours(problem.neighbours.indices[fit_half], problem.neighbours.distances[fit_half]),
        problem.support,
        KnnParameters(np.zeros(CLASS_COUNT), np.ones(CLASS_COUNT), problem.fit(max_epochs=0).parameters.eta),
    )
    wanted, given = (1 / (1 + np.exp(-z)) for z in (problem.logits[fit_half].astype(np.float64), output))
    losses = -(wanted * np.log(given) + (1 - wanted) * np.log(1 - given))
    assert first.loss == pytest.approx(losses.mean(), rel=1e-12)


class TorchAdadelta:
    """The steps of torch's class, taken with its defaults."""

    def __init__(self, parameters: Iterable[torch.Tensor]):
        self._optimizer = torch.optim.Adadelta(parameters, lr=training.LEARNING_RATE)

    def step(self, loss: torch.Tensor) -> None:
        self._optimizer.zero_grad()
        torch.autograd.backward(loss)
        self._optimizer.step()


def test_steps_are_those_of_torch_to_the_last_bit(
    problem: Problem, fit: KnnFit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_Adadelta", TorchAdadelta)
    for ours, theirs in zip(fit.log, problem.fit().log, strict=True):
        assert (repr(ours.loss), ours.parameters.tobytes()) == (repr(theirs.loss), theirs.parameters.tobytes())


def test_best_epoch_is_the_earliest_with_fewest_discrepancies(fit: KnnFit, localizer_fit: LocalizerFit) -> None:
    for one in (fit, localizer_fit):
        discrepancies = [line.discrepancies for line in one.log]
        assert one.best_epoch == int(np.argmin(discrepancies)) > 0
        assert one.dev_discrepancies == min(discrepancies)
    parameters = fit.parameters
    best = fit.log[fit.best_epoch].parameters
    np.testing.assert_array_equal([*parameters.beta, *parameters.gamma, parameters.eta], best)
    assert localizer_fit.eta_loc == localizer_fit.log[localizer_fit.best_epoch].parameters[0]


def test_points_are_masked_only_after_an_epoch_without_a_new_minimum(fit: KnnFit) -> None:
    masked = [line.masked for line in fit.log]
    discrepancies = [line.discrepancies for line in fit.log]
    assert masked[:2] == [False, False]
    assert {True, False} <= set(masked[2:])
    for epoch in range(2, len(fit.log)):
        assert masked[epoch] == (discrepancies[epoch - 1] >= min(discrepancies[: epoch - 1]))
    assert [line.epoch for line in fit.log] == list(range(26))


def test_nothing_is_learned_where_all_fit_points_agree(problem: Problem) -> None:
    """Where only dev points disagree, a masked epoch takes no step."""
    start = problem.fit(max_epochs=0).parameters
    agreeing = knn_logits(problem.neighbours, problem.support, start).astype(np.float32)
    dev = problem.in_dev_half(0)
    logits = np.where(dev[:, np.newaxis], -agreeing, agreeing)
    log = replace(problem, logits=logits).fit(max_epochs=6).log
    masked = [line for line in log if line.masked]
    assert masked
    for line in masked:
        assert np.isnan(line.loss)
        np.testing.assert_array_equal(line.parameters, log[line.epoch - 1].parameters)


def test_training_stops_without_discrepancies(problem: Problem) -> None:
    start = problem.fit(max_epochs=0).parameters
    agreeing = knn_logits(problem.neighbours, problem.support, start).astype(np.float32)
    fit = replace(problem, logits=agreeing).fit()
    assert (len(fit.log), fit.best_epoch, fit.dev_discrepancies) == (1, 0, 0)


def test_dev_rows_only_choose(problem: Problem) -> None:
    dev = problem.in_dev_half(0)
    changed = replace(problem, logits=np.where(dev[:, np.newaxis], -problem.logits, problem.logits))
    one, other = problem.fit(max_epochs=1).log, changed.fit(max_epochs=1).log
    np.testing.assert_array_equal(one[1].parameters, other[1].parameters)
    assert one[1].discrepancies != other[1].discrepancies


@pytest.mark.parametrize("order_seed", [1, 2])
def test_row_order_does_not_show(problem: Problem, fit: KnnFit, localizer_fit: LocalizerFit, order_seed: int) -> None:
    order = np.random.default_rng(order_seed).permutation(len(problem.logits))
    other = problem.reordered(order)
    assert same_log(other.fit().log, fit.log)
    assert same_log(other.fit_localizer().log, localizer_fit.log)


def test_the_seed_decides(problem: Problem, fit: KnnFit) -> None:
    assert same_log(problem.fit(seed=0).log, fit.log)
    assert not same_log(problem.fit(seed=1).log, fit.log)
    assert problem.fit(seed=-3, max_epochs=1).fit_count > 0


def test_training_is_a_function(problem: Problem) -> None:
    """Neither random state nor the number of threads is left changed, and read-only arrays are read only."""
    arrays = (
        problem.neighbours.indices,
        problem.neighbours.distances,
        problem.logits,
        problem.support.logits,
    )
    copies = [array.copy() for array in arrays]
    random_state = torch.get_rng_state()
    thread_count = torch.get_num_threads()
    torch.set_num_threads(2)
    seen: list[int] = []

    def count_threads(_line: TrainingEpoch) -> None:
        seen.append(torch.get_num_threads())

    try:
        for array in arrays:
            array.flags.writeable = False
        fit_knn(
            problem.neighbours,
            problem.logits,
            problem.support,
            document_keys=problem.document_keys,
            row_keys=problem.row_keys,
            seed=0,
            max_epochs=1,
            on_epoch=count_threads,
        )
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(thread_count)
        for array in arrays:
            array.flags.writeable = True
    assert seen == [1, 1]
    assert torch.equal(random_state, torch.get_rng_state())
    for before, after in zip(copies, arrays, strict=True):
        np.testing.assert_array_equal(before, after)


def test_small_blocks_count_alike(problem: Problem, fit: KnnFit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "EVALUATION_BYTES", 1)
    assert same_log(problem.fit().log, fit.log)


def test_eta_starts_from_positive_distances_where_most_points_have_copies(problem: Problem) -> None:
    distances = problem.neighbours.distances.copy()
    distances[:, :2] = 0.0
    copies = replace(problem, neighbours=Neighbours(problem.neighbours.indices, distances))
    expected = np.median(distances[~problem.in_dev_half(0), 2:])
    assert copies.fit(max_epochs=0).parameters.eta == pytest.approx(expected, rel=1e-12)
    nowhere = replace(problem, neighbours=Neighbours(problem.neighbours.indices, np.zeros_like(distances)))
    with pytest.raises(NotReadyError, match="got only zeros"):
        nowhere.fit()


def test_eta_loc_starts_from_the_median_where_neighbours_are_equally_far(problem: Problem) -> None:
    one_point = replace(problem, vp_vectors=problem.vp_vectors[:1], vp_logits=problem.vp_logits[:1])
    fit_half = ~problem.in_dev_half(0)
    expected = np.median(pairwise_distances(problem.vectors[fit_half], one_point.vp_vectors))
    assert one_point.fit_localizer(max_epochs=0).eta_loc == pytest.approx(expected, rel=1e-12)
    copies = replace(problem, vectors=np.zeros_like(problem.vectors), vp_vectors=np.zeros_like(problem.vp_vectors))
    with pytest.raises(NotReadyError, match="got a median of 0"):
        copies.fit_localizer()


def test_localizer_rows_are_a_sample_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [f"row {number}" for number in range(100)]
    assert sorted(localizer_rows(keys, 1000, seed=0)) == list(range(100))
    monkeypatch.setattr(localizer_training, "LOCALIZER_DISTANCES", 10_000)
    chosen = {keys[row] for row in localizer_rows(keys, 900, seed=0)}
    assert len(chosen) == 11
    assert {keys[::-1][row] for row in localizer_rows(keys[::-1], 900, seed=0)} == chosen
    assert {keys[row] for row in localizer_rows(keys, 900, seed=1)} != chosen
    assert len(localizer_rows(keys, 10**6, seed=0)) == 2


def test_refuses_too_few_data(problem: Problem) -> None:
    nothing = problem.reordered(np.empty(0, dtype=np.int64))
    with pytest.raises(NotReadyError, match=r"expected exemplars in split knn .* got none"):
        nothing.fit()
    with pytest.raises(NotReadyError, match=r"expected exemplars in split knn .* got none"):
        nothing.fit_localizer()
    with pytest.raises(NotReadyError, match="at least 2 documents"):
        replace(problem, document_keys=["one"] * len(problem.logits)).fit()
    with pytest.raises(NotReadyError, match=r"expected exemplars in split vp .* got none"):
        fit_localizer(np.empty((1, 0)), np.empty((0, 2)), np.zeros((1, 2)), document_keys=["a"], row_keys=["a"], seed=0)


def test_two_documents_are_enough(problem: Problem) -> None:
    rows = np.array([0, len(problem.logits) - 1])
    fit = problem.reordered(rows).fit(max_epochs=2)
    assert (fit.fit_count, fit.dev_count) == (1, 1)


def test_refuses_arrays_that_do_not_fit(problem: Problem) -> None:
    with pytest.raises(InvalidInputError, match="got row 'row 7' of document "):
        problem.reordered(np.array([0, 7, 100, 7])).fit()
    with pytest.raises(InvalidInputError, match="a document key and a row key for each"):
        replace(problem, row_keys=problem.row_keys[1:]).fit()
    with pytest.raises(InvalidInputError, match="logits of the same classifier"):
        replace(problem, logits=problem.logits[:, :2]).fit()
    with pytest.raises(InvalidInputError, match="neighbours and logits of the same rows"):
        replace(problem, logits=problem.logits[1:]).fit()
    with pytest.raises(InvalidInputError, match="expected distances"):
        replace(problem, vp_logits=problem.vp_logits[1:]).fit_localizer()
    with pytest.raises(InvalidInputError, match="max_epochs >= 0, got -1"):
        problem.fit(max_epochs=-1)
    with pytest.raises(InvalidInputError, match="neighbour_count >= 1, got 0"):
        fit_localizer(
            np.ones((2, 1)),
            np.zeros((1, 2)),
            np.zeros((2, 2)),
            document_keys=["a", "b"],
            row_keys=["a", "b"],
            seed=0,
            neighbour_count=0,
        )
