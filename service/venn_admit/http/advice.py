"""How users of HTTP do what the message of an error asks for: a sentence a code, with the request."""

from collections.abc import Mapping
from urllib.parse import quote

from venn_admit.errors import Code, VennAdmitError

_OF_CLASSIFIER = "/v1/classifiers/{classifier}"

ADVICE: Mapping[Code, str] = {
    Code.LABEL_MISSING: 'send "retract": true to retract them',
    Code.NO_VECTORS: f'POST {_OF_CLASSIFIER}/calibrations with "method": "venn-abers" needs none',
    Code.VECTORS_UNWANTED: 'POST /v1/classifiers with "dimension" makes a classifier that takes them',
    Code.SETTING_IN_USE: f"POST {_OF_CLASSIFIER}/calibrations with the settings of the other one",
    Code.EXTRACTOR_DIFFERS: f"POST {_OF_CLASSIFIER}/generations adds it; "
    f"without exemplars, PUT {_OF_CLASSIFIER}/extractor corrects it",
    Code.EXTRACTOR_MISSING: 'state it as "extractor"',
    Code.EXTRACTOR_UNSTATED: f"PUT {_OF_CLASSIFIER}/extractor states it",
    Code.NO_CLASSIFIER: "POST /v1/classifiers makes one",
    Code.NO_SETTING: f"POST {_OF_CLASSIFIER}/calibrations makes one",
    Code.UNKNOWN_CALIBRATION: f"GET {_OF_CLASSIFIER}/calibrations lists the newest",
    Code.TOO_FEW_TRAINING_EXEMPLARS: f'POST {_OF_CLASSIFIER}/exemplars with "split": "train"',
    Code.NO_HELD_OUT_DATA: f'POST {_OF_CLASSIFIER}/exemplars with "split": "held-out"',
    Code.EQUAL_DISTANCES: 'calibrate with "delta": "inf" for the latter',
    Code.NOT_FITTED: f"POST {_OF_CLASSIFIER}/fit fits it",
    Code.CHANGED_DURING_FIT: f"POST {_OF_CLASSIFIER}/fit fits it again",
    Code.RECALIBRATION_DUE: f"POST {_OF_CLASSIFIER}/recalibrate makes it",
    Code.POINTS_FORGOTTEN: f"POST {_OF_CLASSIFIER}/recalibrate makes it",
    Code.BEING_DELETED: f"DELETE {_OF_CLASSIFIER} does that",
    Code.GENERATION_IN_USE: f"PUT {_OF_CLASSIFIER}/generations/current switches to another",
    Code.JOBS_RUNNING: f"POST {_OF_CLASSIFIER}/jobs/{{job}}/cancel cancels the first",
    Code.NOT_CALIBRATED: f"POST {_OF_CLASSIFIER}/calibrations makes the first",
}
"""What to add to the message; in braces stand parameters of the code."""

PLAIN = frozenset(
    {
        *(code for code in Code if code == code.family),
        Code.UNLABELLED,
        Code.ENCODER_UNNAMED,
        Code.PARAMETERS_UNREADABLE,
        Code.NAME_TAKEN,
        Code.FORGOTTEN,
        Code.INDEX_EXISTS,
        Code.INDEX_MISSING,
        Code.UNKNOWN_CLASSIFIER,
        Code.UNKNOWN_SETTING,
        Code.UNKNOWN_DECISION,
        Code.UNKNOWN_EXEMPLAR,
        Code.UNKNOWN_INDEX,
        Code.REMOVED_DECISION,
        Code.UNKNOWN_JOB,
        Code.REMOVED_JOB,
        Code.UNKNOWN_KEY,
        Code.SCHEMA_OUTDATED,
        Code.SCHEMA_MISMATCH,
        Code.PROGRAM_OUTDATED,
        Code.TOO_FEW_CLASSES,
        Code.NOT_CERTIFIABLE,
        Code.CHANGED_DURING_CALIBRATION,
        Code.DATABASE_UNREACHABLE,
        Code.DATABASE_BUSY,
        Code.DAMAGED,
        Code.JOB_NOT_RUNNING,
        Code.JOB_RUNNING,
    }
)
"""The codes whose messages say all, or for which there is no request: the service's operator has to act."""


def advised(error: VennAdmitError) -> str:
    """Return the message of an error, with the request that does what it asks for if there is one.

    >>> from venn_admit.errors import NotReadyError
    >>> advised(NotReadyError("calibrate first", code=Code.NOT_CALIBRATED, classifier="my reviews"))
    'calibrate first; POST /v1/classifiers/my%20reviews/calibrations makes the first'
    >>> advised(NotReadyError("ingest more"))
    'ingest more'
    """
    sentence = ADVICE.get(error.code)
    if sentence is None:
        return str(error)
    parameters = {name: quote(str(value), safe="") for name, value in error.parameters.items()}
    return f"{error}; {sentence.format_map(parameters)}"
