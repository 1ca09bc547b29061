"""What became of classifiers and of exemplars: registered, ingested, labelled, forgotten, deleted."""

from collections.abc import Mapping
from dataclasses import field

from venn_admit_client.members import member, record


@record
class Registered:
    """A classifier, or a generation of it, as it was registered.

    Attributes:
        name: Its name, or NAME@NUMBER for a generation that is not current.
        classes: The names of the classes, in the order of the logits.
        dimension: D, the length of a vector; None with logits only.
        neighbours: K, the number of neighbours of the KNN; None with logits only.
        generation: Number among the generations of the classifier.
        is_current: Whether the classifier's name stands for it.
        extractor: Version of the extractor of its vectors; None if it was not stated.
    """

    name: str = member("reviews", "classifier")
    classes: tuple[str, ...] = member(["negative", "positive"])
    dimension: int | None = member(768)
    neighbours: int | None = member(25, "k")
    generation: int = member(1)
    is_current: bool = member(True)
    extractor: str | None = member("sha256:9f2c")


@record
class Ingestion:
    """What became of exemplars that were ingested.

    Attributes:
        rows: How many there were.
        new: How many were not stored already.
        already_stored: How many were stored already.
        new_per_split: The new ones in each split: `train`, `knn`, `mc` and `vp`.
        copies: New ones that are held out, of documents with the vectors and logits of another, whose split they share.
        training_copies: New ones with those, or of the document, of an exemplar that trains, or for training exemplars,
            that is held out.
        labels_carried: Exemplars whose labels were carried over from other generations.
        recalibrations_due: How many settings should be recalibrated for it.
        training_waiting: Training exemplars, earlier ones included, that wait for jobs that are running, for ten
            minutes at most; another recalibration follows for them.
    """

    rows: int = member(2)
    new: int = member(2)
    already_stored: int = member(0, repr=False)
    new_per_split: Mapping[str, int] = member({"mc": 1, "vp": 1})
    copies: int = member(0, repr=False)
    training_copies: int = member(0, repr=False)
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
        reviewed: Labels that count by the probability with which their points were drawn; some of these calibrate.
        not_drawn: Labels given for a review of points that were not drawn, which are selected ones.
        selected_and_calibrating: Exemplars labelled as selected, or for a review without a draw, that still calibrate,
            because they were drawn at random earlier.
        in_other_generations: Labels recorded for the same exemplars of other generations.
        recalibrations_due: How many settings should be recalibrated for it.
        ignored: Columns of the table that were not read.
    """

    rows: int = member(1)
    new: int = member(1)
    corrected: int = member(0)
    retracted: int = member(0)
    unchanged: int = member(0)
    put_to_use: int = member(0)
    calibrating: Mapping[str, int] = member({"mc": 1}, "joined")
    left: int = member(0, repr=False)
    kept_for_evaluation: int = member(0, repr=False)
    selected_and_calibrating: int = member(0, repr=False)
    in_other_generations: int = member(0, repr=False)
    recalibrations_due: int = member(1)
    reviewed: int = member(0, repr=False)
    not_drawn: int = member(0, repr=False)
    ignored: tuple[str, ...] = member(["note"], default=(), repr=False)


@record
class Audits:
    """The rule by which points are drawn to be audited when they are first decided on, and how many were so far.

    Attributes:
        classifier: The classifier.
        rule: Number of the rule; None if there never was one.
        since: When it was stated, in ISO 8601.
        rates: With which probability admitted points of each predicted class are drawn; None if nothing is drawn.
        rejected_rate: With which probability rejected points are drawn; None if nothing is drawn. What was rejected is
            outside of what labels of drawn points promise if it is 0.
        admitted_points: Admitted points that had a draw, under any rule.
        admitted_drawn: Those of them that were drawn.
        admitted_reviewed: Those of these that a label counts for.
        rejected_points: Rejected points that had a draw, under any rule.
        rejected_drawn: Those of them that were drawn.
        rejected_reviewed: Those of these that a label counts for.
        labels_a_month: About how many labels the rule asks for in 30 days, by the draws of the last 30; None if nothing
            is drawn, and before there was a day of draws.
    """

    classifier: str = member("reviews", repr=False)
    rule: int | None = member(1)
    since: str | None = member("2026-11-26T12:00:00+00:00", repr=False)
    rates: Mapping[str, float] | None = member({"negative": 0.05, "positive": 0.05})
    rejected_rate: float | None = member(1.0)
    admitted_points: int = member(1000)
    admitted_drawn: int = member(52)
    admitted_reviewed: int = member(40)
    rejected_points: int = member(100)
    rejected_drawn: int = member(100)
    rejected_reviewed: int = member(90)
    labels_a_month: int | None = member(1500)


@record
class Forgetting:
    """What was removed of exemplars that were forgotten, or would be. No id is in it.

    Attributes:
        classifier: The name that stands for all generations.
        is_done: Whether it was done, rather than only counted.
        ids: How many of the ids were found.
        exemplars: How many were removed, in all generations together.
        forgotten_before: How many of the ids were forgotten before.
        unknown: How many of the ids are unknown.
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
