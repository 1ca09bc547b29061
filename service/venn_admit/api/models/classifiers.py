"""Classifiers, their settings, and their calibrations."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from venn_admit.api.models.calibration_settings import with_asked_settings, with_given_settings
from venn_admit.api.models.common import (
    LARGEST_INTEGER,
    WHOLE,
    AnswerPage,
    ClassName,
    Extractor,
    Finite,
    Given,
    Model,
    Name,
    answer_of,
)
from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.method_names import DEFAULT_METHOD, VENN_ADMIT
from venn_admit.core.names import PRINTABLE
from venn_admit.http.paging import LARGEST_KEY
from venn_admit_client.records.calibrations import CalibrationUse, ListedCalibration, PutInUse, Weaker, Withheld
from venn_admit_client.records.certificates import CertificateLook
from venn_admit_client.records.data import Audits, Registered


class NewClassifier(Given):
    """A classifier to register."""

    classifier: Name = Field(description="Its name.", examples=["reviews"])
    classes: list[ClassName] = Field(
        min_length=2,
        max_length=100_000,
        description="Names of the classes, in the order of the logits.",
        examples=[["negative", "positive"]],
    )
    dimension: Annotated[int, Field(ge=1, le=16_000), WHOLE] | None = Field(
        default=None, description="D, the length of a vector; null with logits only.", examples=[768]
    )
    k: Annotated[int, Field(ge=1, le=10_000), WHOLE] | None = Field(
        default=None,
        description="K, the number of neighbours of the KNN; null: 25, or with logits only, none.",
        examples=[25],
    )
    logits_only: bool = Field(default=False, description="Whether there are no vectors.", examples=[False])
    seed: Annotated[int, Field(ge=-(2**63), le=LARGEST_KEY), WHOLE] = Field(
        default=0, description="Seed of the split hash and of training.", examples=[0]
    )
    extractor: Extractor | None = Field(
        default=None,
        description="Version of the extractor of its vectors; null: the one that the first data state, if any.",
        examples=[None],
    )


RegisteredAnswer: Any = answer_of(Registered, "RegisteredAnswer")


class CreatedClassifier(RegisteredAnswer):  # type: ignore[misc]
    """A classifier, or a generation of it, that was registered."""

    seed: int = Field(examples=[0])


@with_asked_settings
class StandingSetting(Model):
    """A setting of a classifier, without its calibrations."""

    setting: int = Field(description="Its number.", examples=[1])
    method: str = Field(examples=["venn-admit"])
    thresholds: list[str | None] | None = Field(
        description="Least lower probability that admits each predicted class; null if a policy sets it.",
        examples=[["0.9", "0.9"]],
    )
    is_in_use: bool = Field(description="Whether new decisions are made under it.", examples=[True])
    retired_at: datetime | None = Field(examples=[None])


class RefutedClass(Model):
    """What labels show against what is certified of a class."""

    admitted: int = Field(
        description="Points with a label that the threshold in force admitted when they came to count.", examples=[2918]
    )
    right: int = Field(description="Those of them that are right.", examples=[2393])
    documents: int = Field(description="Documents that they are in.", examples=[2918])
    since: int = Field(
        description="Number of the document among these from which on too few are right, about.", examples=[1204]
    )


class ChainClass(Model):
    """How far the thresholds of a class are certified, or the policies that hold for all classes together."""

    kind: Literal["predicted", "true"] = Field(
        description="Whether it is a predicted class, or a true one, whose policies are those of all classes.",
        examples=["predicted"],
    )
    class_: int = Field(alias="class", description="Number of the class.", examples=[0])
    certified: int = Field(description="Thresholds that are certified, from strict to liberal.", examples=[12])
    thresholds: int = Field(description="Thresholds that there are.", examples=[60])
    documents_needed: int | None = Field(
        description="About how many further documents the class takes for the next one, at the rates seen, 0 if it "
        "waits for others; null if no number would do, or if there is no next one.",
        examples=[240],
    )
    is_withdrawn: bool = Field(
        description="Whether labels refute what is certified of the class, or an alarm of the promise stands for it. "
        "Then nothing of a predicted class is admitted or, if true classes are asked for, nothing at all.",
        examples=[False],
    )
    refuted: RefutedClass | None = Field(
        description="What the labels show, if they refute what is certified; null otherwise.", examples=[None]
    )


class FollowingChain(Model):
    """A chain that would admit clearly more if it began with the labels that there are."""

    chain: int = Field(description="Its number.", examples=[2])
    level: Finite = Field(description="Its part of 1 - confidence.", examples=[0.0083])
    documents: int = Field(description="After how many further documents it is compared.", examples=[1280])
    share: Finite = Field(description="Share of all points that it is foretold to admit by then.", examples=[0.83])
    instead_of: Finite = Field(
        description="Share that the present chain is foretold to admit by then.", examples=[0.71]
    )


class LaterChainAnswer(Model):
    """The newest chain of a setting, begun since the one that this is about."""

    chain: int = Field(description="Its number.", examples=[2])
    calibration: int = Field(description="Its calibration that is in use, or else its newest.", examples=[9])
    is_in_use: bool = Field(description="Whether that is in use.", examples=[False])


class ChainAnswer(Model):
    """How far a certificate came that stands while labels arrive."""

    chain: int = Field(description="1, 2, ... among all generations of the classifier.", examples=[1])
    level: Finite = Field(description="Its part of 1 - confidence.", examples=[0.025])
    documents: int = Field(description="Documents that count so far.", examples=[1280])
    labels: int = Field(description="Labels in them.", examples=[1280])
    classes: list[ChainClass] = Field(description="The classes that are tested.")
    following: FollowingChain | None = Field(
        description="The next chain, if it would admit clearly more; null otherwise.", examples=[None]
    )
    later: LaterChainAnswer | None = Field(
        description="The newest chain that was begun since; null if none was.", examples=[None]
    )


class Setting(StandingSetting):
    """A setting of a classifier, under which it is calibrated."""

    thresholds: list[str | None] = Field(
        description="Least lower probability that admits each predicted class or, by a policy, the least score; null "
        "for a class that is never admitted.",
        examples=[["0.9", "0.9"]],
    )
    calibration: int | None = Field(
        description="Its calibration: the one that the next follows, or the newest if none was ever in use.",
        examples=[7],
    )
    calibrated_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])
    mc: int = Field(description="Points of split mc in it.", examples=[4500])
    vp: int = Field(description="Points of split vp in it.", examples=[4500])
    due_for: str | None = Field(description="Why a recalibration is due; null if none is.", examples=["labels"])
    due_error: str | None = Field(description="Why a recalibration could not be made.", examples=[None])
    is_certified: bool | None = Field(
        description="Whether a policy is certified; null if none was asked for.", examples=[None]
    )
    promised: str = Field(
        description=f"What its calibration promises: {', '.join(Promised)}; none if it could not be had, "
        "or if its chain has ended.",
        examples=[str(Promised.POINTWISE)],
    )
    chain: ChainAnswer | None = Field(
        description="How far its certificate came, if it stands while labels arrive; null otherwise.", examples=[None]
    )


class ListedClassifierAnswer(RegisteredAnswer):  # type: ignore[misc]
    """A classifier at a glance."""

    created_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])
    exemplars: dict[str, int] = Field(description="Exemplars per split.", examples=[{"train": 8000}])
    labelled: dict[str, int] = Field(description="Labelled ones per split.", examples=[{"train": 8000}])
    in_use: Setting | None = Field(description="The setting that decisions are made under.")
    running_jobs: int = Field(examples=[0])


class Classifiers(AnswerPage):
    """A page of the classifiers that the key is for, by name."""

    classifiers: list[ListedClassifierAnswer]


class Data(Model):
    """The exemplars of a split."""

    exemplars: int = Field(examples=[8000])
    labels: list[int] = Field(description="Number of exemplars with each label.", examples=[[4000, 4000]])
    shares: list[Finite | None] = Field(
        description="Share of each class among the labels; null without labels.", examples=[[0.5, 0.5]]
    )
    unlabelled: int = Field(examples=[0])
    documents: int = Field(description="Documents that they come from; 0 if they name none.", examples=[0])


class HeldOutAccuracyAnswer(Model):
    """Shares of labelled points of mc and vp that are predicted right; neither network nor KNN was fitted on them."""

    points: int = Field(examples=[14405])
    network: Finite | None = Field(description="The share right by the network; null without points.", examples=[0.88])
    knn_points: int = Field(description="Those that the KNN in use has predicted.", examples=[14405])
    knn: Finite | None = Field(
        description="The share of knn_points right by the KNN; null without any.", examples=[0.87]
    )


class Generations(Model):
    """The generations of a classifier, in the order of their numbers."""

    classifier: str = Field(description="The name that stands for the current one.", examples=["reviews"])
    generations: list[ListedClassifierAnswer]


class NewGeneration(Given):
    """A generation to add to a classifier, for the vectors of another extractor."""

    dimension: Annotated[int, Field(ge=1, le=16_000), WHOLE] | None = Field(
        default=None, description="D, the length of a vector; null: that of the current generation.", examples=[768]
    )
    extractor: Extractor | None = Field(
        default=None,
        description="Version of the extractor of its vectors; null: the one that the first data state, if any.",
        examples=["sha256:9f2c"],
    )


class CurrentGeneration(Given):
    """The generation that the name of a classifier is to stand for."""

    generation: Annotated[int, Field(ge=1, le=LARGEST_INTEGER), WHOLE] = Field(description="Its number.", examples=[2])
    dry_run: bool = Field(default=False, description="Say what would change, and change nothing.", examples=[False])


class SwitchAnswer(Model):
    """What the name of a classifier stood for and stands for, each under the name that it has now."""

    classifier: str = Field(examples=["reviews"])
    before: ListedClassifierAnswer
    after: ListedClassifierAnswer
    changes: bool = Field(description="Whether they are not the same.", examples=[True])
    is_made: bool = Field(description="Whether it was done, rather than only looked at.", examples=[True])
    never_admitted: list[str] = Field(
        description="The predicted classes of which nothing is admitted under the other generation.", examples=[[]]
    )


class StatedExtractor(Given):
    """Which extractor the exemplars of a classifier come from."""

    extractor: Extractor = Field(description="Its version.", examples=["sha256:9f2c"])


class ClassifierAnswer(CreatedClassifier):
    """A classifier in detail."""

    created_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])
    knn_share: Finite = Field(description="Share of held-out data in split knn.", examples=[0.1])
    mc_share: Finite = Field(description="Share of held-out data in split mc.", examples=[0.45])
    data: dict[str, Data] = Field(description="Exemplars per split.")
    held_out_accuracy: HeldOutAccuracyAnswer
    training_waiting: int = Field(
        description="Training exemplars that wait for jobs that are running, for ten minutes at most.", examples=[0]
    )
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


class CalibrationAnswer(answer_of(ListedCalibration, "ListedCalibration")):  # type: ignore[misc]
    """A calibration: an immutable snapshot."""


class ShownCalibration(CalibrationAnswer):
    """A calibration with its setting."""

    asked: Setting = Field(description="The setting that it was made under, as it is now.")


class CalibrationUseAnswer(answer_of(CalibrationUse, "CalibrationUse")):  # type: ignore[misc]
    """A calibration that was in use."""


class CertificateLookAnswer(answer_of(CertificateLook, "CertificateLook")):  # type: ignore[misc]
    """A certificate that looked at the held-out labels."""


class WithheldCalibration(answer_of(Withheld, "Withheld")):  # type: ignore[misc]
    """A calibration that is stored and was never put in use."""

    calibration: int = Field(description="Its number.", examples=[9])
    created_at: datetime = Field(examples=["2026-07-01T12:00:00+00:00"])


class Calibrations(AnswerPage):
    """A page of calibrations, and all settings."""

    classifier: str = Field(examples=["reviews"])
    settings: list[Setting]
    calibrations: list[CalibrationAnswer]
    uses: list[CalibrationUseAnswer] = Field(description="What was in use, the newest first.")
    withheld: list[WithheldCalibration] = Field(description="Those that admit far less than the one before.")
    certificates: list[CertificateLookAnswer] = Field(description="Those that looked at the held-out labels.")


class PolicyAnswer(Model):
    """A policy, certified or on average, with all that was tested; the members are those of `export --what policy`."""

    model_config = ConfigDict(extra="allow")

    classifier: str = Field(examples=["reviews"])
    calibration: int = Field(examples=[7])


@with_given_settings
class NewCalibration(Given):
    """What to calibrate with; what is left out has the default of the command line."""

    method: str = Field(
        default=DEFAULT_METHOD, max_length=20, description="`venn-abers` or `venn-admit`.", examples=[VENN_ADMIT]
    )
    dry_run: bool = Field(default=False, description="Compute everything, and store no calibration.", examples=[False])


class CalibrationToUse(Given):
    """The calibration that should be in use."""

    calibration: Annotated[int, Field(ge=1, le=LARGEST_KEY), WHOLE] = Field(description="Its number.", examples=[7])
    reason: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        pattern=PRINTABLE,
        description="Why, for the history.",
        examples=["the newer one rejects everything"],
    )


class AuditRuleToState(Given):
    """The rule by which points are drawn to be audited that are first decided on from now on."""

    rate: float | None = Field(
        gt=0,
        le=1,
        description="With which probability admitted points are drawn; null: nothing is drawn any more.",
        examples=[0.05],
    )
    classes: dict[str, Annotated[float, Field(gt=0, le=1)]] = Field(
        default_factory=dict, description="Rates of some predicted classes, by their names.", examples=[{"spam": 0.2}]
    )
    rejected: float = Field(
        default=1.0, ge=0, le=1, description="With which probability rejected points are drawn.", examples=[1.0]
    )


AuditsAnswer: Any = answer_of(Audits, "AuditsAnswer")
PutInUseAnswer: Any = answer_of(PutInUse, "PutInUseAnswer")
WithheldAnswer: Any = answer_of(Withheld, "WithheldAnswer")
WeakerAnswer: Any = answer_of(Weaker, "WeakerAnswer")


class CalibratedAnswer(Model):
    """A calibration that was made; the other members are those of `calibrate --json`."""

    model_config = ConfigDict(extra="allow")

    calibration: int | None = Field(
        description="Its number; it is in use unless it is withheld; null in a dry run.", examples=[8]
    )
    withheld: WithheldAnswer | None = Field(
        description="Why it is stored and not in use; null if it is in use.", examples=[None]
    )
    weaker: WeakerAnswer | None = Field(
        description="What it admits, if it is in use and admits less than half of what the one before did.",
        examples=[None],
    )
    is_stored: bool = Field(description="False in a dry run.", examples=[True])
    alpha: str = Field(examples=["0.1"])
    mc: int = Field(examples=[4500])
    vp: int = Field(examples=[4500])


class SettingsAnswer(Model):
    """A classifier's name, and its settings."""

    classifier: str = Field(examples=["reviews"])
    settings: list[StandingSetting] = Field(description="Retired ones too, the one in use first.")


class NewName(Given):
    """Another name for a classifier."""

    classifier: Name = Field(description="The new name.", examples=["reviews of 2026"])
