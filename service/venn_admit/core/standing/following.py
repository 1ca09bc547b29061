"""Whether a chain that begins now would admit clearly more than the one that labels advance, as labels foretell it."""

from collections.abc import Collection, Mapping

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.certificate import NextChain
from venn_admit.core.calibrators.certified.curves import fit_curves
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.forecast import Forecast
from venn_admit.core.calibrators.certified.losses import losses_of
from venn_admit.core.calibrators.certified.points import CertificatePoints, canonical
from venn_admit.core.calibrators.logistic import LEAST_POINTS
from venn_admit.core.standing.chains import StandingChain, level_of_chain, standing_chain

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
    withdrawn: Collection[int] = (),
) -> NextChain | None:
    """Return what a chain would admit that is fixed by today's labels, if that is clearly more.

    Both are foretold for the time when as many further documents have come as count today. Half of the streams need
    about as many as one test needs that passes with a chance of .8.

    Args:
        certified: How many thresholds of each predicted class are, (C,).
        points: Labelled points that count, a random sample, each of weight 1.
        number: That of the chain that would begin.
        level: In (0, 1), that of all chains.
        documents: The number of documents that count.
        withdrawn: The predicted classes of which no chain admits anything, because an alarm stands, or will.
    """
    if len(points.score) < LEAST_POINTS or len(np.unique(points.document)) < 2:
        return None
    class_count, level = len(chain.classes), level_of_chain(level, number)
    following = standing_chain(points, class_count=class_count, alpha=chain.alpha, level=level)
    points, _ = canonical(points)
    shown = Evidence(points.document_count, len(points.score), bounded=True)
    forecast = Forecast(points, fit_curves(points, class_count), losses_of(None, class_count), chain.alpha, shown)
    now = {number: certified[number] for number in chain.tested if number not in withdrawn}
    begun = {number: 0 for number in following.tested if number not in withdrawn}
    share = _admitted(following, begun, forecast, documents) / len(points.score)
    of_present = _admitted(chain, now, forecast, 2 * documents) / len(points.score)
    if share < of_present + CLEARLY:
        return None
    return NextChain(number, level, documents, share, of_present)


def _admitted(chain: StandingChain, certified: Mapping[int, int], forecast: Forecast, documents: int) -> float:
    """How many of the points a chain admits once some documents count; certified: how many thresholds are by now."""
    admitted = 0.0
    for number, count in certified.items():
        scores = chain.classes[number].scores
        of_class = forecast.curves.shares(scores, np.full(len(scores), number))
        shares = np.repeat(of_class[:, np.newaxis], len(chain.classes), axis=1)
        level = chain.level / len(chain.tested)
        needed = [one for (one,) in forecast.needed(shares, [(ClassKind.PREDICTED, number)], level)]
        further = count
        while further < len(scores) and (one := needed[further]) is not None and one <= documents:
            further += 1
        if further:
            admitted += float(forecast.counts(shares[further - 1 : further])[0][0, number])
    return admitted
