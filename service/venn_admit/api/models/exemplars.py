"""Exemplars and labels that come in, and what is forgotten or deleted."""

from typing import Literal

from pydantic import Field

from venn_admit.api.models.common import (
    AttributesOfOne,
    ClassName,
    ClassNumber,
    ExternalId,
    FromSource,
    Given,
    PerClass,
    StatedInRequest,
    StoredId,
    Vector,
    answer_of,
)
from venn_admit_client.bodies import MOST_LABELS, MOST_ROWS
from venn_admit_client.records.data import Deletion, Forgetting, Ingestion, Labelling


class NewExemplar(Given):
    """A labelled exemplar to store."""

    external_id: ExternalId | None = Field(
        default=None, description="Its id; null for all or none: then ids follow from the content.", examples=["a-1"]
    )
    document_id: ExternalId | None = Field(default=None, description="The document it is from.", examples=[None])
    vector: Vector | None = Field(
        default=None, description="r, D numbers; null if the classifier has logits only.", examples=[[0.25, -1.5, 0.75]]
    )
    logits: PerClass = Field(description="f(x), the network's, C numbers.", examples=[[2.5, -1.5]])
    label: ClassNumber | ClassName = Field(description="Its class, by number or name.", examples=["positive"])
    attributes: AttributesOfOne = Field(default_factory=dict, description="What else is known of it.")


class HowToStore(StatedInRequest, FromSource):
    """How exemplars are stored that come in."""

    split: Literal["train", "held-out", "knn", "mc", "vp"] = Field(
        description="held-out is divided by a hash into knn, mc and vp.", examples=["held-out"]
    )
    allow_training_rows: bool = Field(
        default=False,
        description=(
            "Whether exemplars may be held out that have the vector and logits, or the document, of one that trains."
        ),
        examples=[False],
    )


class NewExemplars(HowToStore, Given):
    """Exemplars to store: all of them, or none if one is refused. Sending them again is a no-op."""

    exemplars: list[NewExemplar] = Field(min_length=1, max_length=MOST_ROWS)


IngestedAnswer = answer_of(Ingestion, "IngestedAnswer")


class NewLabel(Given):
    """A label of a stored exemplar."""

    external_id: StoredId = Field(examples=["review-1"])
    label: ClassNumber | ClassName | None = Field(
        description="Its class, by number or name; null takes the stored label back, if `retract` is true.",
        examples=["positive"],
    )
    selection: Literal["random", "review", "selected"] | None = Field(
        default=None, description="How it was chosen; null: as for all.", examples=[None]
    )


class HowToRecord(FromSource):
    """How labels are recorded that come in."""

    selection: Literal["random", "review", "selected"] = Field(
        default="random",
        description="How exemplars were chosen for which nothing else is said: random labels calibrate; those "
        "of a review, of points that were drawn to be audited, count by the probability, and some of "
        "them calibrate; those selected by someone or a rule never do either.",
        examples=["random"],
    )
    retract: bool = Field(default=False, description="Let an empty label retract the stored one.", examples=[False])
    join_train: bool = Field(
        default=False,
        description="Add the exemplars, whose labels must be selected, to the training exemplars.",
        examples=[False],
    )


class NewLabels(HowToRecord, Given):
    """Labels to record: all of them, or none if one is refused."""

    labels: list[NewLabel] = Field(min_length=1, max_length=MOST_LABELS)


Labelled = answer_of(Labelling, "Labelled")


MOST_IDS = 5000


class ExemplarsToForget(Given):
    """Exemplars to forget, in every generation: all of them, or none if an id is unknown."""

    ids: list[StoredId] = Field(
        default=[], max_length=MOST_IDS, description="Ids of exemplars.", examples=[["review-1", "review-2"]]
    )
    documents: list[StoredId] = Field(
        default=[],
        max_length=MOST_IDS,
        description="Ids of documents, all of whose exemplars are meant.",
        examples=[[]],
    )
    missing_ok: bool = Field(default=False, description="Leave unknown ids out.", examples=[False])
    dry_run: bool = Field(
        default=False, description="Count what would be removed, and change nothing.", examples=[True]
    )


ForgottenExemplars = answer_of(Forgetting, "ForgottenExemplars")
DeletedClassifier = answer_of(Deletion, "DeletedClassifier")
