"""What a cascade serves: of points that its stages have scored in jobs, and of one point at once."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.errors import Code, InvalidInputError, NotReadyError, OutdatedError
from venn_admit.files.output.exports import SERVED_SCHEMA
from venn_admit.files.output.tables import TableWriter
from venn_admit.files.records import Stated
from venn_admit.files.sources import ExemplarSource
from venn_admit.flows.decisions.score import request_score, require_finished_scores
from venn_admit.flows.decisions.score_one import GivenPoint, PointScorer
from venn_admit.flows.shell import Shell
from venn_admit.store.calibrations import calibrations, venn_abers
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.cascades import cascades
from venn_admit.store.cascades.cascades import Cascade, CertifiedStage, ScoreVersion, StoredStage
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions import decisions
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.work import jobs
from venn_admit.store.workspace import Workspace
from venn_admit_client.records.cascades import CascadeDecision, Served, ServedStage


@dataclass(frozen=True, slots=True)
class AskedStage:
    """A stage of a certified cascade that is a classifier."""

    cascade: Cascade
    place: int
    classifier: Classifier
    certified: CertifiedStage

    @property
    def following(self) -> StoredStage | None:
        """The stage that gets what this one rejects; None if it is the last."""
        return self.cascade.stages[self.place] if self.place < len(self.cascade.stages) else None

    def require_same_score(self, connection: Connection, calibration: Calibration) -> None:
        """Raise OutdatedError unless a calibration has the score that the policy of the stage bounds."""
        if calibration.has_score:
            found = ScoreVersion(venn_abers.score_of(connection, calibration.id), calibration.knn_parameters_id)
            if found == self.certified.version:
                return
        raise OutdatedError(
            f"calibration {calibration.id} of {self.classifier.name!r} has another score than when the cascade "
            f"{self.cascade.name!r} was certified, with calibration {self.certified.calibration_id}: certify the "
            "cascade again, or put that one in use",
            code=Code.CASCADE_OUTDATED,
            cascade=self.cascade.name,
            classifier=self.classifier.name,
        )


@dataclass(frozen=True, slots=True)
class Certified:
    """A cascade that serves by a certificate, and its stages that are classifiers."""

    cascade: Cascade
    certificate: int
    asked: tuple[AskedStage, ...]


def certified(connection: Connection, name: str) -> Certified:
    """Return a cascade that is certified; NotFoundError or NotReadyError if there is none."""
    cascade = cascades.by_name(connection, name)
    if cascade.calibration_id is None:
        raise NotReadyError(
            f"the cascade {name!r} serves nothing before it is certified: certify it first",
            code=Code.CASCADE_NOT_CERTIFIED,
            cascade=name,
        )
    asked = tuple(
        AskedStage(cascade, stage.place, stage.classifier, stage.certified)
        for stage in cascade.stages
        if stage.classifier is not None and stage.certified is not None
    )
    return Certified(cascade, cascade.calibration_id, asked)


def score(
    workspace: Workspace,
    name: str,
    sources: Sequence[ExemplarSource],
    *,
    earlier_jobs: Sequence[int] = (),
    shell: Shell,
) -> tuple[Served, list[int]]:
    """Have stages score their points, and return what the cascade serves of them, and the jobs of all stages.

    Args:
        sources: The exemplars of the stages that follow; a source may hold those alone that reach its stage.
        earlier_jobs: The jobs of the first stages, if these have scored already.

    Raises:
        NotReadyError: It has no certificate, or an earlier job is not done.
        InvalidInputError: There are more sources than stages, or as in `served`.
        OutdatedError: A classifier has another score than when the cascade was certified.
    """
    with consistent_view(workspace.engine) as connection:
        found = certified(connection, name)
        places = range(len(earlier_jobs) + 1, len(earlier_jobs) + len(sources) + 1)
        _require_stages(found, places.stop - 1)
        scoring = [found.asked[place - 1] for place in places]
        for one in scoring:
            one.require_same_score(connection, calibrations.latest(connection, one.classifier))
    if earlier_jobs:
        served(workspace.engine, name, earlier_jobs)  # refuses jobs of no use before anything is stored or scored
    done = list(earlier_jobs)
    for classifier, source in zip((one.classifier for one in scoring), sources, strict=True):
        shell.show(f"Storing {source.name}", source.count_rows())
        request = request_score(
            workspace,
            classifier.address,
            source,
            weighted=None,
            require_full_match=False,
            calibration_id=None,
            on_rows=shell.advance,
        )
        shell.run_job(request.job_id, f"Scoring {source.name} by {classifier.name}")
        done.append(request.job_id)
    return served(workspace.engine, name, done), done


def _require_stages(found: Certified, count: int) -> None:
    most = len(found.asked)
    if not 1 <= count <= most:
        raise InvalidInputError(
            f"expected scores of the first stages of {found.cascade.name!r}, 1 to {most} of them, got {count}"
        )


_Answers = Mapping[str, str | None]
"""The class that a stage serves of each point, by id and in the order of a job's rows; None if it rejects it."""


def served(engine: Engine, name: str, job_ids: Sequence[int]) -> Served:
    """Return what a cascade serves of the points of its first stage's job; nothing is stored.

    A point of a later job counts if all stages before reject it.

    Args:
        job_ids: Jobs that have scored, one for each of the first stages.

    Raises:
        NotReadyError: The cascade has no certificate, or a job is not done.
        OutdatedError: A job scored by another score than the one that was certified.
        InvalidInputError: A job is not of the classifier of its stage, a point occurs twice in it, or the stage before
            has not scored it.
    """
    for job_id in job_ids:
        require_finished_scores(engine, job_id)
    with consistent_view(engine) as connection:
        found = certified(connection, name)
        _require_stages(found, len(job_ids))
        scored = [_read(connection, one, job_id) for one, job_id in zip(found.asked, job_ids, strict=False)]
    return _served(found, scored)


