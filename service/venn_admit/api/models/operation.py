"""Jobs, reports, monitors, the state of the service, and the audit ledger."""

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from venn_admit.api.models.common import AnswerPage, Model, answer_of
from venn_admit_client.records import reports


class JobAnswer(Model):
    """A job and its progress."""

    job: int = Field(examples=[12])
    classifier: str = Field(examples=["reviews"])
    kind: str = Field(description="approximate, score, fit or certify.", examples=["score"])
    state: str = Field(description="running, done, failed or cancelled.", examples=["done"])
    calibration: int | None = Field(examples=[7])
    rows: int = Field(examples=[2000])
    chunks: int = Field(examples=[1])
    error: str | None = Field(examples=[None])
    created_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])
    finished_at: datetime | None = Field(examples=["2026-07-01T12:00:03+00:00"])
    seconds: float | None = Field(examples=[3.0])
    rows_done: int = Field(examples=[2000])
    chunks_failed: int = Field(examples=[0])
    most_attempts: int | None = Field(examples=[1])
    removed_at: datetime | None = Field(
        description="When its rows, chunks and decisions were removed; null while they are kept.", examples=[None]
    )


class Jobs(AnswerPage):
    """A page of jobs."""

    jobs: list[JobAnswer]


class ShownJobAnswer(JobAnswer):
    """A job with its chunks, counted by state."""

    chunk_states: list[dict[str, Any]] = Field(examples=[[{"state": "done", "chunks": 1, "rows": 2000}]])
    chunk_list: list[dict[str, Any]] = Field(description="Each chunk.", examples=[[]])


class SubmittedJob(Model):
    """A job that was recorded, which workers compute."""

    job: int = Field(description="Its number.", examples=[12])
    calibration: int = Field(description="The calibration by which it decides.", examples=[7])
    rows: int = Field(examples=[2000])
    weighted: bool = Field(description="Whether probabilities are weighted by the localizer.", examples=[True])


class Report(answer_of(reports.Report, "Report")):  # type: ignore[misc]
    """The state of a calibration; the other members are those of `report --json`."""

    model_config = ConfigDict(extra="allow")


class Alarm(Model):
    """An alarm, or a notice, that stands; the other members are those that a webhook is sent."""

    model_config = ConfigDict(extra="allow")

    alarm: int = Field(examples=[3])
    lamp: str = Field(examples=["true classes"])
    harmful: bool = Field(description="Whether it is an alarm, or a notice.", examples=[True])
    since: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])


class Monitor(answer_of(reports.Monitor, "Monitor")):  # type: ignore[misc]
    """What a monitor says; the other members are those of `monitor --json`."""

    model_config = ConfigDict(extra="allow")

    readings: list[dict[str, Any]] = Field(
        description="What each lamp says.", examples=[[{"lamp": "true classes", "documents": 400, "right": 380}]]
    )
    alarms: list[Alarm]


class Alarms(Model):
    """The alarms and notices that stand."""

    classifier: str = Field(examples=["reviews"])
    alarms: list[Alarm]


class Live(Model):
    """The process answers."""

    status: Literal["live"] = Field(examples=["live"])


State = Literal["ready", "failed"]


class Ready(Model):
    """What requests need."""

    status: State = Field(description="Whether all of these are ready.", examples=["ready"])
    database: State = Field(examples=["ready"])
    schema_: State = Field(alias="schema", description="The schema of the database.", examples=["ready"])
    broker: State = Field(description="State of the broker of jobs.", examples=["ready"])
    workers: int = Field(
        ge=0, description="Workers that are up. Only calibrations and other jobs need one.", examples=[1]
    )


class AuditEvent(Model):
    """Something that was done, or refused."""

    event: int = Field(examples=[120])
    created_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])
    origin: Literal["http", "command line", "python", "schedule"] = Field(examples=["http"])
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
