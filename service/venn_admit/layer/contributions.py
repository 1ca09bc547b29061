"""Which tokens carry the prediction of a document, as its exemplar keeps them: a few, and the rest as one figure.

They stand in the attribute `contributions` of an exemplar that a memory layer made of a document. Attributes come
from files, so the reader checks them: a record of another form, one that does not add up, or one of another prediction
than the network's is ignored.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Self

from venn_admit.core.types import FloatArray

ATTRIBUTE = "contributions"
"""The attribute that holds them."""

MOST_TOKENS = 8
"""How many tokens are named: those with the largest contributions by amount; the others count as the rest."""

_TOKEN_CHARACTERS = 80
_DECIMALS = 6
_NO_REST = 1e-5
"""What rounding may leave over if every token is named: some units of the last decimal."""
_MARGIN_TOLERANCE = 1e-4
"""How far the sum may miss the difference of the stored logits: those in float32, this with six decimals."""


@dataclass(frozen=True, slots=True)
class TokenShare:
    """What one token contributes.

    Attributes:
        position: The position of the token in its document, from 0.
        token: Its text, None if it is unknown; of a longer one, the first 80 characters.
        contribution: To the margin; below 0 it speaks for the runner-up rather than the class.
    """

    position: int
    token: str | None
    contribution: float

    @property
    def name(self) -> str:
        """Its text; where it stands if that is unknown."""
        return f"at {self.position}" if self.token is None else self.token


@dataclass(frozen=True, slots=True)
class SumRow:
    """A row of a margin shown as a sum, with three decimals.

    Attributes:
        position: The position of a token; None for another row.
        is_sum: Whether it is the sum of those above it.
    """

    position: int | None
    name: str
    figure: str
    is_sum: bool = False


@dataclass(frozen=True, slots=True)
class Contributions:
    """The margin of the class that the network predicts, as a sum: intercept + those of `tokens` + rest = margin.

    The margin is f of the class less f of the runner-up. What moves all logits alike is no part of it. Every figure has
    six decimals, and the rest is what makes the sum exact.

    Attributes:
        runner_up: The class with the next largest logit.
        intercept: What belongs to no token.
        tokens: The largest by amount first; tokens that contribute nothing are never among them.
    """

    class_name: str
    runner_up: str
    margin: float
    intercept: float
    tokens: tuple[TokenShare, ...]
    rest: float
    rest_count: int

    @classmethod
    def of_tokens(
        cls, class_name: str, runner_up: str, intercept: float, contributions: FloatArray, tokens: tuple[str, ...]
    ) -> Self:
        """Return the record of a document.

        Args:
            contributions: (T,) float64, of each token to the margin.
            tokens: T texts, or none if they are unknown.
        """
        order = sorted(range(len(contributions)), key=lambda place: (-abs(contributions[place]), place))
        shares = [
            TokenShare(
                place,
                tokens[place][:_TOKEN_CHARACTERS] if tokens else None,
                round(float(contributions[place]), _DECIMALS),
            )
            for place in order[:MOST_TOKENS]
        ]
        named = tuple(share for share in shares if share.contribution)
        margin = round(intercept + float(contributions.sum()), _DECIMALS)
        fixed = round(intercept, _DECIMALS)
        rest = round(margin - fixed - math.fsum(share.contribution for share in named), _DECIMALS)
        return cls(class_name, runner_up, margin, fixed, named, rest, len(contributions) - len(named))

    def as_attribute(self) -> dict[str, Any]:
        """Return the value of the attribute: JSON, by the names of the fields; `class` for the class."""
        values = _values(self)
        return {"class": values.pop("class_name"), **values, "tokens": [_values(share) for share in self.tokens]}

    def foremost(self, most: int) -> tuple[TokenShare, ...]:
        """Return the tokens that speak most for the class rather than the runner-up."""
        return tuple(share for share in self.tokens if share.contribution > 0)[:most]

    def in_short(self, most: int) -> str:
        """Return the tokens that speak most for the class, each with its contribution, and the runner-up, in a line."""
        named = (f"{share.name} {share.contribution:+.3f}" for share in self.foremost(most))
        return f"{', '.join(named) or 'no token'} (over {self.runner_up})"

    def sums_up(self) -> bool:
        """Whether the figures are finite, add up to the margin, and nothing is left over if all tokens are named."""
        parts = [self.intercept, self.rest, *(share.contribution for share in self.tokens)]
        if not all(map(math.isfinite, [self.margin, *parts])):
            return False
        if not self.rest_count and abs(self.rest) >= _NO_REST:
            return False
        return math.isclose(sum(parts), self.margin, rel_tol=1e-9, abs_tol=10**-_DECIMALS)


def _values(record: Contributions | TokenShare) -> dict[str, Any]:
    """The values of the fields; `asdict` copies each and takes five times as long, and a file has many records."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def contributions_in(attributes: Mapping[str, Any], class_name: str | None) -> Contributions | None:
    """Return the contributions to a prediction that attributes hold.

    Args:
        class_name: The class that the network of the classifier predicts for the exemplar; None if it is unknown.

    Returns:
        None if they hold none, something else under this name, or those of another prediction, as from a network that
        the classifier does not have.

    Examples:
        >>> contributions_in({"contributions": "by the author"}, "spam") is None
        True
    """
    found = _record(attributes)
    return None if found is None or found.class_name != class_name else found


