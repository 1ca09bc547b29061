"""Fits, their parameters, and recalibrations."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from venn_admit.api.models.calibration_settings import IGNORED, with_ignored_settings
from venn_admit.api.models.common import WHOLE, Finite, Given, Model, Number, PerClass, answer_of
from venn_admit.core.calibrators.venn_abers.scores import FEATURES
from venn_admit.http.paging import LARGEST_KEY
from venn_admit_client.records.calibrations import Fit


class SubmittedFit(Model):
    """A fit that was recorded, which workers compute."""

    job: int = Field(description="Its number.", examples=[12])
    rows: int = Field(
        description="Exemplars whose neighbours are searched, and those that are fitted on.", examples=[8100]
    )


FittedAnswer = answer_of(Fit, "FittedAnswer")


class ParametersAnswer(Model):
    """Parameters as `export --what parameters` writes them; the other members are those of a calibration."""

    model_config = ConfigDict(extra="allow")

    beta: list[Finite] | None = Field(
        default=None, description="The KNN's beta, C numbers; left out with logits only.", examples=[[-0.16, -0.23]]
    )
    gamma: list[Finite] | None = Field(default=None, description="The KNN's gamma, C numbers.", examples=[[0.25, 0.25]])
    eta: Finite | None = Field(default=None, description="Temperature of the KNN.", examples=[4.7])
    eta_loc: Finite | None = Field(default=None, description="Temperature of the localizer.", examples=[0.6])
    reliability: dict[str, Any] | None = Field(
        default=None, description="The model of the reliability score.", examples=[None]
    )


_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_PerFeature = Annotated[list[Finite], Field(fail_fast=True, min_length=len(FEATURES), max_length=len(FEATURES))]


class ClassReliability(Given):
    """The model of right / wrong of a predicted class."""

    mean: _PerFeature = Field(description="Mean of each feature.", examples=[[0.0] * len(FEATURES)])
    sd: Annotated[list[_Positive], Field(min_length=len(FEATURES), max_length=len(FEATURES))] = Field(
        description="Standard deviation of each feature.", examples=[[1.0] * len(FEATURES)]
    )
    coefficients: _PerFeature = Field(
        description="Coefficients of the standardised features.", examples=[[0.5] * len(FEATURES)]
    )
    intercept: Finite = Field(examples=[1.5])
    points: Annotated[int, Field(ge=0, le=LARGEST_KEY), WHOLE] = Field(
        description="Points that it was fitted on.", examples=[400]
    )


class NewReliability(Given):
    """The model of the reliability score."""

    median_d: _Positive = Field(description="m, the median of d over split knn.", examples=[2.5])
    models: dict[Annotated[str, StringConstraints(pattern=r"^([0-9]{1,6}|all)$")], ClassReliability] = Field(
        max_length=100_001,
        description="Models by the number of a predicted class, or all for the others.",
        examples=[{}],
        json_schema_extra={"additionalProperties": False},
    )


@with_ignored_settings
class NewParameters(Given):
    """Parameters that were fitted elsewhere, as `export` writes them; those of a calibration are ignored."""

    beta: PerClass = Field(description="The KNN's beta, C numbers.", examples=[[-0.16, -0.23]])
    gamma: PerClass = Field(description="The KNN's gamma, C numbers.", examples=[[0.25, 0.25]])
    eta: _Positive = Field(description="Temperature of the KNN.", examples=[4.7])
    eta_loc: _Positive = Field(description="Temperature of the localizer.", examples=[0.6])
    reliability: NewReliability | None = Field(
        default=None, description="The model of the reliability score; null: none.", examples=[None]
    )

    s_hat: Number | None = Field(default=None, description=IGNORED, examples=[None])
    omega: Number | None = Field(default=None, description=IGNORED, examples=[None])


class AdoptedParameters(Model):
    """Parameters that were made current."""

    knn_parameters: int = Field(description="Their number.", examples=[3])
    recalibrations_due: int = Field(description="Settings that must be recalibrated for them.", examples=[1])


class RecalibrationAnswer(Model):
    """A recalibration that was due; the other members are the settings."""

    model_config = ConfigDict(extra="allow")

    classifier: str = Field(examples=["reviews"])
    method: str = Field(examples=["venn-admit"])
    alpha: str = Field(examples=["0.1"])
    delta: Number | None = Field(default=None, description="Venn-ADMIT only.", examples=[1.0])
    reason: str = Field(description="What had changed.", examples=["labels"])
    calibration: int | None = Field(description="The new calibration; null if another process made it.", examples=[8])
    mc: int | None = Field(examples=[4500])
    vp: int | None = Field(examples=[4500])
    rows_closed: int | None = Field(description="Points that changed or left.", examples=[0])
    rows_opened: int | None = Field(description="Points that changed or came.", examples=[100])
    is_certified: bool | None = Field(
        description="Whether a policy is certified; null if none was asked for.", examples=[None]
    )


class Recalibrations(Model):
    """The recalibrations that were due; two of a setting if a newer chain waits beside that in use, which is first."""

    recalibrations: list[RecalibrationAnswer]
