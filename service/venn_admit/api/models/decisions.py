"""Points to decide on, decisions with their evidence, and the nearest exemplars."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from venn_admit.api.models.common import WHOLE, AnswerPage, ExternalId, Extractor, Finite, Given, Model, Number

MOST_POINTS = 1000

_Vector = Annotated[list[Finite], Field(fail_fast=True, min_length=1, max_length=16_000)]
_Logits = Annotated[list[Finite], Field(fail_fast=True, min_length=2, max_length=100_000)]


class Point(Given):
    """A point to decide on."""

    external_id: ExternalId | None = Field(default=None, description="What the answer calls it.", examples=["review-1"])
    vector: _Vector | None = Field(
        default=None, description="r, D numbers; null if the classifier has logits only.", examples=[[0.25, -1.5, 0.75]]
    )
    logits: _Logits | None = Field(
        default=None,
        description="f(x), the network's, C numbers; a calibration by Venn-Abers needs them, one by Venn-ADMIT does "
        "not.",
        examples=[[2.5, -1.5]],
    )


class DecideRequest(Given):
    """Points that are decided on at once, all by the same calibration; nothing is stored."""

    points: list[Point] = Field(min_length=1, max_length=MOST_POINTS, description="In the order of the answer.")
    weighted: bool | None = Field(
        default=None,
        description="Weight probabilities by the localizer, or not; null: as is usual for the method.",
        examples=[None],
    )
    require_full_match: bool = Field(default=False, description="Reject every prediction with q < K.", examples=[False])
    extractor: Extractor | None = Field(
        default=None, description="Version of the extractor that the vectors come from.", examples=[None]
    )
    neighbours: Annotated[int, Field(ge=0, le=10_000), WHOLE] | None = Field(
        default=None,
        description="How many of the nearest training exemplars each decision names, K at most; null: K for a single "
        "point, none for more.",
        examples=[5],
    )

    @property
    def neighbour_count(self) -> int | None:
        """How many of the nearest training exemplars each decision names; None: K."""
        return 0 if self.neighbours is None and len(self.points) > 1 else self.neighbours


_Attributes = Annotated[
    dict[str, Any],
    Field(
        description="Attributes of the exemplar. If a memory layer made it of a document, `contributions` says which "
        "tokens carry the network's prediction over the runner-up.",
        examples=[{"text": "A film to remember."}],
    ),
]


class NearExemplar(Model):
    """A training exemplar that a decision rests on."""

    external_id: str = Field(examples=["train-17"])
    network_predicted: int = Field(description="Class that the network predicts.", examples=[1])
    attributes: dict[str, Any] = Field(examples=[{"text": "A film to remember."}])
    label: int = Field(description="Its label.", examples=[1])
    distance: float = Field(examples=[3.25])
    label_class: str = Field(examples=["positive"])
    network_class: str = Field(examples=["positive"])


class Applied(Model):
    """What a policy says of a prediction."""

    is_certified: bool = Field(description="Whether there is a certified policy.", examples=[True])
    threshold: Number | None = Field(
        description="Least lower probability that admits this class; null: never.", examples=[0.93]
    )


class EvidenceAnswer(Model):
    """What is stored of a decision; what another method has is left out."""

    predicted: int = Field(description="Class that was decided on.", examples=[1])
    match_count: int | None = Field(description="q; null with logits only.", examples=[25])
    distance: float | None = Field(description="d; null with logits only.", examples=[3.25])
    logits: list[Number] | None = Field(description="The KNN's; null with logits only.", examples=[[-2.5, 2.5]])
    admit_set: str | None = Field(default=None, description="The set, a bit per class.", examples=["01"])
    band_size: list[int] | None = Field(
        default=None, description="Points in the band, per class.", examples=[[1200, 1500]]
    )
    threshold: list[Number] | None = Field(default=None, description="Per class.", examples=[[0.5, 0.75]])
    category_size: int | None = Field(default=None, description="Points in the category.", examples=[900])
    score: Number | None = Field(default=None, description="s, which ranks the predictions.", examples=[2.5])
    step_score: Number | None = Field(default=None, description="From which score its step holds.", examples=[2.25])
    upweight: Number | None = Field(description="Null if not computed.", examples=[0.125])
    lower: float | None = Field(description="Lower probability; null if not computed.", examples=[0.93])
    upper: float | None = Field(description="Upper probability; null if not computed.", examples=[0.95])
    decision: int | None = Field(
        description="The class that is admitted; null if the prediction is rejected.", examples=[1]
    )
    reason: str | None = Field(description="Why it is rejected; null if it is admitted.", examples=[None])


class DecidedAnswer(EvidenceAnswer):
    """A decision that was made at once."""

    external_id: str | None = Field(examples=["review-1"])
    calibration: int = Field(description="The calibration by which it was made.", examples=[7])
    class_names: list[str] = Field(examples=[["negative", "positive"]])
    predicted_class: str = Field(examples=["positive"])
    decided_class: str | None = Field(examples=["positive"])
    category_counts: list[int] = Field(description="Points of each label in the category.", examples=[[50, 850]])
    policy: Applied | None = Field(description="Null if no certificate was asked for.")
    neighbours: list[NearExemplar] = Field(description="The nearest training exemplars, as many as asked for.")


class DecidedPointsAnswer(Model):
    """Decisions on points, in their order, all by the same calibration."""

    calibration: int = Field(examples=[7])
    decisions: list[DecidedAnswer]


class ListedDecision(Model):
    """A stored decision at a glance."""

    decision: int = Field(description="Its number.", examples=[4711])
    external_id: str = Field(examples=["review-1"])
    calibration: int = Field(examples=[7])
    weighted: bool = Field(examples=[True])
    require_full_match: bool = Field(examples=[False])
    predicted: int = Field(examples=[1])
    predicted_class: str = Field(examples=["positive"])
    lower: float | None = Field(examples=[0.93])
    upper: float | None = Field(examples=[0.95])
    decided: int | None = Field(
        description="The class that is admitted; null if the prediction is rejected.", examples=[1]
    )
    decided_class: str | None = Field(examples=["positive"])
    reason: str | None = Field(examples=[None])
    created_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])


class DecisionsAnswer(AnswerPage):
    """A page of stored decisions."""

    decisions: list[ListedDecision]


class ShownDecisionAnswer(EvidenceAnswer):
    """A stored decision with its evidence."""

    decision_id: int = Field(examples=[4711])
    classifier: str = Field(description="The generation that decided.", examples=["reviews@1"])
    external_id: str = Field(examples=["review-1"])
    calibration: int = Field(examples=[7])
    weighted: bool = Field(examples=[True])
    require_full_match: bool = Field(examples=[False])
    created_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])
    class_names: list[str] = Field(examples=[["negative", "positive"]])
    predicted_class: str = Field(examples=["positive"])
    decided_class: str | None = Field(examples=["positive"])
    label: int | None = Field(description="The exemplar's label as it is now.", examples=[1])
    label_class: str | None = Field(examples=["positive"])
    attributes: _Attributes
    neighbours: list[NearExemplar] | None = Field(
        description="The nearest training exemplars; null if training data changed since, which a replay undoes."
    )


class ForgottenAnswer(Model):
    """How many exemplars that a decision saw were forgotten since."""

    training: int = Field(description="Training exemplars of its time, among the nearest or not.", examples=[0])
    mc: int = Field(description="Points of its calibration, of split mc.", examples=[0])
    vp: int = Field(description="Points of its calibration, of split vp.", examples=[0])


class ReplayedAnswer(Model):
    """A stored decision, computed again from its snapshot."""

    decision_id: int = Field(examples=[4711])
    classifier: str = Field(description="The generation that decided.", examples=["reviews@1"])
    external_id: str = Field(examples=["review-1"])
    class_names: list[str] = Field(examples=[["negative", "positive"]])
    label: int | None = Field(examples=[1])
    label_class: str | None = Field(examples=["positive"])
    predicted_class: str = Field(examples=["positive"])
    decided_class: str | None = Field(examples=["positive"])
    calibration: int = Field(examples=[7])
    stored: EvidenceAnswer
    computed: EvidenceAnswer
    differing: list[str] = Field(
        description="Fields that are not the same, bit for bit; it should be empty.", examples=[[]]
    )
    forgotten: ForgottenAnswer
    not_recomputed: list[str] = Field(
        description="Fields that rest on exemplars that were forgotten since; they are null in `computed`.",
        examples=[[]],
    )
    category_counts: list[int] | None = Field(
        description="Points of each label in the category; null if some of it were forgotten.", examples=[[50, 850]]
    )
    policy: Applied | None
    attributes: _Attributes
    basis: dict[str, Any] | None = Field(
        description="Venn-Abers only: the cell and the steps around the score.", examples=[None]
    )
    neighbours: list[NearExemplar] = Field(description="The nearest training exemplars of that time.")
