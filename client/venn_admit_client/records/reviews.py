"""What reviewers are shown, what becomes of their labels, and where these differ."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from venn_admit_client.members import member, record


@record
class Precedent:
    """A training exemplar near a point: the nearest of its class.

    Attributes:
        id: Its id.
        label: Its class.
        attributes: What was stored with it.
    """

    id: str = member("train-17", "external_id")
    label: str = member("positive")
    attributes: Mapping[str, Any] = member({"text": "A film to remember."})


@record
class ReviewPoint:
    """A point that a reviewer has claimed. What was predicted is not in it: people who see that confirm errors.

    Attributes:
        id: Its id.
        document: The document that it is part of; None if it stands alone.
        attributes: What was stored with it.
        reason: Why the prediction was rejected; None if it was admitted and drawn for an audit.
        why: The same in a sentence.
        due: The day by which it is due, from its attribute `due`; None if it has none.
        possible: The classes that it may be of at alpha, in their order; None if they are not known, or are fewer than
            two, which would give the prediction away.
        precedents: The nearest exemplar of each class among its K nearest that train; none if these are of one class.
        lease_until: Until when the claim holds unless it is renewed.
    """

    id: str = member("review-1", "external_id")
    document: str | None = member(None, "document_id")
    attributes: Mapping[str, Any] = member({"text": "A film."})
    reason: str | None = member("score below threshold")
    why: str = member("The score is below the least for which enough predictions of its class were shown to be right.")
    due: str | None = member("2026-12-01")
    possible: tuple[str, ...] | None = member(["negative", "positive"])
    precedents: tuple[Precedent, ...] = member()
    lease_until: datetime = member("2026-11-26T21:00:00+00:00")


@record
class Claims:
    """The points that a reviewer holds, in the order in which they are best labelled.

    Attributes:
        reviewer: Who holds them.
        points: The points.
        waiting: How many others wait that nobody has claimed.
    """

    reviewer: str = member("anna")
    points: tuple[ReviewPoint, ...] = member()
    waiting: int = member(12)


@record
class Pushed:
    """What was sent to a tool for labelling.

    Attributes:
        points: How many points the reviewer holds.
        sent: How many of them the tool did not have.
        waiting: How many others wait that nobody has claimed.
    """

    points: int = member(50)
    sent: int = member(3)
    waiting: int = member(12)


@record
class GivenLabel:
    """A label that a reviewer gave.

    Attributes:
        reviewer: Who gave it.
        label: The class.
        given_at: When.
    """

    reviewer: str = member("anna")
    label: str = member("positive")
    given_at: datetime = member("2026-11-26T21:00:00+00:00")


@record
class Disagreement:
    """A point of which the newest labels of two reviewers differ.

    Attributes:
        id: Its id.
        label: The label that counts, which is the newest.
        labels: The newest label of each reviewer, in the order in which they were given.
        attributes: What was stored with it.
    """

    id: str = member("review-1", "external_id")
    label: str = member("positive")
    labels: tuple[GivenLabel, ...] = member()
    attributes: Mapping[str, Any] = member({"text": "A film."})


@record
class ReviewedPoint:
    """A point that was labelled, and what was predicted, which may be known by now.

    Attributes:
        id: Its id.
        label: The label that it has.
        network: The class that the network predicts.
        predicted: The class that the newest decision is about; None if there is none.
        decision: The number of that decision; None if there is none.
        disagrees: Whether reviewers disagree about it.
    """

    id: str = member("review-1", "external_id")
    label: str = member("positive")
    network: str = member("negative", "network_class")
    predicted: str | None = member("negative", "predicted_class")
    decision: int | None = member(42)
    disagrees: bool = member(False)


@record
class Reviewed:
    """What became of the labels of a reviewer.

    Attributes:
        reviewer: Who gave them.
        rows: How many there were.
        new: Labels of points that had none.
        corrected: Labels other than what counted before.
        unchanged: Labels that counted already.
        points: Each point, by id.
        recalibrations_due: How many settings should be recalibrated for it.
    """

    reviewer: str = member("anna")
    rows: int = member(1)
    new: int = member(1)
    corrected: int = member(0)
    unchanged: int = member(0)
    points: tuple[ReviewedPoint, ...] = member()
    recalibrations_due: int = member(0)


@record
class ReviewerCount:
    """A reviewer.

    Attributes:
        reviewer: The name.
        labelled: How many points this reviewer has labelled.
        claimed: How many this reviewer holds.
    """

    reviewer: str = member("anna")
    labelled: int = member(40)
    claimed: int = member(1)


@record
class ReviewQueue:
    """How the queue stands.

    Attributes:
        waiting: Points that nobody has claimed.
        claimed: Points that a reviewer holds.
        overdue: Points of both kinds that were due before today.
        first_due: The day by which the first of them is due; None if none has one.
        disagreements: Points about which reviewers disagree, of which the first 1,000 count.
        reviewers: Everybody who holds a point or has labelled one.
    """

    waiting: int = member(12)
    claimed: int = member(1)
    overdue: int = member(0)
    first_due: str | None = member("2026-12-01")
    disagreements: int = member(0)
    reviewers: tuple[ReviewerCount, ...] = member()
