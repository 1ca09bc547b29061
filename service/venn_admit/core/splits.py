"""Splits by a keyed hash of the document, so that they need no coordination and do not depend on arrival order.

Source: docs/PROCEDURE.md, Data. A held-out point falls to `knn`, `mc` or `vp` by a hash of (seed, document id), or of
(seed, external id) if it has no document. All points of a document share a split.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from venn_admit.core.split_names import Split
from venn_admit.errors import InvalidInputError

DEFAULT_KNN_SHARE = Decimal("0.10")
DEFAULT_MC_SHARE = Decimal("0.45")
LOGITS_ONLY_MC_SHARE = Decimal("0.50")
"""The shares for a classifier without vectors, for which nothing is fitted on `knn`."""

_DIGEST_BYTES = 8
_HASH_VALUES = 1 << (8 * _DIGEST_BYTES)
_SEED_LIMIT = 1 << 63


def assign_splits(
    keys: Sequence[str], *, seed: int, knn_share: Decimal = DEFAULT_KNN_SHARE, mc_share: Decimal = DEFAULT_MC_SHARE
) -> list[Split]:
    """Return the split of each held-out point: `knn`, `mc` or, for the remaining share, `vp`.

    The result is a function of (seed, key) and the shares alone.

    Args:
        knn_share: Expected share of `knn`, an exact decimal of at least 0.
        mc_share: Expected share of `mc`; together the two are at most 1.

    Examples:
        >>> [str(split) for split in assign_splits(["review-1", "review-2", "review-3", "review-1"], seed=0)]
        ['knn', 'mc', 'vp', 'knn']
    """
    _check_shares(knn_share, mc_share)
    knn_end = int(Fraction(knn_share) * _HASH_VALUES)
    mc_end = int((Fraction(knn_share) + Fraction(mc_share)) * _HASH_VALUES)
    hashes = hash_keys(keys, seed=seed, purpose="split")
    splits = (Split.KNN, Split.MC, Split.VP)
    return [splits[(value >= knn_end) + (value >= mc_end)] for value in hashes.tolist()]


def hash_keys(keys: Sequence[str], *, seed: int, purpose: str) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each key, for orders and draws that do not depend on row order, (n,) uint64.

    BLAKE2b (RFC 7693) takes the seed as salt, the purpose as personalization and the key as message, so no two triples
    share an encoding. Two keys collide with probability 2**-64: break ties by the key.

    Args:
        keys: n strings.
        purpose: 1 to 16 bytes of printable ASCII; different purposes give independent hashes of the same key.
    """
    if not -_SEED_LIMIT <= seed < _SEED_LIMIT:
        raise InvalidInputError(f"expected a seed in [-2**63, 2**63), got {seed}; choose one in that range")
    if not (purpose.isascii() and purpose.isprintable() and 1 <= len(purpose) <= blake2b.PERSON_SIZE):
        raise InvalidInputError(
            f"expected a purpose of 1 to 16 printable ASCII characters, got {purpose!r}; shorten it"
        )
    salt = seed.to_bytes(blake2b.SALT_SIZE, "little", signed=True)
    keyed = blake2b(digest_size=_DIGEST_BYTES, salt=salt, person=purpose.encode("ascii"))

    def digest(key: str) -> bytes:
        hasher = keyed.copy()
        # Strings read from files may hold lone surrogates; they are hashed like any other code point.
        hasher.update(key.encode("utf-8", "surrogatepass"))
        return hasher.digest()

    return np.frombuffer(b"".join(digest(key) for key in keys), dtype="<u8").astype(np.uint64)


def _check_shares(knn_share: Decimal, mc_share: Decimal) -> None:
    shares_hold = all(share.is_finite() and share >= 0 for share in (knn_share, mc_share))
    if not (shares_hold and Fraction(knn_share) + Fraction(mc_share) <= 1):
        raise InvalidInputError(
            f"expected shares of knn and mc of at least 0 and together at most 1, got {knn_share} and "
            f"{mc_share}; correct them"
        )
