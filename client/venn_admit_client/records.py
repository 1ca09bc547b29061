"""What a result is for programs: the Python interface, `--json`, the HTTP service and its client say the same."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from .members import member, record


@record
class Ingestion:
    """What became of exemplars that were ingested.

    Attributes:
        rows: How many there were.
        new: How many were not stored already.
        already_stored: How many were stored already.
        new_per_split: The new ones in each split: `train`, `knn`, `mc` and `vp`.
        labels_carried: Exemplars whose labels were carried over from other generations.
        recalibrations_due: How many settings should be recalibrated for it.
        training_waiting: Training exemplars, earlier ones included, that wait for jobs that are running, for ten
            minutes at most; another recalibration follows for them.
    """

    rows: int = member(2)
    new: int = member(2)
    already_stored: int = member(0, repr=False)
    new_per_split: Mapping[str, int] = member({"mc": 1, "vp": 1})
    labels_carried: int = member(0, repr=False)
    recalibrations_due: int = member(1, late=True)
    training_waiting: int = member(0)


@record
class Labelling:
    """What became of labels. One of several generations is reported on: the one named, or the newest with the exemplar.

    Attributes:
        rows: How many there were: the new, corrected, retracted, unchanged ones and those put to use.
        new: Labels of exemplars that had none.
        corrected: Labels other than what was stored.
        retracted: Labels taken back.
        unchanged: Labels known already, of which nothing is recorded.
        put_to_use: Labels stored before, and used from now on.
        calibrating: Exemplars that fit, calibrate or train from now on, in each split.
        left: Exemplars no longer in use.
        kept_for_evaluation: Exemplars with a label new or corrected that are not in use.
        selected_and_calibrating: Exemplars labelled as selected that still calibrate, because they were drawn at random
            earlier.
        in_other_generations: Labels recorded for the same exemplars of other generations.
        recalibrations_due: How many settings should be recalibrated for it.
        ignored: Columns of the table that were not read; over HTTP it does not say.
    """

    rows: int = member(1)
    new: int = member(1)
    corrected: int = member(0)
    retracted: int = member(0)
    unchanged: int = member(0)
    put_to_use: int = member(0, repr=False)
    calibrating: Mapping[str, int] = member({"mc": 1}, "joined")
    left: int = member(0, repr=False)
    kept_for_evaluation: int = member(0, repr=False)
    selected_and_calibrating: int = member(0, repr=False)
    in_other_generations: int = member(0, repr=False)
    recalibrations_due: int = member(1)
    ignored: tuple[str, ...] = field(default=(), repr=False)


@record
class Forgetting:
    """What was removed of exemplars that were forgotten, or would be. No id is in it.

    Attributes:
        classifier: The name that stands for all generations.
        is_done: Whether it was done, rather than only counted.
        ids: How many of the ids were found.
        exemplars: How many were removed, in all generations together.
        forgotten_before: How many of the ids were forgotten before.
        unknown: How many of the ids nothing is stored under.
        rows: Removed, by table.
        calibrations_renewed: Calibrations that counted one of them, and are followed by one that does not.
        recalibrations_due: How many settings should be recalibrated for it.
        jobs: Jobs that search neighbours again.
    """

    classifier: str = member("reviews", repr=False)
    is_done: bool = member(True)
    ids: int = member(2)
    exemplars: int = member(2)
    forgotten_before: int = member(0)
    unknown: int = member(0)
    rows: Mapping[str, int] = member({"exemplar": 2, "label_event": 2})
    calibrations_renewed: int = member(1)
    recalibrations_due: int = member(0)
    jobs: tuple[int, ...] = member([], repr=False)


@record
class Deletion:
    """What was deleted of a classifier, or would be.

    Attributes:
        classifier: Its name, or the address of the one generation.
        is_done: Whether it was done, rather than only counted.
        generations: NAME@NUMBER of each generation.
        rows: Deleted, by table, without what a call deleted that was interrupted.
        longest_seconds: The longest transaction that deleted rows, from when it had its locks; over HTTP it does not
            say.
    """

    classifier: str = member("reviews", repr=False)
    is_done: bool = member(True)
    generations: tuple[str, ...] = member(["reviews@1"])
    rows: Mapping[str, int] = member({"classifier": 1, "exemplar": 1000})
    longest_seconds: float = field(default=0.0, repr=False, compare=False)


@record
class Fit:
    """The approximation of the network by its nearest training exemplars.

    Attributes:
        knn_parameters: The number of its parameters.
        fit_points: Points of split knn that were fitted on.
        discrepancies: Points of the development half on which KNN and network predict different classes.
        points: Points of the development half, by which the epochs of training were compared.
        temperature: Eta, the temperature of the neighbour weights, in units of distance.
        localizer_temperature: The temperature of the localizer.
    """

    knn_parameters: int = member(3, repr=False)
    fit_points: int = member(500, "fit", repr=False)
    discrepancies: int = member(12, "dev_discrepancies", late=True)
    points: int = member(500, "dev")
    temperature: float = member(4.7, "eta", late=True)
    localizer_temperature: float = member(0.6, "eta_loc", late=True)


@record
class ListedCalibration:
    """A stored calibration at a glance.

    Attributes:
        id: Its number.
        setting: The number of the setting that it was made under.
        number: 1, 2, ... within the setting.
        created_at: When it was made.
        reason: Why it was made.
        mc_points: Points of split mc.
        vp_points: Points of split vp.
        is_current: Whether it is the newest of its setting.
    """

    id: int = member(7, "calibration")
    setting: int = member(1)
    number: int = member(3)
    created_at: datetime = member("2026-07-01T12:00:00+00:00")
    reason: str = member("labels")
    mc_points: int = member(4500, "mc")
    vp_points: int = member(4500, "vp")
    is_current: bool = member(True)


@record
class Neighbour:
    """A training exemplar near a point.

    Attributes:
        id: Its id.
        label: Its class.
        distance: Euclidean, in the units of the vectors.
        attributes: What was stored with it.
    """

    id: str = member("train-17", "external_id")
    label: str = member("positive", "label_class")
    distance: float = member(3.25)
    attributes: Mapping[str, Any] = member({"text": "A film to remember."})
