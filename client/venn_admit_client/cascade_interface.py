"""What a program does with a cascade, in its own process and over HTTP."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from .records.cascades import CascadeDecision, CascadeReport, Served


class CascadeInterface(ABC):
    """Classifiers that are asked one after the other: a point goes to the next where it is rejected.

    A stage is a generation of a classifier, the one that its name stood for when the cascade was created. A person may
    be the last stage, who answers all that is left.
    """

    def __init__(self, found: CascadeReport) -> None:
        """Describe it as it stands."""
        self._found = found

    def __repr__(self) -> str:
        return f"<Cascade {self.name!r}: {', '.join(stage.classifier or 'person' for stage in self._found.stages)}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self._found.cascade

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of its C classes, which all stages have."""
        return self._found.classes

    def calibrate(
        self,
        *,
        alpha: Decimal | str | float | None = None,
        certify: Sequence[str] | str | None = None,
        confidence: Decimal | str | float | None = None,
        test: str | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> CascadeReport:
        """Certify it on the labels that all classifiers hold out, by the scores of their calibrations in use.

        With the confidence, at least 1 - alpha are right of what all classifiers together serve of each class that is
        promised something. The cascade serves by this certificate from then on. Workers compute it as a job, if there
        are any.

        Args:
            alpha: The share that may be wrong, in (0, 1); 0.1 by default.
            certify: The classes that are promised something, `predicted`, `true` or both; predicted ones by default.
            confidence: 1 - eps, in (0, 1); 0.95 by default.
            test: How documents of several points are tested, `finite-sample` or `asymptotic`; the former by default.
            progress: As in `Classifier.score`.

        Raises:
            InvalidInputError: A value is out of range, or a calibration has no score that can be certified.
            NotReadyError: A classifier is not calibrated.
            JobError: Too few points are held out at all stages, or a point has different labels at two.
        """
        given = {"alpha": alpha, "certify": certify, "confidence": confidence, "test": test}
        return self._calibrate(given, progress=progress)

    @abstractmethod
    def _calibrate(
        self, given: Mapping[str, Any], *, progress: Callable[[int, int], object] | None
    ) -> CascadeReport: ...

    @abstractmethod
    def report(self) -> CascadeReport:
        """Return what each stage serves of the labelled data, how much of it is right, and what that costs."""

    @abstractmethod
    def score(self, *data: Any, progress: Callable[[int, int], object] | None = None) -> Served:
        """Have the first stages decide on points, store that, and return what the cascade serves.

        Args:
            data: For each of the first stages, points in a form that `Classifier.score` takes as `data`. Those of a
                later stage may be the points alone that reach it, which the result of fewer stages names.
            progress: As in `Classifier.score`.

        Raises:
            InvalidInputError: There are more than the cascade has classifiers, a row is invalid, or a stage is given a
                point that the stage before is not.
            NotReadyError: It is not certified yet.
            OutdatedError: A classifier has another score than when it was certified.
        """

    @abstractmethod
    def served(self, jobs: Sequence[int]) -> Served:
        """Return what the cascade serves of points that its first stages have scored; nothing is stored.

        Args:
            jobs: The numbers of a job of each of the first stages, in order, which are done.

        Raises:
            InvalidInputError: A job is not of the classifier of its stage.
            NotFoundError: There is no such job.
            NotReadyError: A job is not done, or the cascade is not certified yet.
            OutdatedError: A job scored by another score than the one that was certified.
        """

    def decide(
        self,
        stage: int,
        vector: Any = None,
        *,
        logits: Any,
        extractor: str | None = None,
        probabilities: bool | None = None,
    ) -> CascadeDecision:
        """Return what a stage says of a point that all stages before have rejected; nothing is stored.

        Args:
            stage: The place of the stage, from 1.
            vector: (D,) floats, as the classifier of the stage has it; None if it has logits only.
            logits: (C,) floats, its network's.
            extractor: As in `Classifier.decide`.
            probabilities: As in `Classifier.decide`.

        Raises:
            InvalidInputError: There is no such stage, or the point is invalid.
            NotReadyError: It is not certified yet.
            OutdatedError: The classifier has another score than when it was certified.
        """
        return self._decide(stage, vector, logits, extractor=extractor, probabilities=probabilities)

    @abstractmethod
    def _decide(self, stage: int, vector: Any, logits: Any, **stated: Any) -> CascadeDecision: ...

    @abstractmethod
    def delete(self) -> None:
        """Delete it with its certificates; its classifiers stay."""
