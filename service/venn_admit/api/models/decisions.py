"""Points to decide on, decisions with their evidence, and the nearest exemplars."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, create_model

from venn_admit.api.models.common import (
    WHOLE,
    AnswerPage,
    AttributesOfOne,
    ExternalId,
    FromSource,
    Given,
    Key,
    Model,
    Number,
    PerClass,
    StatedInRequest,
    Vector,
    answer_of,
)
from venn_admit.core import evidence
from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.evidence import Kind
from venn_admit.core.reasons import Reason
from venn_admit_client.bodies import MOST_ROWS
from venn_admit_client.records.decisions import Neighbour, Replay, StoredDecision


class Point(Given):
    """A point to decide on."""

    external_id: ExternalId | None = Field(default=None, description="What the answer calls it.", examples=["review-1"])
    vector: Vector | None = Field(
        default=None, description="r, D numbers; null if the classifier has logits only.", examples=[[0.25, -1.5, 0.75]]
    )
    logits: PerClass | None = Field(
        default=None,
        description="f(x), the network's, C numbers; a calibration by Venn-Abers needs them, one by Venn-ADMIT does "
        "not.",
        examples=[[2.5, -1.5]],
    )
    attributes: AttributesOfOne = Field(
        default_factory=dict, description="What else is known of it; a certificate for groups decides by some of them."
    )


class HowToDecide(StatedInRequest):
    """How points are decided on."""

    weighted: bool | None = Field(
        default=None,
        description="Weight probabilities by the localizer, or not; by default as is usual for the method.",
        examples=[None],
    )
    require_full_match: bool = Field(default=False, description="Reject every prediction with q < K.", examples=[False])


class HowToScore(HowToDecide, FromSource):
    """How the rows of a file are decided on."""

    calibration: Key | None = Field(
        default=None, description="Number of a calibration; left out: the one in use.", examples=[7]
    )


class DecideRequest(HowToDecide, Given):
    """Points that are decided on at once, all by the same calibration; nothing is stored."""

    points: list[Point] = Field(min_length=1, max_length=MOST_ROWS, description="In the order of the answer.")
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


class NearExemplar(answer_of(Neighbour, "Neighbour")):  # type: ignore[misc]
    """A training exemplar that a decision rests on."""

    network_predicted: int = Field(description="Class that the network predicts.", examples=[1])
    label: int = Field(description="Its label.", examples=[1])
    network_class: str = Field(examples=["positive"])


class Applied(Model):
    """What a policy says of a prediction."""

    is_certified: bool = Field(
        description="Whether there is a certified policy; false for that of the average promise.", examples=[True]
    )
    promise: str = Field(
        description=f"What it promises: {', '.join(Promised)}; none without a policy.",
        examples=[str(Promised.BOTH)],
    )
    promise_sentence: str = Field(description="The same in words.", examples=["nothing"])
    threshold: Number | None = Field(description="Least value that admits this class; null: never.", examples=[0.93])
    bounded: str | None = Field(
        description="What the threshold bounds: `score`, or `lower` for the lower probability in older certificates; "
        "null without a policy.",
        examples=["score"],
    )
    has_groups: bool = Field(description="Whether groups have thresholds of their own.", examples=[False])


_TYPES: dict[Kind, Any] = {
    Kind.INTEGER: int,
    Kind.CLASS: int,
    Kind.REAL: float,
    Kind.UNBOUNDED: Number,
    Kind.REASON: str,
    Kind.INTEGERS: list[int],
    Kind.UNBOUNDEDS: list[Number],
    Kind.BITS: str,
}


def _answer_field(field: evidence.Field, *, is_own: bool = False) -> Any:
    """Return the type of a field and what is said of it; is_own: whether one method alone has it."""
    kind = _TYPES[field.kind] | None if field.nullable or is_own else _TYPES[field.kind]
    reasons = f" One of: {', '.join(Reason)}." if field.kind is Kind.REASON else ""
    default = None if is_own else ...
    return kind, Field(default, description=f"{field.meaning}{reasons}", examples=[field.example])


_evidence: Any = create_model(
    "EvidenceAnswer",
    __base__=Model,
    **{field.name: _answer_field(field) for field in (*evidence.PREDICTION, *evidence.VIEW)},
    **{field.name: _answer_field(field, is_own=True) for own in evidence.EVIDENCE.values() for field in own.fields},
    **{field.name: _answer_field(field) for field in evidence.VERDICT},
)


class EvidenceAnswer(_evidence):  # type: ignore[misc] # its fields are those that are declared
    """What is stored of a decision; what another method has is left out."""


class CategoryAnswer(Model):
    """What the category of a singleton says of every class."""

    lower: list[float] = Field(description="Lower Venn probability of each class.", examples=[[0.05, 0.94]])
    upper: list[float] = Field(description="Upper Venn probability of each class.", examples=[[0.06, 0.95]])
    right: float | None = Field(
        description="Share of the category that has the predicted label; null if it is empty.", examples=[0.944]
    )
    interval: tuple[float, float] = Field(
        description="Its 95 % Wilson interval, with every point as a draw of its own.", examples=[[0.927, 0.958]]
    )


_Category = Annotated[
    CategoryAnswer | None, Field(description="Null if the set is not a singleton, or the method has no categories.")
]


class _Named(Model):
    class_names: list[str] = Field(examples=[["negative", "positive"]])
    predicted_class: str = Field(examples=["positive"])
    decided_class: str | None = Field(examples=["positive"])


class DecidedAnswer(_Named, EvidenceAnswer):
    """A decision that was made at once."""

    external_id: str | None = Field(examples=["review-1"])
    calibration: int = Field(description="The calibration by which it was made.", examples=[7])
    category_counts: list[int] = Field(description="Points of each label in the category.", examples=[[50, 850]])
    category: _Category
    policy: Applied | None = Field(description="Null if the pointwise promise was asked for.")
    neighbours: list[NearExemplar] = Field(description="The nearest training exemplars, as many as asked for.")


class DecidedPointsAnswer(Model):
    """Decisions on points, in their order, all by the same calibration."""

    calibration: int = Field(examples=[7])
    decisions: list[DecidedAnswer]


class ListedDecision(answer_of(StoredDecision, "StoredDecision")):  # type: ignore[misc]
    """A stored decision at a glance."""

    predicted: int = Field(examples=[1])
    decided: int | None = Field(
        description="The class that is admitted; null if the prediction is rejected.", examples=[1]
    )


class DecisionsAnswer(AnswerPage):
    """A page of stored decisions."""

    decisions: list[ListedDecision]


class _StoredAnswer(_Named):
    decision_id: int = Field(examples=[4711])
    classifier: str = Field(description="The generation that decided.", examples=["reviews@1"])
    external_id: str = Field(examples=["review-1"])
    calibration: int = Field(examples=[7])
    label: int | None = Field(description="The exemplar's label as it is now.", examples=[1])
    label_class: str | None = Field(examples=["positive"])
    attributes: _Attributes


class ShownDecisionAnswer(_StoredAnswer, EvidenceAnswer):
    """A stored decision with its evidence."""

    weighted: bool = Field(examples=[True])
    require_full_match: bool = Field(examples=[False])
    created_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])
    neighbours: list[NearExemplar] | None = Field(
        description="The nearest training exemplars; null if training data changed since, which a replay undoes."
    )


class ForgottenAnswer(Model):
    """How many exemplars that a decision saw were forgotten since."""

    training: int = Field(description="Training exemplars of its time, among the nearest or not.", examples=[0])
    mc: int = Field(description="Points of its calibration, of split mc.", examples=[0])
    vp: int = Field(description="Points of its calibration, of split vp.", examples=[0])


class ReplayedAnswer(answer_of(Replay, "Replay"), _StoredAnswer):  # type: ignore[misc]
    """A stored decision, computed again from its snapshot."""

    stored: EvidenceAnswer
    computed: EvidenceAnswer
    forgotten: ForgottenAnswer
    not_recomputed: list[str] = Field(
        description="Fields that rest on exemplars that were forgotten since; they are null in `computed`.",
        examples=[[]],
    )
    category_counts: list[int] | None = Field(
        description="Points of each label in the category; null if some of it were forgotten.", examples=[[50, 850]]
    )
    category: _Category
    policy: Applied | None
    basis: dict[str, Any] | None = Field(
        description="Venn-Abers only: the cell and the steps around the score.", examples=[None]
    )
    neighbours: list[NearExemplar] = Field(description="The nearest training exemplars of that time.")
