"""The queue for reviewers: claims on its points, and the labels that they are given."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from venn_admit.api.models.common import WHOLE, ClassName, ClassNumber, Given, Model, Name, StoredId, answer_of
from venn_admit.flows.reviews.claims import LEAST_LEASE, MOST_CLAIMS, MOST_LEASE
from venn_admit_client.bodies import MOST_LABELS
from venn_admit_client.records.reviews import Claims, Disagreement, Reviewed, ReviewQueue
from venn_admit_client.reviewer_interface import LEASE_SECONDS

Lease = Annotated[float, Field(ge=LEAST_LEASE, le=MOST_LEASE, allow_inf_nan=False)]


class OfReviewer(BaseModel):
    """Who asks."""

    reviewer: Name | None = Field(
        default=None,
        description="Who it is, by whose name claims and labels are told apart; null: the name of the key.",
        examples=["anna"],
    )


class ClaimRequest(OfReviewer, Given):
    """Points that a reviewer wants to hold."""

    count: Annotated[int, Field(ge=1, le=MOST_CLAIMS), WHOLE] = Field(
        default=1, description="At most how many, those among them that are held already.", examples=[1]
    )
    lease_seconds: Lease = Field(
        default=LEASE_SECONDS, description="How long the claims hold unless they are renewed.", examples=[900]
    )
    again: bool = Field(
        default=False,
        description="Claim points that one other reviewer has labelled, for a second opinion.",
        examples=[False],
    )


class PointsOfReviewer(OfReviewer, Given):
    """Points that a reviewer holds."""

    external_ids: Annotated[list[StoredId], Field(max_length=MOST_CLAIMS)] | None = Field(
        default=None, description="Their ids; null: all that the reviewer holds.", examples=[["review-1"]]
    )


class RenewalRequest(PointsOfReviewer):
    """Claims to extend."""

    lease_seconds: Lease = Field(default=LEASE_SECONDS, description="How long they hold from now on.", examples=[900])


class ReviewLabel(Given):
    """The label of a point."""

    external_id: StoredId = Field(examples=["review-1"])
    label: ClassNumber | ClassName = Field(description="Its class, by number or name.", examples=["positive"])


class ReviewLabels(OfReviewer, Given):
    """The labels of a reviewer: all of them are recorded, or none if one is refused."""

    labels: list[ReviewLabel] = Field(min_length=1, max_length=MOST_LABELS)
    resolve: bool = Field(
        default=False, description="Whether they end disagreements about their points.", examples=[False]
    )


ClaimsAnswer = answer_of(Claims, "ClaimsAnswer")
ReviewedAnswer = answer_of(Reviewed, "ReviewedAnswer")
ReviewQueueAnswer = answer_of(ReviewQueue, "ReviewQueueAnswer")
DisagreementAnswer: Any = answer_of(Disagreement, "DisagreementAnswer")


class RenewedClaims(Model):
    """Claims that were extended."""

    renewed: int = Field(description="How many hold; others may have taken the rest.", examples=[1])


class ReleasedClaims(Model):
    """Claims that were given back."""

    released: int = Field(description="How many.", examples=[1])


class Disagreements(Model):
    """Points about which reviewers disagree, the one labelled last first, at most 1,000."""

    disagreements: list[DisagreementAnswer] = Field(description="The points.")
