"""What is forgotten or deleted."""

from pydantic import Field

from venn_admit.api.models.common import Given, StoredId, answer_of
from venn_admit.records import Deletion, Forgetting

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
