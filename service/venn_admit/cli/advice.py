"""How users of the command line do what the message of an error asks for: a sentence a code, with the command."""

from collections.abc import Mapping
from shlex import quote

from venn_admit.errors import Code, VennAdmitError

ADVICE: Mapping[Code, str] = {
    Code.LABEL_MISSING: "`venn-admit label --retract` retracts them",
    Code.UNLABELLED: "`venn-admit score` takes rows without labels",
    Code.NO_VECTORS: "`venn-admit calibrate {classifier} --method venn-abers` needs none",
    Code.VECTORS_UNWANTED: "`venn-admit create` with --dim makes a classifier that takes them",
    Code.ENCODER_UNNAMED: "--encoder FOLDER names it",
    Code.PARAMETERS_UNREADABLE: "run `venn-admit export NAME --what parameters`",
    Code.SETTING_IN_USE: "run `venn-admit calibrate {classifier}` with the options of the other one",
    Code.EXTRACTOR_DIFFERS: "`venn-admit generation create {classifier} --extractor VERSION` adds it; "
    "without exemplars, `venn-admit generation extractor {classifier} VERSION` corrects it",
    Code.EXTRACTOR_MISSING: "--extractor VERSION states it",
    Code.EXTRACTOR_UNSTATED: "`venn-admit generation extractor {classifier} VERSION` states it",
    Code.INDEX_EXISTS: "run `venn-admit index drop {classifier}`",
    Code.NO_CLASSIFIER: "run `venn-admit create`",
    Code.NO_SETTING: "run `venn-admit calibrate {classifier}`",
    Code.UNKNOWN_CALIBRATION: "`venn-admit calibrations {classifier}` lists the newest",
    Code.UNKNOWN_JOB: "`venn-admit jobs list` lists the jobs",
    Code.UNKNOWN_KEY: "`venn-admit key list` lists the keys",
    Code.SCHEMA_OUTDATED: "run `venn-admit db upgrade`",
    Code.TOO_FEW_TRAINING_EXEMPLARS: "run `venn-admit ingest {classifier} FILE --split train`",
    Code.NO_HELD_OUT_DATA: "run `venn-admit ingest {classifier} FILE --split held-out`",
    Code.NOT_FITTED: "run `venn-admit fit {classifier}`",
    Code.EQUAL_DISTANCES: "`venn-admit calibrate --delta inf` does the latter",
    Code.NOT_CALIBRATED: "run `venn-admit calibrate {classifier}`",
    Code.RECALIBRATION_DUE: "run `venn-admit recalibrate {classifier}`",
    Code.JOB_RUNNING: "run `venn-admit jobs cancel {job}`",
    Code.POINTS_FORGOTTEN: "run `venn-admit recalibrate {classifier}`",
    Code.BEING_DELETED: "run `venn-admit delete {classifier}`",
    Code.JOBS_RUNNING: "`venn-admit jobs cancel {job}` cancels the first",
    Code.INDEX_MISSING: "run `venn-admit index create {classifier}`",
    Code.SCHEMA_MISMATCH: "run `venn-admit db upgrade`",
}
"""What to add to the message; in braces stand parameters of the code."""

PLAIN = frozenset(
    {
        *(code for code in Code if code == code.family),
        Code.NAME_TAKEN,
        Code.FORGOTTEN,
        Code.GENERATION_IN_USE,
        Code.UNKNOWN_CLASSIFIER,
        Code.UNKNOWN_SETTING,
        Code.UNKNOWN_DECISION,
        Code.REMOVED_DECISION,
        Code.REMOVED_JOB,
        Code.UNKNOWN_EXEMPLAR,
        Code.UNKNOWN_INDEX,
        Code.PROGRAM_OUTDATED,
        Code.TOO_FEW_CLASSES,
        Code.NOT_CERTIFIABLE,
        Code.CHANGED_DURING_FIT,
        Code.CHANGED_DURING_CALIBRATION,
        Code.DATABASE_UNREACHABLE,
        Code.DATABASE_BUSY,
        Code.DAMAGED,
        Code.JOB_NOT_RUNNING,
    }
)
"""The codes whose messages say all: there is no command to name, or it is the one that was run."""


def advised(error: VennAdmitError) -> str:
    """Return the message of an error, with the command that does what it asks for if there is one.

    >>> from venn_admit.errors import NotReadyError
    >>> advised(NotReadyError("fit it first", code=Code.NOT_FITTED, classifier="my reviews"))
    "fit it first; run `venn-admit fit 'my reviews'`"
    >>> advised(NotReadyError("ingest more"))
    'ingest more'
    """
    sentence = ADVICE.get(error.code)
    if sentence is None:
        return str(error)
    return f"{error}; {sentence.format_map({name: quote(str(value)) for name, value in error.parameters.items()})}"
