"""Words that every shell uses, also for what is shown without a report."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isnan

from venn_admit.core.calibrators.certification import GroupKind, PromisedClass
from venn_admit.core.split_names import HELD_OUT_SPLITS, Split

MOST_FULL_MATCHES = 0.5
"""If a larger share of a split has q = K, it is said what that means."""


MOST_LISTED = 6
"""At most this many classes are listed in a sentence."""

STATES = {"retired": "retired", "withheld": "not in use"}
"""What is said of calibrations that are not current, by their state."""


def counted(count: int, noun: str) -> str:
    """Return a number of things in words; the noun is one that takes an s.

    >>> counted(1, "document"), counted(0, "document"), counted(1200, "token state")
    ('1 document', '0 documents', '1,200 token states')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def share_text(share: float) -> str:
    """Return a share with three digits and no leading zero; it is never rounded to 0 or 1, and NaN is a dash.

    >>> [share_text(share) for share in (0.9734, 1.0, 0.99996, 0.0001, 0.0, float("nan"))]
    ['.973', '1.00', '>.999', '<.001', '.000', '-']
    """
    if isnan(share):
        return "-"
    if 0.9995 <= share <= 1:
        return "1.00" if share == 1 else ">.999"
    if 0 < share < 0.0005:
        return "<.001"
    return f"{share:.3f}".removeprefix("0")


def listed_text(texts: Sequence[str]) -> str:
    """Return texts as a list in a sentence: the first ones, and how many others there are.

    >>> listed_text(["a", "b"]), listed_text([*"abcdefg"]), listed_text([*"abcdefgh"])
    ('a, b', 'a, b, c, d, e, f and 1 other', 'a, b, c, d, e, f and 2 others')
    """
    others = len(texts) - MOST_LISTED
    return ", ".join(texts[:MOST_LISTED]) + (f" and {counted(others, 'other')}" if others > 0 else "")


def never_admitted_text(generation: int, class_names: Sequence[str]) -> str:
    """Return that a generation admits nothing of some predicted classes.

    >>> never_admitted_text(2, ["red"])
    'Generation 2 never admits what is predicted as red.'
    """
    return f"Generation {generation} never admits what is predicted as {listed_text(class_names)}."


def admits_nothing_text(calibration_id: int) -> str:
    """Return the warning that a calibration that is put in use admits nothing.

    >>> admits_nothing_text(3)
    'calibration 3 admits none of its calibration points: a report says why'
    """
    return f"calibration {calibration_id} admits none of its calibration points: a report says why"


def class_text(of: PromisedClass, class_names: Sequence[str]) -> str:
    """Return what a class or group is called, such as "predicted negative" or "region north"."""
    parts = []
    if of.number is not None:
        parts.append(f"{'predicted' if of.value is not None else of.kind} {class_names[of.number]}")
    if isinstance(of.kind, GroupKind):
        parts.append(f"{of.kind.attribute} {of.value}")
    return ", ".join(parts)


def waiting_text(waiting: int) -> str:
    """Return what is said of training exemplars that wait.

    >>> waiting_text(1)
    '1 training exemplar waits until a calibration or fit that has begun is over, for ten minutes at most.'
    """
    they_wait = "1 training exemplar waits" if waiting == 1 else f"{waiting:,} training exemplars wait"
    return f"{they_wait} until a calibration or fit that has begun is over, for ten minutes at most."


def ignored_text(name: str, columns: Sequence[str]) -> str:
    """Return what is said of the columns of labels that mean nothing.

    >>> ignored_text("labels.csv", ["split", ""])
    'labels.csv: these columns are ignored: split, a column without a name'
    """
    return f"{name}: these columns are ignored: {', '.join(column or 'a column without a name' for column in columns)}"


