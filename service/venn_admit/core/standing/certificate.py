"""What a standing certificate says at a time, as the record that every certificate has."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind, DocumentTest, Kind
from venn_admit.core.calibrators.certified.certificate import (
    Advance,
    Certificate,
    Chain,
    ClassResult,
    NextChain,
    Standing,
    TriedPolicy,
)
from venn_admit.core.calibrators.certified.chains import finite_thresholds
from venn_admit.core.calibrators.certified.policies import Policy, without_threshold
from venn_admit.core.standing.chains import StandingChain
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
    kinds: tuple[Kind, ...] = (ClassKind.PREDICTED,),
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
        kinds: Those that the chain was fixed for.
        withdrawn: The places of the classes of which labels refute what is certified, or an alarm stands. Nothing is
            admitted any more of such a predicted class, and nothing at all by a path, whose policies hold together.
        following: The next chain, if it would admit clearly more.
    """
    counts = certified_counts(chain, state)
    is_over = chain.is_path and bool(withdrawn)
    kept = [0 if is_over or place in withdrawn else count for place, count in enumerate(counts)]
    promised: list[ClassResult] = []
    lacking: list[ClassResult] = []
    advances = []
    waiting: dict[int, int | None] = {}
    for place in chain.tested:
        kind, of_class = chain.named(place)
        begun = initial_wealth(chain.classes[place], with_start=chain.at_start > 0)
        needed = _further(state[place], begun, counts[place], chain.parts / chain.level, documents)
        if not documents:
            needed = chain.classes[place].documents
        steps, refuted = len(chain.classes[place].largest), state[place].refutation
        advances.append(Advance(of_class, counts[place], steps, needed, place in withdrawn, refuted, kind))
        waiting[place] = None if kept[place] or needed is None or is_over or place in withdrawn else documents + needed
        result = _result(chain, place, state[place], max(kept[place] - 1, 0), waiting[place])
        (promised if kept[place] else lacking).append(result)
    for kind in (of for of in ClassKind if of in kinds):
        untested = [one for one in range(len(chain.predicted)) if chain.place(kind, one) not in chain.tested]
        lacking += [ClassResult(kind, one, None, 0, 0, None, None) for one in untested]
    lost = tuple(one for one in range(len(chain.predicted)) if counts[one] and not kept[one])
    thresholds = admitting(chain, kept)
    never = tuple(one for one in without_threshold(thresholds) if one not in lost)
    last = [(state[place], kept[place] - 1) for place in chain.tested if kept[place]]
    return Certificate(
        alpha=alpha,
        confidence=confidence,
        kinds=kinds,
        test=DocumentTest.FINITE_SAMPLE,
        documents=documents,
        points=points,
        proposing=proposing,
        capped=sum(int(of.capped[step]) for of, step in last),
        policy=Policy(thresholds, withdrawn=lost, uncertified=never) if promised else None,
        admitted=sum(result.admitted for result in promised if result.kind is kinds[0]),
        classes=tuple(promised),
        lacking=tuple(lacking),
        chains=tuple(_chains(chain, state, counts, waiting)),
        standing=Standing(number, chain.level, tuple(advances), following),
    )


def _result(chain: StandingChain, place: int, state: ClassState, step: int, needed: int | None) -> ClassResult:
    """The result of one step; the largest wealth so far is a p-value at all times."""
    kind, number = chain.named(place)
    return ClassResult(
        kind=kind,
        number=number,
        value=None,
        admitted=int(state.admitted[step]),
        right=int(state.right[step]),
        p_value=1 / float(state.most[step]),
        documents_needed=needed,
    )


def _chains(
    chain: StandingChain, state: State, certified: Sequence[int], waiting: Mapping[int, int | None]
) -> Iterator[Chain]:
    """The steps that are certified, and the next one, of each class or of the path."""
    if not chain.is_path:
        for number in chain.tested:
            steps = _steps(chain, state, [number], [number], certified[number], {})
            yield Chain("class", (number,), chain.level / chain.parts, steps)
    elif chain.tested:
        predicted = range(len(chain.predicted))
        first = [of.shares[0] for of in chain.predicted if math.isfinite(of.shares[0])]
        steps = _steps(chain, state, predicted, chain.tested, certified[chain.tested[0]], waiting)
        yield Chain("one threshold" if len(set(first)) == 1 else "by class", tuple(predicted), chain.level, steps)


def _steps(
    chain: StandingChain,
    state: State,
    predicted: Sequence[int],
    tested: Sequence[int],
    certified: int,
    waiting: Mapping[int, int | None],
) -> tuple[TriedPolicy, ...]:
    """waiting: how many documents in all a class that is tested takes for the next step, if that is said of it."""
    classes = [chain.classes[number] for number in predicted]
    kind, _ = chain.named(tested[0])
    of_kind = [place for place in tested if chain.named(place)[0] is kind]  # each admitted point is in one of them
    return tuple(
        TriedPolicy(
            shares=finite_thresholds(np.array([of.shares[step] for of in classes])),
            thresholds=finite_thresholds(np.array([of.scores[step] for of in classes])),
            admitted=sum(int(state[place].admitted[step]) for place in of_kind),
            classes=tuple(
                _result(chain, place, state[place], step, waiting.get(place) if step == certified else None)
                for place in tested
            ),
            passed=step < certified,
        )
        for step in range(min(certified + 1, len(classes[0].scores)))
    )


def _further(state: ClassState, begun: FloatArray, certified: int, needed: float, documents: int) -> int | None:
    """About how many further documents the next step takes, if a gambler goes on growing as it did; 0 if it is won.

    The mean wealth reaches what is needed at the latest when that of one gambler is as many times that as there are.
    A lost bet on the labels at the start leaves nothing to grow.
    """
    if certified == len(state.most) or not documents:
        return None
    if state.most[certified] >= needed:
        return 0
    rows = begun[certified] > 0
    with np.errstate(divide="ignore"):
        grown, before = np.log(state.wealth[certified, rows]), np.log(begun[certified, rows])
    further = math.log(needed * begun.shape[1]) - grown
    rate = (grown - before) / documents
    takes = [
        left / by for left, by in zip(further.tolist(), rate.tolist(), strict=True) if by > 0 and math.isfinite(by)
    ]
    return max(math.ceil(min(takes)), 1) if takes else None