def own_contributions(
    attributes: Mapping[str, Any], class_names: Sequence[str], network_logits: Sequence[float]
) -> Contributions | None:
    """Return the contributions to the prediction of an exemplar whose logits are at hand, as `contributions_in` does.

    The runner-up must be the network's, too, and the margin that of its logits.
    """
    predicted = max(range(len(network_logits)), key=network_logits.__getitem__)  # of equals the first
    found = contributions_in(attributes, class_names[predicted])
    if found is None:
        return None
    others = {name: logit for name, logit in zip(class_names, network_logits, strict=True) if name != found.class_name}
    nearest, largest = max(others.values()), network_logits[predicted]
    tolerance = _MARGIN_TOLERANCE * max(1.0, abs(nearest), abs(largest))
    is_own = others.get(found.runner_up) == nearest and abs(found.margin - (largest - nearest)) <= tolerance
    return found if is_own else None


def _record(attributes: Mapping[str, Any]) -> Contributions | None:
    given: Any = attributes.get(ATTRIBUTE)
    match given:
        case {"class": str(name), "runner_up": str(other), "tokens": list(tokens), "rest_count": int(rest_count)} if (
            name != other
        ):
            shares = [share for share in map(_share, tokens) if share is not None]
            if len(shares) < len(tokens) or len(tokens) > MOST_TOKENS or rest_count < 0:
                return None
            margin, intercept, rest = (_number(given.get(field)) for field in ("margin", "intercept", "rest"))
            found = Contributions(name, other, margin, intercept, tuple(shares), rest, rest_count)
            return found if found.sums_up() else None
    return None


def sum_rows(found: Contributions) -> list[SumRow]:
    """Return the margin as rows of a table: tokens, the rest, the intercept, and their sum.

    The figures add up as they are shown: what rounding leaves over is part of the rest.

    Examples:
        >>> rows = sum_rows(Contributions("spam", "ham", 1.0, 0.25, (TokenShare(3, "win", 0.7004),), 0.0496, 5))
        >>> [(row.name, row.figure) for row in rows]
        [('win', '+0.700'), ('5 other tokens', '+0.050'), ('intercept', '+0.250'), ('margin over ham', '+1.000')]
    """
    rows = [SumRow(share.position, share.name, f"{share.contribution:+.3f}") for share in found.tokens]
    sum_, intercept = Decimal(f"{found.margin:.3f}"), Decimal(f"{found.intercept:.3f}")
    rest = sum_ - intercept - sum((Decimal(row.figure) for row in rows), Decimal(0))
    others = "1 other token" if found.rest_count == 1 else f"{found.rest_count:,} other tokens"
    if found.rest_count or rest:
        rows.append(SumRow(None, others if found.rest_count else "rounding", f"{rest:+.3f}"))
    return [
        *rows,
        SumRow(None, "intercept", f"{intercept:+.3f}"),
        SumRow(None, f"margin over {found.runner_up}", f"{sum_:+.3f}", is_sum=True),
    ]


def without_prediction(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes without what carries the prediction, for people who are to label and must not know it."""
    return {name: value for name, value in attributes.items() if name != ATTRIBUTE}


def without_contributions(attributes: Mapping[str, Any], found: Contributions | None) -> dict[str, Any]:
    """Return the attributes other than the contributions that are shown apart."""
    return {name: value for name, value in attributes.items() if found is None or name != ATTRIBUTE}


def _share(value: object) -> TokenShare | None:
    match value:
        case {"position": int(position), "token": (str() | None) as token, "contribution": contribution}:
            known = None if token is None else token[:_TOKEN_CHARACTERS]
            return TokenShare(position, known, _number(contribution)) if position >= 0 else None
    return None


def _number(value: object) -> float:
    """A JSON number as a float; NaN if it is none, or too large for one."""
    try:
        return float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return math.nan
