"""What is forgotten or deleted."""

from pydantic import Field

from venn_admit.api.models.common import Given, Model, StoredId

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


class ForgottenExemplars(Model):
    """What was removed, in numbers; no id is in it."""

    classifier: str = Field(examples=["reviews"])
    is_done: bool = Field(description="False after a dry run.", examples=[True])
    ids: int = Field(description="Ids of the request that something was stored under.", examples=[2])
    exemplars: int = Field(description="Removed in all generations together.", examples=[2])
    forgotten_before: int = Field(description="Ids that were forgotten before.", examples=[0])
    unknown: int = Field(description="Ids that nothing is stored under.", examples=[0])
    rows: dict[str, int] = Field(description="Removed, by table.", examples=[{"exemplar": 2, "label_event": 2}])
    calibrations_renewed: int = Field(
        description="Calibrations that counted them and are followed by one that does not.", examples=[1]
    )
    recalibrations_due: int = Field(description="Settings that must be recalibrated for it.", examples=[0])
    jobs: list[int] = Field(description="Jobs that search neighbours again.", examples=[[]])


class DeletedClassifier(Model):
    """What was deleted, in numbers."""

    classifier: str = Field(description="Or the address of the one generation.", examples=["reviews"])
    is_done: bool = Field(description="False after a dry run.", examples=[True])
    generations: list[str] = Field(examples=[["reviews@1"]])
    rows: dict[str, int] = Field(
        description="Deleted, by table, without what a request deleted that was interrupted.",
        examples=[{"classifier": 1, "exemplar": 1000}],
    )
