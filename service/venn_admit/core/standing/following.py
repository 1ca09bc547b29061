"""Whether a chain that begins now would admit clearly more than the one that labels advance, as labels foretell it."""

from collections.abc import Collection, Sequence

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind, Kind
from venn_admit.core.calibrators.certified.certificate import NextChain
from venn_admit.core.calibrators.certified.curves import fit_curves
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.forecast import Forecast
from venn_admit.core.calibrators.certified.losses import losses_of
from venn_admit.core.calibrators.certified.points import CertificatePoints, canonical
from venn_admit.core.calibrators.logistic import LEAST_POINTS
from venn_admit.core.standing.chains import StandingChain, level_of_chain, standing_chain
from venn_admit.core.types import FloatArray

MOST_DOCUMENTS = 5_000
"""The newest of the documents that count foretell; more would hardly change what they say."""
CLEARLY = 0.05
"""The share of all points that a new chain must be foretold to admit beyond the present one."""


def foretell_following(
    chain: StandingChain,
    certified: tuple[int, ...],
    points: CertificatePoints,
    *,
    number: int,
    level: float,
    documents: int,
    kinds: Sequence[Kind] = (ClassKind.PREDICTED,),
    withdrawn: Collection[int],
) -> NextChain | None:
    """Return what a chain would admit that is fixed by today's labels, if that is clearly more.

    Both are foretold for the time when as many further documents have come as count today. Half of the streams need
    about as many as one test needs that passes with a chance of .8.

    Args:
        certified: How many steps of each class are, as `certified_counts` returns them.
        points: Labelled points that count, a random sample, each of weight 1.
        number: That of the chain that would begin.
        level: In (0, 1), that of all chains.
        documents: The number of documents that count.
        kinds: Those that the chain was fixed for.
        withdrawn: The places of the classes for which an alarm stands, or will, whatever the chain.
    """
    if len(points.score) < LEAST_POINTS or len(np.unique(points.document)) < 2:
        return None
    class_count, level = len(chain.predicted), level_of_chain(level, number)
    following = standing_chain(points, class_count=class_count, alpha=chain.alpha, level=level, kinds=kinds)
    points, _ = canonical(points)
    shown = Evidence(points.document_count, len(points.score), bounded=True)
    forecast = Forecast(points, fit_curves(points, class_count), losses_of(None, class_count), chain.alpha, shown)
    share = _admitted(following, (0,) * len(following.classes), forecast, documents, withdrawn) / len(points.score)
    of_present = _admitted(chain, certified, forecast, 2 * documents, withdrawn) / len(points.score)
    if share < of_present + CLEARLY:
        return None
    return NextChain(number, level, documents, share, of_present)


def _admitted(
    chain: StandingChain, certified: Sequence[int], forecast: Forecast, documents: int, withdrawn: Collection[int]
) -> float:
    """How many of the points a chain admits once some documents count; certified: how many steps are by now."""
    admitted = 0.0
    for together in [chain.tested] if chain.is_path else [[place] for place in chain.tested]:
        if not together or not set(withdrawn).isdisjoint(together):
            continue
        shares = _foretold(chain, together, forecast)
        needed = forecast.needed(shares, [chain.named(place) for place in together], chain.level / chain.parts)
        further = certified[together[0]]
        while further < len(shares) and all(one is not None and one <= documents for one in needed[further]):
            further += 1
        if further:
            of_predicted = forecast.counts(shares[further - 1 : further])[0][0]
            admitted += float(of_predicted.sum() if chain.is_path else of_predicted[together[0]])
    return admitted


def _foretold(chain: StandingChain, together: Sequence[int], forecast: Forecast) -> FloatArray:
    """The shares right that today's labels foretell at the thresholds of some steps, (P, C)."""
    predicted = range(len(chain.predicted)) if chain.is_path else [together[0]] * len(chain.predicted)
    columns = []
    for number in predicted:
        scores = chain.classes[number].scores
        found = forecast.curves.shares(np.where(np.isinf(scores), 1.0, scores), np.full(len(scores), number))
        columns.append(np.where(np.isinf(scores), np.inf, found))
    return np.stack(columns, axis=1)
