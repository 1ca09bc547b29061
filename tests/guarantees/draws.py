"""How many draws show that something seldom happens: as many as it takes, by Wald's sequential probability ratio test.

It tells a probability of at most eps from one of `OFTEN` eps: draws in which it never happens settle that after 26, and
more are drawn as long as it is open. Source: Wald (1945), *Sequential tests of statistical hypotheses*.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

OFTEN = 2.5
WRONG_OF_SELDOM, WRONG_OF_OFTEN = 0.001, 0.01
"""The probabilities of being wrong if it happens with probability eps, and with `OFTEN` eps."""
LEAST, MOST = log(WRONG_OF_OFTEN / (1 - WRONG_OF_SELDOM)), log((1 - WRONG_OF_OFTEN) / WRONG_OF_SELDOM)


@dataclass
class Draws:
    """The numbers of the draws, each of which adds whether it happened.

    evidence: The logarithm of how much likelier what was added is with `OFTEN` eps than with eps.
    """

    eps: float
    count: int = 0
    evidence: float = 0.0

    def __iter__(self) -> Iterator[int]:
        while LEAST < self.evidence < MOST:
            yield self.count

    def add(self, happened: bool) -> None:
        self.count += 1
        self.evidence += log(OFTEN) if happened else log((1 - OFTEN * self.eps) / (1 - self.eps))

    @property
    def seldom(self) -> bool:
        """Whether it happens with a probability of eps rather than `OFTEN` eps."""
        return self.evidence <= LEAST
