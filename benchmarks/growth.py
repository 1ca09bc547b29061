"""How time grows over a decade of each size, and that the memory of a job's chunks does not grow with the job."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from benchmarks.data import draw_vectors, draw_view, generator
from benchmarks.measure import Measurement, Work, compare
from venn_admit.core.approximation.knn import calibration_points
from venn_admit.core.approximation.localizer import category_weight
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.venn_admit.decide import Localizer, decide
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.types import Approximation

_NEIGHBOUR_COUNT = 25
_DIMENSION = 128
_OMEGA = 0.5
_STEPS = (1.0, 10**0.5, 10.0)
_CHUNK_ROWS = 2048


def measure(large: bool) -> Iterator[Measurement]:
    scale = 4 if large else 1
    yield _growth("bands, sets, categories: m", 10_000 * scale, lambda m: _bands(m, 2_000, 10))
    yield _growth("bands, sets, categories: n", 10_000 * scale, lambda n: _bands(2_000, n, 10))
    yield _growth("bands, sets, categories: C", 10, lambda count: _bands(5_000 * scale, 2_000, count))
    yield _growth("localizer, category weights: m", 256 * scale, lambda m: _localizer(m, 4096 * scale))
    yield _growth("localizer, category weights: n", 2048 * scale, lambda n: _localizer(512 * scale, n))
    yield _growth("exact neighbours: m", 256 * scale, lambda m: _neighbours(m, 10_000 * scale))
    yield _growth("exact neighbours: N", 5_000 * scale, lambda total: _neighbours(512 * scale, total))
    yield _chunks(scale)


def _growth(what: str, smallest: int, work_of: Callable[[int], Work]) -> Measurement:
    """Ten times as much against the smallest; the exponent is fitted by least squares on logarithms."""
    sizes = [round(smallest * step) for step in _STEPS]
    least = work_of(smallest)
    found = [
        compare(what, f"{smallest:,} to {size:,}", "a tenth of it", work_of(size), least, turns=3) for size in sizes[1:]
    ]
    times = [1.0, *(1 / measurement.ratio for measurement in found)]
    exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    return replace(found[-1], note=f"exponent {exponent:.2f}")


def _bands(scored: int, calibrating: int, class_count: int) -> Work:
    """Indices of as many points of mc as of vp, and sets and categories of the scored."""
    rng = generator()
    points = calibration_points(*draw_view(rng, calibrating, class_count, _NEIGHBOUR_COUNT))
    view, _ = draw_view(rng, scored, class_count, _NEIGHBOUR_COUNT)
    settings = make_settings(class_count, _NEIGHBOUR_COUNT, kappa=1)

    def work() -> None:
        admit = AdmitIndex(points, class_count=class_count, settings=settings, omega=_OMEGA)
        sets = admit.sets(view.logits, view.predicted, view.match_count, view.distance)
        every = np.ones(calibrating, dtype=np.bool_)
        venn = VennIndex(points, every, class_count=class_count, settings=settings, omega=_OMEGA)
        venn.categories(sets.singleton, view.predicted, view.match_count, view.distance)

    return work


def _localizer(query_count: int, total: int) -> Work:
    vectors = draw_vectors(query_count + total, _DIMENSION)
    low = generator().integers(total, size=query_count)
    high = np.minimum(low + total // 100, total)
    return lambda: category_weight(vectors[:query_count], vectors[query_count:], low, high, eta_loc=5.0)


def _neighbours(query_count: int, total: int) -> Work:
    vectors = draw_vectors(query_count + total, _DIMENSION)
    return lambda: exact_neighbours(vectors[:query_count], vectors[query_count:], _NEIGHBOUR_COUNT)


def _chunks(scale: int) -> Measurement:
    """The chunks of a job one after another, from neighbours to decisions, against half as many: peaks are alike."""
    chunk_count, class_count, total = 10, 10, 4096 * scale
    rng = generator()
    points = calibration_points(*draw_view(rng, total, class_count, _NEIGHBOUR_COUNT))
    settings = make_settings(class_count, _NEIGHBOUR_COUNT, kappa=1)
    admit = AdmitIndex(points, class_count=class_count, settings=settings, omega=_OMEGA)
    every = np.ones(total, dtype=np.bool_)
    venn = VennIndex(points, every, class_count=class_count, settings=settings, omega=_OMEGA)
    vectors = draw_vectors(total + chunk_count * _CHUNK_ROWS, _DIMENSION)
    support, queries = vectors[:total], vectors[total:]
    view, _ = draw_view(rng, len(queries), class_count, _NEIGHBOUR_COUNT)

    def run(chunks: int) -> None:
        for start in range(0, chunks * _CHUNK_ROWS, _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            found = exact_neighbours(queries[rows], support, _NEIGHBOUR_COUNT)
            decide(
                admit,
                venn,
                Approximation(view.logits[rows], view.predicted[rows], view.match_count[rows], found.distances[:, 0]),
                settings,
                neighbour_count=_NEIGHBOUR_COUNT,
                require_full_match=False,
                localizer=Localizer.over(support, 5.0, queries[rows]),
            )

    size = f"{chunk_count} chunks of {_CHUNK_ROWS:,}"
    half = chunk_count // 2
    return compare("chunks of a job", size, "half as many", lambda: run(chunk_count), lambda: run(half), turns=2)
