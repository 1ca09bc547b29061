"""What is said of certificates that stand while labels arrive: how far each came."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from venn_admit.core.calibrators.certification import ClassKind, class_document
from venn_admit.core.calibrators.certified.certificate import Advance, Certificate, LaterChain, Refutation
from venn_admit.report.wording import class_text, listed_text
from venn_admit_client.records.certificates import count_text

BEGIN = "Begin the next chain once new labels have come, which fix it."
REMEDY = "If labels were wrong, correct them instead, and have the monitor look again; if it was chance, restart it."
"""What to do if labels refute what is certified, or an alarm withdraws it."""
NO_NEXT = "the next by no number of labels at the rates seen"
NOTHING_TO_CERTIFY = "no class has thresholds to certify, whatever labels come"
BEGIN_TO_CERTIFY = "; they fix the next chain, so begin it once there are more"
MOST_CLASSES = 20
"""At most this many classes of a certificate are shown; of both kinds, those with the largest p-values."""


def standing_text(
    certificate: Certificate, class_names: Sequence[str], *, has_ended: bool = False, later: LaterChain | None = None
) -> str:
    """Return how far a certificate came that stands while labels arrive, and what the next thresholds take.

    has_ended: whether no label can count for its chain any more, and nothing is promised. later: the chain of its
    setting that was begun since.
    """
    standing = certificate.standing
    assert standing is not None, "a certificate that is made once comes no further"
    single = certificate.single_points
    after = "" if single else f" in {certificate.documents:,} documents"
    labels = f"{certificate.points:,} label{'' if certificate.points == 1 else 's'}"
    said = f"Chain {standing.chain}, with {standing.level:.2g} of 1 - confidence, after {labels}{after}"
    if ClassKind.TRUE in certificate.kinds and standing.classes:
        parts = [_policies_text(certificate, class_names, has_ended=has_ended)]
    else:
        parts = [_class_text(of, class_names, has_ended=has_ended, single=single) for of in standing.classes]
    more = [f"{len(parts) - MOST_CLASSES} more classes"] if len(parts) > MOST_CLASSES else []
    nothing = NOTHING_TO_CERTIFY if later is not None else NOTHING_TO_CERTIFY + BEGIN_TO_CERTIFY
    sentences = [f"{said}: {'; '.join([*parts[:MOST_CLASSES], *more]) or nothing}."]
    is_withdrawn = not has_ended and any(of.is_withdrawn or of.refuted is not None for of in standing.classes)
    if has_ended:
        sentences.append("It has ended, and nothing is promised of what it decides now.")
    if later is not None:
        sentences.append(later_text(later))
    elif is_withdrawn:
        sentences.append(BEGIN)
    if is_withdrawn:
        sentences.append(REMEDY)
    if not has_ended and later is None and standing.following is not None:
        sentences.append(following_text(certificate))
    return " ".join(sentences)


def _class_text(of: Advance, class_names: Sequence[str], *, has_ended: bool, single: bool) -> str:
    """How far the thresholds of a predicted class came, and what the next one takes."""
    name, come = class_names[of.number], f"{of.certified} of {of.thresholds} thresholds"
    if of.refuted is not None:
        return f"{name} withdrawn, as labels refute it ({come}; {_refuted(of.refuted, single=single)})"
    if of.is_withdrawn:
        return f"{name} withdrawn by an alarm ({come})"
    if has_ended or of.certified == of.thresholds:
        return f"{name} {come}"
    if of.documents is None:
        return f"{name} {come}, {NO_NEXT}"
    return f"{name} {come}, the next in about {_further_text(of.documents, single=single)}"


def _policies_text(certificate: Certificate, class_names: Sequence[str], *, has_ended: bool) -> str:
    """How far policies came that hold for all classes together, and which class the next one waits for."""
    assert certificate.standing is not None, "a certificate that is made once comes no further"
    classes, single = certificate.standing.classes, certificate.single_points
    come = f"{classes[0].certified} of {classes[0].thresholds} policies"
    refuted = [
        f"{class_text(of.promised, class_names)} ({_refuted(of.refuted, single=single)})"
        for of in classes
        if of.refuted is not None
    ]
    if refuted:
        return f"{come}, withdrawn, as labels refute them for {listed_text(refuted)}"
    if alarmed := [class_text(of.promised, class_names) for of in classes if of.is_withdrawn]:
        return f"{come}, withdrawn by an alarm for {listed_text(alarmed)}"
    if has_ended or classes[0].certified == classes[0].thresholds:
        return come
    needed = [of.documents for of in classes if of.documents is not None]
    if len(needed) < len(classes):
        hopeless = [class_text(of.promised, class_names) for of in classes if of.documents is None]
        return f"{come}, {NO_NEXT}, because of {listed_text(hopeless)}"
    last = class_text(max(classes, key=lambda of: of.documents or 0).promised, class_names)
    return f"{come}, the next in about {_further_text(max(needed), single=single)}, for {last}"


def _further_text(documents: int, *, single: bool) -> str:
    number = count_text(documents)
    return f"{number} further {'label' if single else 'document'}{'' if number == '1' else 's'}"


def later_text(later: LaterChain) -> str:
    """Return which chain was begun since, and which of its calibrations is in use or may be.

    >>> later_text(LaterChain(2, 9, is_in_use=False))
    'Chain 2 was begun since, and its calibration 9 may be put in use instead.'
    """
    use = "is in use" if later.is_in_use else "may be put in use instead"
    return f"Chain {later.chain} was begun since, and its calibration {later.calibration} {use}."


def _refuted(of: Refutation, *, single: bool) -> str:
    what = "" if single else f", in {of.documents:,} documents"
    right = f"{of.right:,} of {of.admitted:,} that it admitted are right{what}"
    return f"{right}, and too few of them since about number {of.since:,}"


def following_text(certificate: Certificate) -> str:
    """Return what the next chain would admit, of a certificate that says so."""
    assert certificate.standing is not None, "a certificate that is made once has no chain"
    of = certificate.standing.following
    assert of is not None, "the next chain would admit clearly more"
    what = "label" if certificate.single_points else "document"
    share, instead_of = (f"{one:.2f}".removeprefix("0") for one in (of.share, of.instead_of))
    return (
        f"A new chain, fixed by the labels of today, would admit about {share} instead of {instead_of} after "
        f"{of.documents:,} further {what}s; it would be chain {of.chain}, with {of.level:.2g} of 1 - confidence."
    )


def chain_payload(certificate: Certificate, *, has_ended: bool, later: LaterChain | None) -> dict[str, Any]:
    """Return what `standing_text` says as JSON has it."""
    standing = certificate.standing
    assert standing is not None, "a certificate that is made once comes no further"
    following = None if has_ended or later is not None else standing.following
    return {
        "chain": standing.chain,
        "level": standing.level,
        "documents": certificate.documents,
        "labels": certificate.points,
        "classes": [
            {
                **class_document(of.promised),
                "certified": of.certified,
                "thresholds": of.thresholds,
                "documents_needed": None if has_ended else of.documents,
                "is_withdrawn": of.is_withdrawn,
                "refuted": None if of.refuted is None else asdict(of.refuted),
            }
            for of in standing.classes
        ],
        "following": None if following is None else asdict(following),
        "later": None if later is None else asdict(later),
    }
