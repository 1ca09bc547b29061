"""What a standing certificate says at a time, as the record that every certificate has."""

import math
from collections.abc import Collection
from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind, DocumentTest
from venn_admit.core.calibrators.certified.certificate import (
    Advance,
    Certificate,
    Chain,
    ClassResult,
    NextChain,
    Standing,
    TriedPolicy,
)
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.standing.chains import ClassChain, StandingChain
from venn_admit.core.standing.state import ClassState, State, admitting, certified_counts, initial_wealth
from venn_admit.core.types import FloatArray


def standing_certificate(
    chain: StandingChain,
    state: State,
    *,
    number: int,
    alpha: Decimal,
    confidence: Decimal,
    documents: int,
    points: int,
    proposing: int,
    withdrawn: Collection[int] = (),
    following: NextChain | None = None,
) -> Certificate:
    """Return what is certified by the labels so far.

    Args:
        number: 1, 2, ..., that of the chain.
        alpha: In (0, 1), as it was asked for.
        confidence: That of all chains together, if they were asked for with the same.
        documents: The number of documents that count.
        points: The number of points in them.
        proposing: The number of points that fixed the chain.
        withdrawn: The predicted classes of which nothing is admitted any more, because labels refute what is certified
            of them, or an alarm stands.
        following: The next chain, if it would admit clearly more.
    """
    counts = certified_counts(chain, state)
    kept = tuple(0 if of in withdrawn else count for of, count in enumerate(counts))
    thresholds = admitting(chain, kept)
    promised: list[ClassResult] = []
    lacking: list[ClassResult] = []
    advances = []
    for of in chain.tested:
        begun = initial_wealth(chain.classes[of], with_start=chain.at_start > 0)
        needed = _further(state[of], begun, counts[of], len(chain.tested) / chain.level, documents)
        if not documents:
            needed = chain.classes[of].documents
        refuted = state[of].refutation
        advances.append(Advance(of, counts[of], len(chain.classes[of].scores), needed, of in withdrawn, refuted))
        place = max(kept[of] - 1, 0)
        in_all = None if kept[of] or needed is None or of in withdrawn else documents + needed
        (promised if kept[of] else lacking).append(_result(of, state[of], place, in_all))
    untested = sorted(set(range(len(chain.classes))).difference(chain.tested))
    lacking += [ClassResult(ClassKind.PREDICTED, of, None, 0, 0, None, None) for of in untested]
    last = [(state[of], kept[of] - 1) for of in chain.tested if kept[of]]
    return Certificate(
        alpha=alpha,
        confidence=confidence,
        kinds=(ClassKind.PREDICTED,),
        test=DocumentTest.FINITE_SAMPLE,
        documents=documents,
        points=points,
        proposing=proposing,
        capped=sum(int(of.capped[place]) for of, place in last),
        policy=Policy(thresholds) if promised else None,
        admitted=sum(int(of.admitted[place]) for of, place in last),
        classes=tuple(promised),
        lacking=tuple(lacking),
        chains=tuple(_chain(of, chain, state[of], counts[of]) for of in chain.tested),
        standing=Standing(number, chain.level, tuple(advances), following),
    )


def _result(number: int, state: ClassState, place: int, needed: int | None) -> ClassResult:
    """The result of one threshold; the largest wealth so far is a p-value at all times."""
    return ClassResult(
        kind=ClassKind.PREDICTED,
        number=number,
        value=None,
        admitted=int(state.admitted[place]),
        right=int(state.right[place]),
        p_value=1 / float(state.most[place]),
        documents_needed=needed,
    )


def _chain(number: int, chain: StandingChain, state: ClassState, certified: int) -> Chain:
    """The thresholds that are certified, and the next one."""
    of: ClassChain = chain.classes[number]
    steps = tuple(
        TriedPolicy(
            shares=(float(of.shares[place]),),
            thresholds=(float(of.scores[place]),),
            admitted=int(state.admitted[place]),
            classes=(_result(number, state, place, None),),
            passed=place < certified,
        )
        for place in range(min(certified + 1, len(of.scores)))
    )
    return Chain("class", (number,), chain.level / len(chain.tested), steps)


def _further(state: ClassState, begun: FloatArray, certified: int, needed: float, documents: int) -> int | None:
    """About how many further documents the next threshold takes, if a gambler goes on growing as it did.

    The mean wealth reaches what is needed at the latest when that of one gambler is as many times that as there are.
    A lost bet on the labels at the start leaves nothing to grow.
    """
    if certified == len(state.most) or not documents:
        return None
    rows = begun[certified] > 0
    with np.errstate(divide="ignore"):
        grown, before = np.log(state.wealth[certified, rows]), np.log(begun[certified, rows])
    further = math.log(needed * begun.shape[1]) - grown
    rate = (grown - before) / documents
    takes = [
        left / by for left, by in zip(further.tolist(), rate.tolist(), strict=True) if by > 0 and math.isfinite(by)
    ]
    return max(math.ceil(min(takes)), 1) if takes else None
