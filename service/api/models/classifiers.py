"""Classifiers, their settings, and their calibrations."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from venn_admit.service.api.models.common import PRINTABLE, AnswerPage, Decimals, Finite, Given, Model, Name, Number

ClassName = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=PRINTABLE)]


class NewClassifier(Given):
    """A classifier to register."""

    classifier: Name = Field(description="Its name.", examples=["reviews"])
    classes: list[ClassName] = Field(
        min_length=2,
        max_length=100_000,
        description="Names of the classes, in the order of the logits.",
        examples=[["negative", "positive"]],
    )
    dimension: int | None = Field(
        default=None, ge=1, le=16_000, description="D, the length of a vector; null with logits only.", examples=[768]
    )
    k: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="K, the number of neighbours of the KNN; null: 25, or with logits only, none.",
        examples=[25],
    )
    logits_only: bool = Field(default=False, description="Whether there are no vectors.", examples=[False])
    seed: int = Field(
        default=0, ge=-(2**63), le=2**63 - 1, description="Of the split hash and of training.", examples=[0]
    )


class CreatedClassifier(Model):
    """A classifier that was registered."""

    classifier: str = Field(examples=["reviews"])
    classes: list[str] = Field(examples=[["negative", "positive"]])
    dimension: int | None = Field(examples=[768])
    k: int | None = Field(examples=[25])
    seed: int = Field(examples=[0])


class StandingSetting(Model):
    """A setting of a classifier, without its calibrations."""

    setting: int = Field(description="Its number.", examples=[1])
    method: str = Field(examples=["venn-admit"])
    alpha: str = Field(description="Error level, an exact decimal.", examples=["0.1"])
    delta: Number | None = Field(description="Of venn-admit: band radius in deviations of d.", examples=[1.0])
    kappa: int | None = Field(description="Of venn-admit: least points of each class in a band.", examples=[1000])
    score: str | None = Field(description="Of venn-abers: network, reliability or auto.", examples=["auto"])
    certify: list[str] | None = Field(description="Kinds of classes that are certified.", examples=[["predicted"]])
    confidence: str | None = Field(description="Of the certificate.", examples=["0.95"])
    test: str | None = Field(description="How documents of several points are tested.", examples=["finite-sample"])
    q_bins: list[int] = Field(description="Lower edges of the bins of q.", examples=[[0, 1, 25]])
    thresholds: list[str] = Field(description="Least lower probability per predicted class.", examples=[["0.9", "0.9"]])
    is_in_use: bool = Field(description="Whether new decisions are made under it.", examples=[True])
    retired_at: datetime | None = Field(examples=[None])


class Setting(StandingSetting):
    """A setting of a classifier, under which it is calibrated."""

    calibration: int | None = Field(description="Its current calibration.", examples=[7])
    calibrated_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])
    mc: int = Field(description="Points of split mc in it.", examples=[4500])
    vp: int = Field(description="Points of split vp in it.", examples=[4500])
    due_for: str | None = Field(description="Why a recalibration is due; null if none is.", examples=["labels"])
    due_error: str | None = Field(description="Why a recalibration could not be made.", examples=[None])
    is_certified: bool | None = Field(
        description="Whether a policy is certified; null if none was asked for.", examples=[None]
    )


class ListedClassifierAnswer(Model):
    """A classifier at a glance."""

    classifier: str = Field(examples=["reviews"])
    classes: list[str] = Field(examples=[["negative", "positive"]])
    dimension: int | None = Field(description="D; null with logits only.", examples=[768])
    k: int | None = Field(description="K; null with logits only.", examples=[25])
    created_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])
    exemplars: dict[str, int] = Field(description="Exemplars per split.", examples=[{"train": 8000}])
    labelled: dict[str, int] = Field(description="Labelled ones per split.", examples=[{"train": 8000}])
    in_use: Setting | None = Field(description="The setting that decisions are made under.")
    running_jobs: int = Field(examples=[0])


class Classifiers(Model):
    """Every classifier that the key is for, by name."""

    classifiers: list[ListedClassifierAnswer]


class Data(Model):
    """The exemplars of a split."""

    exemplars: int = Field(examples=[8000])
    labels: list[int] = Field(description="Number of exemplars with each label.", examples=[[4000, 4000]])
    unlabelled: int = Field(examples=[0])
    documents: int = Field(description="Documents that they come from; 0 if they name none.", examples=[0])


class ClassifierAnswer(Model):
    """A classifier in detail."""

    classifier: str = Field(examples=["reviews"])
    classes: list[str] = Field(examples=[["negative", "positive"]])
    dimension: int | None = Field(examples=[768])
    k: int | None = Field(examples=[25])
    created_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])
    seed: int = Field(examples=[0])
    knn_share: Finite = Field(description="Share of held-out data in split knn.", examples=[0.1])
    mc_share: Finite = Field(description="Share of held-out data in split mc.", examples=[0.45])
    data: dict[str, Data] = Field(description="Exemplars per split.")
    parameters: dict[str, Any] | None = Field(
        description="How well the KNN was fitted; null before the first fit.", examples=[{"eta": 0.5}]
    )
    calibration: int | None = Field(description="The calibration that decisions are made by.", examples=[7])
    settings: list[Setting]
    jobs: list[dict[str, Any]] = Field(description="The newest jobs.", examples=[[{"job": 12, "state": "done"}]])
    decisions: list[dict[str, Any]] = Field(
        description="The last decisions of the newest score job.", examples=[[{"decision_id": 4711, "decision": 1}]]
    )
    outcomes: dict[str, int] = Field(
        description="How many of its last rows were admitted, or rejected for each reason.",
        examples=[{"admitted": 800}],
    )


class CalibrationAnswer(Model):
    """A calibration: an immutable snapshot."""

    calibration: int = Field(description="Its number.", examples=[7])
    setting: int = Field(description="The setting that it was made under.", examples=[1])
    number: int = Field(description="1, 2, ... within the setting.", examples=[3])
    created_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])
    reason: str = Field(description="Why it was made.", examples=["labels"])
    mc: int = Field(examples=[4500])
    vp: int = Field(examples=[4500])
    is_current: bool = Field(description="Whether it is the newest of its setting.", examples=[True])


class ShownCalibration(CalibrationAnswer):
    """A calibration with its setting."""

    asked: Setting = Field(description="The setting that it was made under, as it is now.")


class Calibrations(AnswerPage):
    """A page of calibrations, and all settings."""

    classifier: str = Field(examples=["reviews"])
    settings: list[Setting]
    calibrations: list[CalibrationAnswer]


class PolicyAnswer(Model):
    """A certified policy, with all that was proposed; the members are those of `export --what policy`."""

    model_config = ConfigDict(extra="allow")

    classifier: str = Field(examples=["reviews"])
    calibration: int = Field(examples=[7])


class NewCalibration(Given):
    """What to calibrate with; what is left out has the default of the command line."""

    method: str = Field(
        default="venn-admit", max_length=20, description="venn-admit or venn-abers.", examples=["venn-admit"]
    )
    alpha: Decimals = Field(default="0.1", description="Error level in (0, 1), an exact decimal.", examples=["0.1"])
    score: str | None = Field(
        default=None, max_length=20, description="Of venn-abers: network, reliability or auto.", examples=[None]
    )
    certify: list[Annotated[str, StringConstraints(max_length=20)]] | None = Field(
        default=None, max_length=2, description="Of venn-abers: predicted, true or both.", examples=[None]
    )
    confidence: Decimals | None = Field(default=None, description="Of a certificate.", examples=[None])
    test: str | None = Field(
        default=None, max_length=20, description="Of a certificate: finite-sample or asymptotic.", examples=[None]
    )
    delta: Number | None = Field(
        default=None, description='Of venn-admit: band radius in deviations of d, or "inf".', examples=[1.0]
    )
    kappa: int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description="Of venn-admit: least points of each class in a band; null: 1000, unless that leaves nearly "
        "nothing to admit; then nothing is stored.",
        examples=[1000],
    )
    thresholds: list[Decimals] | None = Field(
        default=None, max_length=100_000, description="Least lower probability per predicted class.", examples=[None]
    )
    q_bins: list[Annotated[int, Field(ge=0, le=10_000)]] | None = Field(
        default=None, max_length=10_001, description="Lower edges of the bins of q.", examples=[[0, 1, 25]]
    )


class CalibratedAnswer(Model):
    """A calibration that was made; the other members are those of `calibrate --json`."""

    model_config = ConfigDict(extra="allow")

    calibration: int = Field(description="Its number; it is current.", examples=[8])
    alpha: str = Field(examples=["0.1"])
    mc: int = Field(examples=[4500])
    vp: int = Field(examples=[4500])