def _read(connection: Connection, asked: AskedStage, job_id: int) -> _Answers:
    job, classifier = jobs.unremoved(connection, job_id), asked.classifier
    if job.classifier_id != classifier.id:
        raise InvalidInputError(
            f"job {job_id}: expected one of {classifier.name!r}, stage {asked.place} of {asked.cascade.name!r}, got "
            "one of another classifier; name the jobs in the order of the stages"
        )
    assert job.calibration_id is not None, "a job that scores names a calibration"
    asked.require_same_score(connection, calibrations.by_id(connection, classifier, job.calibration_id))
    rows = [row for block in decisions.job_rows(connection, job_id) for row in block]
    counts = Counter(row.external_id for row in rows)
    for twice, count in counts.most_common(1):
        if count > 1:
            raise InvalidInputError(
                f"job {job_id}: expected each point once, got {twice!r} {count} times; score it once"
            )
    predicted = np.array([row.predicted for row in rows], dtype=np.int64)
    score = np.array([row.score for row in rows], dtype=np.float64)
    answered = zip(rows, predicted.tolist(), admit(score, predicted, asked.certified.policy).tolist(), strict=True)
    return {row.external_id: classifier.class_names[said] if is_served else None for row, said, is_served in answered}


def _served(found: Certified, scored: Sequence[_Answers]) -> Served:
    """What is served of the points of the first stage."""
    answers: dict[str, tuple[int | None, str | None]] = {}
    reaching, stages = list(scored[0]), []
    for stage in found.cascade.stages:
        by_stage: _Answers = scored[stage.place - 1] if stage.place <= len(scored) else {}
        unneeded = set(by_stage).difference(reaching)
        if unknown := unneeded.difference(answers):
            raise InvalidInputError(
                f"stage {stage.place} has scored {min(unknown)!r}, which stage {stage.place - 1} has not: have every "
                "stage before score it too"
            )
        rejected = [one for one in reaching if by_stage.get(one, "") is None]
        taken = [one for one in reaching if by_stage.get(one) is not None]
        # A person is asked outside, and answers everything.
        answers |= {one: (stage.place, by_stage.get(one)) for one in reaching}
        name = None if stage.classifier is None else stage.classifier.name
        waiting = 0 if stage.classifier is None else len(reaching) - len(rejected) - len(taken)
        served_here = len(reaching) if stage.classifier is None else len(taken)
        cost = stage.cost * (len(reaching) - waiting)
        stages.append(ServedStage(stage.place, name, len(reaching), served_here, waiting, len(unneeded), cost))
        reaching = rejected
    answers |= dict.fromkeys(reaching, (None, None))
    ids = tuple(scored[0])
    return Served(
        certificate=found.certificate,
        ids=ids,
        served=tuple(answers[one][1] for one in ids),
        stage=tuple(answers[one][0] for one in ids),
        stages=tuple(stages),
        cost=math.fsum(one.cost for one in stages),
        cost_of_last=found.cascade.stages[-1].cost * len(ids),
    )


def write_served(found: Served, out: Path) -> None:
    """Write what a cascade serves, a row a point: its id, the class, and the stage that serves it or is to be asked."""
    with TableWriter(out, SERVED_SCHEMA) as writer:
        writer.write({"external_id": found.ids, "served_class": found.served, "stage": found.stage})


def decide(
    engine: Engine, scorer: PointScorer, name: str, place: int, point: GivenPoint, *, stated: Stated | None = None
) -> CascadeDecision:
    """Return what a stage says of a point; nothing is stored.

    Args:
        scorer: Decides by the calibration in use of the stage's classifier, whose score is the certified one.
        place: The place of the stage, from 1, which all stages before have rejected the point at.
        point: As the classifier of the stage has it.
        stated: As in `PointScorer.score_each`.

    Raises:
        NotReadyError: It has no certificate.
        InvalidInputError: There is no such stage, it is a person, or the point is invalid.
        OutdatedError: The classifier has another score than when the cascade was certified.
    """
    with consistent_view(engine) as connection:
        found = certified(connection, name)
    if not 1 <= place <= len(found.asked):
        raise InvalidInputError(f"stage: expected 1 to {len(found.asked)}, a classifier of {name!r}, got {place}")
    asked = found.asked[place - 1]
    classifier, policy, following = asked.classifier, asked.certified.policy, asked.following
    (decided,) = scorer.score_each(classifier.address, [point], neighbours=0, stated=stated)
    with consistent_view(engine) as connection:
        asked.require_same_score(connection, calibrations.by_id(connection, classifier, decided.calibration_id))
    predicted, score = decided.fields["predicted"], decided.fields["score"]
    is_served = bool(admit(np.array([score]), np.array([predicted]), policy)[0])
    if is_served:
        following = None
    return CascadeDecision(
        certificate=found.certificate,
        stage=place,
        predicted=classifier.class_names[predicted],
        score=score,
        threshold=policy.thresholds[predicted],
        served=classifier.class_names[predicted] if is_served else None,
        next_stage=None if following is None else following.place,
        next_classifier=None if following is None or following.classifier is None else following.classifier.name,
    )
