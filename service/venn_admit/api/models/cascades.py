"""Cascades: what requests give, and what answers say."""

from typing import Annotated, Any, Literal

from pydantic import Field

from venn_admit.api.models.common import (
    LARGEST_INTEGER,
    WHOLE,
    Decimals,
    Given,
    Key,
    Model,
    Name,
    StatedInRequest,
    answer_of,
)
from venn_admit.api.models.decisions import Point
from venn_admit.core.calibrators.cascade_settings import DEFAULT_KINDS, DEFAULT_TEST
from venn_admit.core.calibrators.certification import DEFAULT_CONFIDENCE
from venn_admit.core.calibrators.settings import DEFAULT_ALPHA
from venn_admit.flows.cascades.manage import MOST_STAGES
from venn_admit_client.records.cascades import CascadeDecision, CascadeReport, Served


class NewStage(Given):
    """A stage of a cascade."""

    classifier: Name = Field(
        description="The classifier, which stays with its generation of today; or `person` for the last stage.",
        examples=["small"],
    )
    cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=0.0, description="What a point costs that reaches it, in any unit.", examples=[1.0]
    )


class NewCascade(Given):
    """A cascade to create."""

    cascade: Name = Field(description="Its name.", examples=["reviews"])
    stages: list[NewStage] = Field(
        min_length=1,
        max_length=MOST_STAGES,
        description="In the order in which they are asked. All have the same classes.",
    )


class CascadeSettings(Given):
    """What is asked of a certificate of a cascade."""

    alpha: Decimals = Field(
        default=str(DEFAULT_ALPHA),
        description="Share of what is served of each class that may be wrong.",
        examples=["0.1"],
    )
    certify: list[Literal["predicted", "true"]] = Field(
        default=[kind.value for kind in DEFAULT_KINDS],
        min_length=1,
        max_length=2,
        description="Classes that are promised something: predicted ones, true ones, or both.",
        examples=[["predicted"]],
    )
    confidence: Decimals = Field(
        default=str(DEFAULT_CONFIDENCE), description="Confidence of the certificate.", examples=["0.95"]
    )
    test: Literal["finite-sample", "asymptotic"] = Field(
        default=DEFAULT_TEST.value,
        description="How documents of several points are tested.",
        examples=["finite-sample"],
    )


class ScoredStages(Given):
    """Jobs in which the first stages of a cascade have scored points."""

    jobs: list[Annotated[Key, WHOLE]] = Field(
        min_length=1,
        max_length=MOST_STAGES,
        description="A job of each of the first stages, in order.",
        examples=[[12, 13]],
    )


class StageRequest(StatedInRequest, Given):
    """A point that a stage of a cascade is asked about; nothing is stored."""

    stage: Annotated[int, Field(ge=1, le=LARGEST_INTEGER), WHOLE] = Field(
        description="The stage, which all before have rejected the point at.", examples=[1]
    )
    point: Point = Field(description="As the classifier of the stage has it.")


class SubmittedCertificate(Model):
    """A job that was recorded, in which workers certify a cascade."""

    job: int = Field(description="Its number.", examples=[12])
    classifier: str = Field(description="The classifier of the first stage, whose job it is.", examples=["small"])
    rows: int = Field(description="Exemplars that this classifier holds out.", examples=[3600])


CascadeAnswer: Any = answer_of(CascadeReport, "CascadeAnswer")
ServedAnswer: Any = answer_of(Served, "ServedAnswer")
StageAnswer: Any = answer_of(CascadeDecision, "StageAnswer")


class CascadesAnswer(Model):
    """All cascades."""

    cascades: list[CascadeAnswer] = Field(description="In the order of their names.")
