"""What errors are about: codes that stay the same while messages may be reworded, each with its family."""

from enum import StrEnum
from typing import Self


class Code(StrEnum):
    """What an error is about, as a name that stays the same while its message may be reworded.

    The first codes are those of the families: an error that has no code of its own has its family's.

    Attributes:
        family: The code of the family of errors that are raised with this code.
        meaning: A sentence for the reference.
        parameters: The names of the parameters that come with every error of this code.
    """

    family: str
    meaning: str
    parameters: tuple[str, ...]

    def __new__(cls, value: str, family: str, meaning: str, *parameters: str) -> Self:
        """Make a member, which equals its value."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.family, member.meaning, member.parameters = family, meaning, parameters
        return member

    FAILED = "failed", "failed", "Any other error."
    INVALID_INPUT = "invalid-input", "invalid-input", "Any other fault of a file, an array or an argument."
    CONFLICT = "conflict", "conflict", "Any other contradiction between the input and what is stored."
    NOT_FOUND = "not-found", "not-found", "Anything else that is not stored."
    NOT_READY = "not-ready", "not-ready", "Any other missing step, or too little data."
    OUTDATED = "outdated", "outdated", "Any other result of an earlier step that is out of date."
    DATABASE = "database", "database", "Any other failure of the database, or of the folder of this program."
    JOB = "job", "job", "A job failed or was cancelled, or no worker is up that could do it."
    ALARM = "alarm", "alarm", "An alarm of a monitor stands."
    BROKER = "broker", "broker", "The address of the broker is wrong, or the broker cannot be reached."

    LABEL_MISSING = "label-missing", "invalid-input", "A row of a file of labels has no label."
    UNLABELLED = "unlabelled", "invalid-input", "A row has no label, and its split needs one.", "split"
    NO_VECTORS = "no-vectors", "invalid-input", "The classifier has logits only, and this needs vectors.", "classifier"
    VECTORS_UNWANTED = "vectors-unwanted", "invalid-input", "Data have vectors, and the classifier has logits only."
    PROBABILITIES = "probabilities", "invalid-input", "Logits look like probabilities."
    ENCODER_UNNAMED = (
        "encoder-unnamed",
        "invalid-input",
        "A memory layer needs an encoder from a folder that is not named.",
    )
    PARAMETERS_UNREADABLE = "parameters-unreadable", "invalid-input", "A file of KNN parameters is not JSON."

    NAME_TAKEN = "name-taken", "conflict", "Another classifier has this name.", "classifier"
    SETTING_IN_USE = "setting-in-use", "conflict", "The setting in use cannot be retired.", "classifier", "setting"
    INDEX_EXISTS = "index-exists", "conflict", "The classifier has an HNSW index already.", "classifier"

    CASCADE_TAKEN = "cascade-taken", "conflict", "Another cascade has this name.", "cascade"
    STAGE_OF_CASCADE = (
        "stage-of-cascade",
        "conflict",
        "The classifier is a stage of a cascade, and cannot be deleted.",
        "classifier",
        "cascade",
    )
    FORGOTTEN = (
        "forgotten",
        "conflict",
        "Data bring back an exemplar or a document that was forgotten.",
        "classifier",
        "exemplar",
    )
    BEING_DELETED = "being-deleted", "conflict", "The classifier is being deleted.", "classifier"
    GENERATION_IN_USE = "generation-in-use", "conflict", "The current generation cannot be deleted alone.", "classifier"
    JOBS_RUNNING = "jobs-running", "conflict", "Jobs of the classifier are running.", "classifier", "job"

    TRAINING_ROWS = (
        "training-rows",
        "conflict",
        "Held-out data share vector and logits, or a document, with training exemplars, or the other way round.",
        "classifier",
    )
    EXTRACTOR_DIFFERS = (
        "extractor-differs",
        "conflict",
        "Data come from another extractor than those of the classifier.",
        "classifier",
    )
    EXTRACTOR_MISSING = (
        "extractor-missing",
        "conflict",
        "Data do not state the extractor that they come from, and the classifier does.",
        "classifier",
    )
    EXTRACTOR_UNSTATED = (
        "extractor-unstated",
        "conflict",
        "Data state the extractor that they come from, and the classifier does not.",
        "classifier",
    )

    NO_CLASSIFIER = "no-classifier", "not-found", "No classifier has been created yet.", "classifier"
    UNKNOWN_CLASSIFIER = "unknown-classifier", "not-found", "No classifier has this name.", "classifier"
    NO_SETTING = "no-setting", "not-found", "The classifier has no setting yet.", "classifier", "setting"
    UNKNOWN_SETTING = "unknown-setting", "not-found", "The classifier has no such setting.", "classifier", "setting"
    UNKNOWN_CALIBRATION = (
        "unknown-calibration",
        "not-found",
        "The classifier has no such calibration.",
        "classifier",
        "calibration",
    )
    UNKNOWN_EXEMPLAR = "unknown-exemplar", "not-found", "No exemplar has this id.", "classifier", "exemplar"
    NOTHING_TO_FORGET = (
        "nothing-to-forget",
        "not-found",
        "Nothing is stored under an id that is to be forgotten.",
        "classifier",
        "exemplar",
    )
    UNKNOWN_DECISION = "unknown-decision", "not-found", "No decision has this number.", "decision"
    REMOVED_DECISION = "removed-decision", "not-found", "The decision was removed.", "decision"
    UNKNOWN_JOB = "unknown-job", "not-found", "No job has this number.", "job"
    REMOVED_JOB = "removed-job", "not-found", "The rows and decisions of the job were removed.", "job"
    UNKNOWN_KEY = "unknown-key", "not-found", "No key for the HTTP service has this number.", "key"
    UNKNOWN_INDEX = "unknown-index", "not-found", "The classifier has no HNSW index to drop.", "classifier"
    UNKNOWN_CASCADE = "unknown-cascade", "not-found", "No cascade has this name.", "cascade"

    SCHEMA_OUTDATED = "schema-outdated", "not-ready", "The schema of the database is older than this program needs."
    PROGRAM_OUTDATED = "program-outdated", "not-ready", "The schema of the database needs a newer program."
    TOO_FEW_TRAINING_EXEMPLARS = (
        "too-few-training-exemplars",
        "not-ready",
        "The classifier has fewer than K training exemplars.",
        "classifier",
    )
    TOO_FEW_CLASSES = "too-few-classes", "not-ready", "A split has exemplars of fewer than two classes.", "classifier"
    NOT_CERTIFIABLE = (
        "not-certifiable",
        "not-ready",
        "A split has one document alone, or lacks a class that is to be certified.",
        "classifier",
    )
    NO_HELD_OUT_DATA = "no-held-out-data", "not-ready", "A held-out split has no exemplars.", "classifier"
    NOT_FITTED = "not-fitted", "not-ready", "The classifier's KNN has no parameters yet.", "classifier"
    CHAIN_ENDED = (
        "chain-ended",
        "not-ready",
        "A certificate that stands while labels arrive has a score that is not computed any more.",
        "classifier",
        "alpha",
        "confidence",
        "score",
    )
    CHANGED_DURING_FIT = (
        "changed-during-fit",
        "not-ready",
        "Exemplars arrived, changed or were forgotten during a fit.",
        "classifier",
    )
    EQUAL_DISTANCES = "equal-distances", "not-ready", "The distances to training give a band no width."
    NOT_CALIBRATED = "not-calibrated", "not-ready", "The classifier has no calibration yet.", "classifier"
    INDEX_MISSING = "index-missing", "not-ready", "The search asked for needs an HNSW index.", "classifier"

    CASCADE_NOT_CERTIFIED = "cascade-not-certified", "not-ready", "The cascade has no certificate yet.", "cascade"
    CASCADE_OUTDATED = (
        "cascade-outdated",
        "outdated",
        "A classifier of the cascade has another score than when the cascade was certified.",
        "cascade",
        "classifier",
    )

    POINTS_FORGOTTEN = (
        "points-forgotten",
        "outdated",
        "Points of the calibration have since been forgotten, so nothing is decided by it.",
        "classifier",
        "calibration",
    )
    CHANGED_DURING_CALIBRATION = (
        "changed-during-calibration",
        "outdated",
        "Points arrived or changed during a calibration.",
        "classifier",
    )
    RECALIBRATION_DUE = (
        "recalibration-due",
        "outdated",
        "Labels or data have arrived since the calibration.",
        "classifier",
    )

    SCHEMA_MISMATCH = "schema-mismatch", "database", "The database lacks a table, column or function of the schema."
    DATABASE_UNREACHABLE = "database-unreachable", "database", "The database cannot be reached."
    DAMAGED = "damaged", "database", "Rows are missing in the database, or contradict each other."
    DATABASE_BUSY = "database-busy", "database", "All connections of this process to the database are in use."

    JOB_NOT_RUNNING = "job-not-running", "job", "The job to cancel is over.", "job"
    JOB_RUNNING = "job-running", "job", "The job to remove is running.", "job"


class Problem(StrEnum):
    """Reasons for which only HTTP refuses a request.

    Attributes:
        family: The code of the family of errors that the client raises for it.
        heading: The title of the answer.
    """

    family: str
    heading: str

    def __new__(cls, value: str, family: str, heading: str) -> Self:
        """Make a member, which equals its value."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.family, member.heading = family, heading
        return member

    INVALID_REQUEST = "invalid-request", "invalid-input", "The request is invalid"
    UNAUTHENTICATED = "unauthenticated", "forbidden", "A valid key is needed"
    FORBIDDEN = "forbidden", "forbidden", "The key does not allow this"
    NO_SUCH_ROUTE = "no-such-route", "not-found", "There is no such address"
    METHOD_NOT_ALLOWED = "method-not-allowed", "invalid-input", "The address does not take this method"
    NOT_ACCEPTABLE = "not-acceptable", "invalid-input", "The answer has no such type"
    BODY_TOO_LARGE = "body-too-large", "invalid-input", "The body is too large"
    BODY_TOO_SLOW = "body-too-slow", "unavailable", "The body arrives too slowly"
    BODY_INCOMPLETE = "body-incomplete", "invalid-input", "The body is incomplete"
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type", "invalid-input", "The body has another type"
    TOO_MANY = "too-many", "unavailable", "There are too many at a time"
    NO_ROOM = "no-room", "unavailable", "The service has no room for it"
    IDEMPOTENCY_KEY_REUSED = "idempotency-key-reused", "conflict", "The Idempotency-Key was used for another request"
    STILL_RUNNING = "still-running", "conflict", "The same request is being answered"
    PRECONDITION_REQUIRED = "precondition-required", "conflict", "The header If-Match is needed"
    PRECONDITION_FAILED = "precondition-failed", "conflict", "The settings have changed"
    TOO_MANY_REQUESTS = "too-many-requests", "unavailable", "The key has sent too many requests"
    ISSUER_UNREACHABLE = "issuer-unreachable", "unavailable", "The issuer of tokens cannot be reached"
    TOO_BUSY = "too-busy", "unavailable", "The service is busy"
    INTERNAL = "internal", "failed", "A fault of the program"
