"""The audit ledger."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from venn_admit.api.models.common import AnswerPage, Model


class AuditEvent(Model):
    """Something that was done, or refused."""

    event: int = Field(examples=[120])
    created_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])
    origin: Literal["http", "command line", "schedule"] = Field(examples=["http"])
    key: int | None = Field(description="The key that was shown; null without a valid one.", examples=[2])
    key_name: str | None = Field(description="What the key is for.", examples=["checkout"])
    subject: str | None = Field(description="Subject of the token that was shown.", examples=[None])
    action: str = Field(
        description="The operationId of the route, authenticate, create_key, revoke_key, create_generation, "
        "switch_generation, state_extractor, delete_job or prune_jobs.",
        examples=["record_labels"],
    )
    route: str | None = Field(examples=["POST /v1/classifiers/{classifier}/labels"])
    target: str | None = Field(
        description="The classifier, generation, key or job that is named.", examples=["reviews"]
    )
    status: int | None = Field(description="HTTP status of the answer.", examples=[200])
    is_replay: bool = Field(description="Whether an answer was given again, and nothing was done.", examples=[False])
    request_id: str | None = Field(
        description="X-Request-ID of the answer.", examples=["0f8fad5bd9cb469fa16570867728950e"]
    )
    client_address: str | None = Field(
        description="Where the request came from, if the settings ask for it.", examples=[None]
    )


class AuditEvents(AnswerPage):
    """A page of the ledger."""

    events: list[AuditEvent]
