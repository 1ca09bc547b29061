"""Cascades: their stages, what is certified of them, and what they serve."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

from venn_admit_client.members import Told, member, record


@record
class CascadeClass:
    """What is served of a class.

    Attributes:
        kind: `predicted` or `true`.
        label: The name of the class.
        served: How many points of it are served.
        right: How many of them are right.
        low: Lower end of the 95 % interval of the share right, by Wilson; None if documents have several points.
        high: Upper end.
        threshold: Least score at which a stage serves it; None for never, and for classes of the whole cascade.
        labels_needed: The labels of evidence with which it alone is likely to be promised something, at the rates seen;
            None if no number would do, and for a class of a stage.
    """

    kind: str = member("predicted")
    label: str = member("negative", "class")
    served: int = member(240)
    right: int = member(224)
    low: float | None = member(0.895)
    high: float | None = member(0.959)
    threshold: float | None = member(0.81)
    labels_needed: int | None = member(None)

    @property
    def share(self) -> float | None:
        """The share right of what is served; None if nothing is."""
        return self.right / self.served if self.served else None


@record
class CascadeStage:
    """A stage of a cascade.

    Attributes:
        place: Its place, from 1.
        classifier: Its classifier; None for a person, who answers all that is left.
        cost: What a point costs that reaches it.
        calibration: The calibration of its classifier when the cascade was certified; None before, and for a person.
        reached: How many points of the evidence reach it; None before the cascade is certified.
        served: How many of them it serves; a person serves all.
        classes: What it serves, by predicted class; empty for a person.
    """

    place: int = member(1, "stage")
    classifier: str | None = member("small")
    cost: float = member(1.0)
    calibration: int | None = member(7)
    reached: int | None = member(900)
    served: int | None = member(510)
    classes: tuple[CascadeClass, ...] = member([])


@record
class WithheldCascade:
    """A certificate of a cascade that came after the one in use, and serves nothing, or far less.

    Attributes:
        number: Its number.
        certified_at: When it looked at the labels.
        is_certified: Whether a policy passed.
        points: The points of evidence.
        served: How many of them the classifiers would serve.
        promised: What it promises something, class by class; without a policy, the one that came closest.
        labels_needed: The labels of evidence with which it is likely to pass, if it did not; None if none would do.
    """

    number: int = member(4, "certificate")
    certified_at: datetime = member("2026-03-02T09:30:00+00:00")
    is_certified: bool = member(False)
    points: int = member(950)
    served: int = member(0)
    promised: tuple[CascadeClass, ...] = member(...)
    labels_needed: int | None = member(2400)


@record
class CascadeReport(Told):
    """How a cascade stands. Counts are those of the evidence of the certificate in use; None before there is one.

    Attributes:
        cascade: Its name.
        classes: The names of the classes, which all stages have.
        stages: Its stages, in order.
        number: Number of the certificate.
        certified_at: When it looked at the labels.
        alpha: The share of what is served of each class that may be wrong.
        confidence: 1 - eps, over the calibration labels.
        kinds: The kinds of classes that are promised something.
        is_certified: Whether a policy passed; without one, nothing is served.
        points: The points of evidence.
        documents: The documents of evidence.
        served: How many points the classifiers serve.
        promised: What is promised something, class by class; without a policy, the one that came closest.
        labels_needed: The labels of evidence with which it is likely to pass, if it did not; None if none would do.
        looks: How many certificates of this cascade looked at labels.
        joint_confidence: That all of these hold together, at least.
        cost: What a point costs on average.
        cost_of_last: What it costs if the last stage answers everything.
        withheld: The newest certificate that came later and is not in use; None if there is none.
    """

    cascade: str = member("reviews")
    classes: tuple[str, ...] = member(["negative", "positive"])
    stages: tuple[CascadeStage, ...] = member(...)
    number: int | None = member(3, "certificate")
    certified_at: datetime | None = member("2026-03-01T09:30:00+00:00")
    alpha: Decimal | None = member("0.1")
    confidence: Decimal | None = member("0.95")
    kinds: tuple[str, ...] = member(["predicted"], "certify")
    is_certified: bool = member(True)
    points: int | None = member(900)
    documents: int | None = member(900)
    served: int | None = member(735)
    promised: tuple[CascadeClass, ...] = member(...)
    labels_needed: int | None = member(None)
    looks: int = member(1)
    joint_confidence: Decimal | None = member("0.95")
    cost: float | None = member(6.1)
    cost_of_last: float = member(100.0)
    withheld: WithheldCascade | None = member(None)

    def __str__(self) -> str:
        return "\n".join(_cascade_lines(self))


def cost_text(cost: float) -> str:
    """Return a cost, of a point or of many.

    >>> [cost_text(cost) for cost in (0.00125, 95.0612, 8_936_400.0)]
    ['0.00125', '95.06', '8,936,400']
    """
    return f"{cost:.4g}" if cost < 1000 else f"{cost:,.0f}"


def _cascade_lines(found: CascadeReport) -> Iterator[str]:
    if found.number is None:
        yield f"Cascade {found.cascade}: not certified yet, and serves nothing until then"
    else:
        promised = " and ".join(found.kinds)
        certified = "certified" if found.is_certified else "nothing is certified"
        yield (
            f"Cascade {found.cascade}: certificate {found.number}, {certified} for {promised} classes with confidence "
            f"{found.confidence}, alpha {found.alpha}"
        )
    for stage in found.stages:
        served = "" if stage.served is None else f"; reached by {stage.reached:,} points, serves {stage.served:,}"
        yield f"  stage {stage.place}, {stage.classifier or 'a person'}: cost {cost_text(stage.cost)}{served}"
    if found.is_certified and found.points:
        yield f"  classifiers serve {found.served or 0:,} of {found.points:,} points of evidence"
    if found.cost is not None:
        last = cost_text(found.cost_of_last)
        yield f"  a point costs {cost_text(found.cost)} on average, and {last} by the last stage alone"


@record
class CascadeDecision:
    """What a stage of a cascade says of a point.

    Attributes:
        certificate: Number of the cascade's certificate.
        stage: The place of the stage that was asked.
        predicted: The class that it predicts.
        score: The score of the prediction.
        threshold: The least score at which it is served; None for never.
        served: The class that is served; None if the point is rejected here.
        next_stage: The stage to ask next; None if the point is served, or if no stage is left.
        next_classifier: The classifier of that stage; None for a person, too.
    """

    certificate: int = member(3)
    stage: int = member(1)
    predicted: str = member("positive")
    score: float = member(0.93)
    threshold: float | None = member(0.81)
    served: str | None = member("positive")
    next_stage: int | None = member(None)
    next_classifier: str | None = member(None)


@record
class ServedStage:
    """What a stage did with points.

    Attributes:
        place: Its place, from 1.
        classifier: Its classifier; None for a person.
        reached: How many points reached it.
        served: How many of them it served; a person serves all.
        waiting: How many of them it has not scored yet.
        unneeded: How many points it scored that an earlier stage serves.
        cost: What the points cost that reached it.
    """

    place: int = member(1, "stage")
    classifier: str | None = member("small")
    reached: int = member(488)
    served: int = member(300)
    waiting: int = member(0)
    unneeded: int = member(0)
    cost: float = member(488.0)


@record
class Served:
    """What a cascade serves of n points, in the order of the rows of its first stage.

    Attributes:
        certificate: Number of the cascade's certificate.
        ids: (n,) the id of each point.
        served: (n,) the class that is served; None if the classifiers asked so far reject it.
        stage: (n,) the stage that serves it, or else the one to ask next; None if none is left.
        stages: What each stage did.
        cost: What the points cost together, those of a person included.
        cost_of_last: What they would cost if the last stage answered all.
    """

    certificate: int = member(3)
    ids: tuple[str, ...] = member(["review-1", "review-2"], repr=False)
    served: tuple[str | None, ...] = member(["positive", None], repr=False)
    stage: tuple[int | None, ...] = member([1, 2], repr=False)
    stages: tuple[ServedStage, ...] = member(...)
    cost: float = member(1220.0)
    cost_of_last: float = member(48800.0)
