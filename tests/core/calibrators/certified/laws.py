"""Laws of points with a score, whose true shares are known or can be counted on a large draw."""

from dataclasses import replace

import numpy as np

from venn_admit.core.calibrators.certified.points import CertificatePoints, PointGroups
from venn_admit.core.types import Float32Array, FloatArray, IntArray


def points_of(score: FloatArray, predicted: IntArray, label: IntArray, *, size: int = 1) -> CertificatePoints:
    """Points in documents of one size, one after the other."""
    return CertificatePoints(score, predicted, label, np.arange(len(score)) // size)


def graded_points(
    rng: np.random.Generator,
    documents: int,
    *,
    size: int = 1,
    frequencies: tuple[float, ...] = (0.5, 0.5),
    sharpness: float = 4.0,
    dependence: float = 0.0,
) -> CertificatePoints:
    """Points whose score is the probability of being right, in [0.4, 1].

    Args:
        rng: The generator.
        documents: The number of documents.
        size: The number of points in each.
        frequencies: (C,) of the predicted classes; a wrong point's label is of another class, by the same frequencies.
        sharpness: > 0; the mean score rises with it.
        dependence: In [0, 1), the part of an outcome that the points of a document share: with probability
            `dependence` a point takes the document's uniform number instead of one of its own.
    """
    count = documents * size
    class_count = len(frequencies)
    predicted = rng.choice(class_count, count, p=frequencies)
    score = np.round(1 - 0.6 * rng.beta(1, sharpness, count), 3)
    shared = np.repeat(rng.random(documents), size)
    uniform = np.where(rng.random(count) < dependence, shared, rng.random(count))
    other = rng.choice(class_count, count, p=frequencies)
    other = np.where(other == predicted, (predicted + 1) % class_count, other)
    label = np.where(uniform < score, predicted, other)
    return points_of(score, predicted, label, size=size)


def network_points(
    rng: np.random.Generator,
    documents: int,
    *,
    frequencies: tuple[float, ...],
    apart: tuple[float, ...],
    overconfidence: float = 1.0,
    size: int = 1,
) -> tuple[Float32Array, IntArray, IntArray]:
    """Logits (n, C), labels and documents of normal classes, of which the network knows the law.

    Args:
        rng: The generator.
        documents: The number of documents.
        frequencies: (C,) of the true classes.
        apart: (C,) how far the mean of each class lies from that of the others, in standard deviations.
        overconfidence: What the logits are multiplied by.
        size: The number of points in each document, which share their noise.
    """
    means, document = np.array(apart), np.repeat(np.arange(documents), size)
    label = rng.choice(len(means), len(document), p=frequencies)
    seen = rng.normal(size=(len(document), len(means)))
    if size > 1:
        seen = (seen + rng.normal(size=(documents, len(means)))[document]) / np.sqrt(2)
    seen[np.arange(len(label)), label] += means[label]
    logits = np.log(frequencies) + seen * means - means**2 / 2
    return (overconfidence * logits).astype(np.float32), label, document


def with_groups(
    rng: np.random.Generator,
    points: CertificatePoints,
    attributes: dict[str, tuple[dict[str, float], dict[str, float]]],
) -> CertificatePoints:
    """Give points of two classes groups by chance.

    Args:
        rng: The generator.
        points: The points.
        attributes: The frequency of each value of an attribute, the rest being points without one, and how often a
            right prediction becomes a wrong one for a value; the attributes are in the order of their names.
    """
    label, groups = points.label.copy(), []
    for name, (frequencies, weak) in attributes.items():
        rest = max(0.0, 1 - sum(frequencies.values()))
        codes = rng.choice(len(frequencies) + 1, len(label), p=[*frequencies.values(), rest])
        codes = np.where(codes == len(frequencies), -1, codes)
        for place, value in enumerate(frequencies):
            turned = (codes == place) & (rng.random(len(label)) < weak.get(value, 0.0))
            label = np.where(turned, 1 - points.predicted, label)
        groups.append(PointGroups(name, tuple(frequencies), codes))
    return replace(points, label=label, groups=tuple(groups))
