"""How many draws show that something seldom happens: as many as it takes, by Wald's sequential probability ratio test.

It tells a probability of at most eps from one of `often` eps: if that is 2.5 and eps a tenth, draws in which it never
happens settle that after 26, and more are drawn as long as it is open. Source: Wald (1945), *Sequential tests of
statistical hypotheses*.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import log, sqrt
from typing import Self

OFTEN = 2.5
WRONG_OF_SELDOM, WRONG_OF_OFTEN = 0.001, 0.01
"""The probabilities of being wrong if it happens with probability eps, and with `often` eps."""
LEAST, MOST = log(WRONG_OF_OFTEN / (1 - WRONG_OF_SELDOM)), log((1 - WRONG_OF_OFTEN) / WRONG_OF_SELDOM)


@dataclass
class Draws:
    """The numbers of the draws, each of which adds whether it happened; once it is settled, nothing is added.

    evidence: The logarithm of how much likelier what was added is with `often` eps than with eps.
    """

    eps: float
    often: float = OFTEN
    count: int = 0
    evidence: float = 0.0

    @classmethod
    def as_sharp_as(cls, fixed: int, eps: float) -> Self:
        """What sees as much as a fixed number of draws, of which a share up to three standard errors above eps passes.

        These see what lies 5 1/3 standard errors above eps with a chance of less than .99; this does with .99.
        """
        return cls(eps, 1 + 16 / 3 * sqrt((1 - eps) / (eps * fixed)))

    def __iter__(self) -> Iterator[int]:
        return until_settled([self])

    def add(self, happened: bool) -> None:
        if not self.is_settled:
            self.count += 1
            self.evidence += log(self.often) if happened else log((1 - self.often * self.eps) / (1 - self.eps))

    @property
    def is_settled(self) -> bool:
        return not LEAST < self.evidence < MOST

    @property
    def seldom(self) -> bool:
        """Whether it happens with a probability of eps rather than `often` eps."""
        return self.evidence <= LEAST


def until_settled(several: Collection[Draws]) -> Iterator[int]:
    """The numbers of draws, until each of several things is settled that are looked at in each."""
    number = 0
    while not all(one.is_settled for one in several):
        yield number
        number += 1