def rows_in_use_text(rows: Mapping[Split, int]) -> str | None:
    """Return what is said of rows that were scored, by split, if the classifier was fitted or calibrated with some.

    >>> rows_in_use_text({Split.SCORED: 7}) is None
    True
    """
    training = rows.get(Split.TRAIN, 0)
    calibrating = {split: rows[split] for split in HELD_OUT_SPLITS if rows.get(split)}
    kinds = []
    if training:
        kinds.append(f"training {training:,} (each is its own nearest neighbour)")
    if calibrating:
        where = ", ".join(f"{split} {count:,}" for split, count in calibrating.items())
        kinds.append(f"calibration {sum(calibrating.values()):,} ({where}; their own labels bear on the result)")
    if not kinds:
        return None
    return (
        f"some rows are exemplars that the classifier was made with: {', '.join(kinds)}. They are in the output, but "
        "decisions on them are optimistic: judge by rows that the classifier has not seen."
    )


def held_out_accuracy_text(points: int, network: float, knn_points: int, knn: float | None) -> str:
    """Return how often network and KNN are right on held-out data.

    >>> held_out_accuracy_text(1000, 0.88, 400, 0.875)
    'Right on the 1,000 labelled points of mc and vp: the network 88.0%, the KNN 87.5% of 400 that it has predicted.'
    """
    said = f"Right on the {points:,} labelled points of mc and vp: the network {network:.1%}"
    if knn is None:
        return f"{said}."
    part = "" if knn_points == points else f" of {knn_points:,} that it has predicted"
    return f"{said}, the KNN {knn:.1%}{part}."


def copies_text(copies: int) -> str:
    """Return what is said of held-out exemplars of documents with the vectors and logits of another.

    >>> copies_text(2)
    '2 held-out exemplars are copies by vector and logits: copies share a split, and count as one document.'
    """
    they_are = "1 held-out exemplar is a copy" if copies == 1 else f"{copies:,} held-out exemplars are copies"
    return f"{they_are} by vector and logits: copies share a split, and count as one document."


def copies_apart_text(copies: int) -> str:
    """Return what is said of copies in different splits.

    >>> copies_apart_text(4)
    '4 of them, stored by an earlier version, lie in different splits; a new generation would put them together.'
    """
    stored = f"{copies:,} of them, stored by an earlier version,"
    return f"{stored} lie in different splits; a new generation would put them together."


def training_copies_text(copies: int) -> str:
    """Return what is said of exemplars of which copies train, while they are held out, or the other way round.

    >>> training_copies_text(1)
    '1 exemplar is held out and trains, by its vector and logits or document: what it says of the traffic is too good.'
    """
    they_are = "1 exemplar is" if copies == 1 else f"{copies:,} exemplars are"
    it_says, trains = ("it says", "trains") if copies == 1 else ("they say", "train")
    its = "its" if copies == 1 else "their"
    it_does = f"{they_are} held out and {trains}, by {its} vector and logits or document"
    return f"{it_does}: what {it_says} of the traffic is too good."


def unlikely_logits_text(exemplars: int) -> str:
    """Return what is said of held-out exemplars whose logits look like probabilities.

    >>> print(unlikely_logits_text(1))
    1 held-out exemplar has logits that lie in [0, 1] and sum to 1: probabilities are to be stated as such.
    """
    they_have = "1 held-out exemplar has" if exemplars == 1 else f"{exemplars:,} held-out exemplars have"
    return f"{they_have} logits that lie in [0, 1] and sum to 1: probabilities are to be stated as such."


def time_text(time: datetime) -> str:
    """Return a time to the minute.

    >>> time_text(datetime(2026, 3, 1, 9, 30, tzinfo=UTC))
    '2026-03-01 09:30 UTC'
    """
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def full_matches_text(share: float, split: str) -> str:
    """Return for which share of a split q is K, and what that means if it is most of it.

    >>> full_matches_text(0.31, "knn")
    'q is K for 31% of split knn.'
    """
    said = f"q is K for {share:.0%} of split {split}"
    if share <= MOST_FULL_MATCHES:
        return f"{said}."
    return (
        f"{said}, between which it does not tell: bands of q pool right and wrong predictions there. A larger K may "
        "tell more; the network's score, by which Venn-Abers ranks, does not depend on q."
    )
