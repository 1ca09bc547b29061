"""What is shown of a certificate: the outcome class by class, and the policies that were proposed."""

from collections.abc import Iterator, Sequence
from typing import Any

from venn_admit.core.calibrators.certified.certificate import Certificate, ClassResult, Proposal, to_document
from venn_admit.report.calibration.sections import Section, TextTable, ratio_text
from venn_admit.report.evaluation.wording import share_text

MOST_CLASSES = 20
"""At most this many classes of both kinds are shown: those with the largest p-values."""

MOST_LISTED = 6
"""With more classes than these, the thresholds are not listed."""

TOO_MANY = 10**9
"""A number of documents that no one will ever have."""


def certificate_section(certificate: Certificate, class_names: Sequence[str]) -> Section:
    """Return the outcome: whether a policy is certified, what it does in each class, and what is lacking."""
    shown = certificate.closest
    parts: list[str | TextTable] = [outcome_text(certificate)]
    if shown is None:
        parts.append("No policy was proposed: none that admits anything has enough right on mc.")
        return Section("Certificate", tuple(parts))
    if certificate.chosen is None:
        parts.append(f"The policy that came closest would admit {share_text(shown.vp_share)} of vp:")
    parts += [_thresholds(shown, class_names), _classes(certificate, shown, class_names)]
    return Section("Certificate", tuple(parts), tuple(_notes(certificate, shown)))


def proposals_section(certificate: Certificate) -> Section:
    """Return the policies that were proposed, in the order in which they were tested."""
    rows = tuple(
        (
            str(number),
            f"{float(proposal.margin):g}",
            f"{proposal.standard_errors:g}",
            share_text(proposal.mc_share),
            share_text(proposal.vp_share),
            _least_right(proposal),
            share_text(proposal.p_value),
            _verdict(certificate, number - 1),
        )
        for number, proposal in enumerate(certificate.proposals, start=1)
    )
    columns = (
        "",
        "margin",
        "standard\nerrors",
        "admits\nof mc",
        "admits\nof vp",
        "least\nright",
        "p-value",
        "outcome",
    )
    return Section(
        "Policies proposed",
        (TextTable(columns, rows, query="policy_proposals"),) if rows else ("None.",),
        (
            "margin, standard errors: how far each was to exceed 1 - alpha on mc. least right: the "
            "lowest share right on vp of a class that is tested. They are tested in this order, until one fails; of "
            "those that passed, the one that admits most of mc is certified.",
        ),
    )


def certificate_payload(certificate: Certificate, class_names: Sequence[str]) -> dict[str, Any]:
    """Return a certificate as JSON has it."""
    return {
        "certified": certificate.chosen is not None,
        "classes": list(class_names),
        **to_document(certificate),
    }


def count_text(count: int) -> str:
    """Return an estimated number with two digits.

    >>> [count_text(count) for count in (7, 1234)]
    ['7', '1,200']
    """
    return f"{int(float(f'{count:.2g}')):,}"


def kinds_text(certificate: Certificate) -> str:
    """Return the classes that a certificate is for, such as "every predicted and every true class"."""
    return f"{' and '.join(f'every {kind}' for kind in certificate.kinds)} class"


def outcome_text(certificate: Certificate) -> str:
    """Return what is certified; otherwise that nothing is, and how many labels would do."""
    target, confidence = 1 - certificate.alpha, certificate.confidence
    if certificate.chosen is not None:
        chosen = certificate.proposals[certificate.chosen]
        return (
            f"Certified with confidence {confidence}: of what is admitted, at least {target} is right in "
            f"{kinds_text(certificate)}. The policy admits {share_text(chosen.vp_share)} of vp."
        )
    said = (
        f"Not certified: no policy passed at confidence {confidence} for {kinds_text(certificate)}, so everything is "
        "rejected. "
    )
    return f"{said}At the rates seen, {_lacking(certificate)}."


def _lacking(certificate: Certificate) -> str:
    """What would do, as the rest of a sentence."""
    needed = certificate.documents_needed
    if needed is None or needed > TOO_MANY:
        return "no number of labels would do"
    if needed <= certificate.vp_documents:
        return "about as many labels as there are would do, and some more will help"
    labels = count_text(certificate.points_in(needed))
    if certificate.single_points:
        return f"vp would need about {labels} labels, and it has {certificate.vp_points:,}"
    return (
        f"vp would need about {count_text(needed)} documents, and it has {certificate.vp_documents:,}; that many hold "
        f"about {labels} labels"
    )


def _thresholds(proposal: Proposal, class_names: Sequence[str]) -> str:
    pairs = list(zip(class_names, proposal.policy.thresholds, strict=True))
    never = [name for name, threshold in pairs if threshold is None]
    if len(pairs) > MOST_LISTED:
        listed = f" ({', '.join(never[:MOST_LISTED])}{', ...' if len(never) > MOST_LISTED else ''})" if never else ""
        return f"{len(never)} of {len(pairs)} predicted classes are never admitted{listed}."
    said = ", ".join(f"{name} {'never' if value is None else f'from {value:.4g}'}" for name, value in pairs)
    return f"Predicted classes are admitted by p0: {said}."


def _classes(certificate: Certificate, proposal: Proposal, class_names: Sequence[str]) -> TextTable:
    needed = ("labels\nneeded",) if certificate.single_points else ("documents\nneeded", "labels\nneeded")
    short = any(_falls_short(certificate, result) for result in proposal.classes)
    rows = tuple(
        (
            f"{result.kind} {class_names[result.number]}",
            ratio_text(result.vp_admitted, certificate.vp_points),
            ratio_text(result.vp_right, result.vp_admitted),
            "never" if result.p_value is None else share_text(result.p_value),
            *(_needed(certificate, result)[-len(needed) :] if short else ()),
        )
        for result in _shown(proposal)
    )
    columns = ("class", "admitted\nof vp", "right\non vp", "p-value", *(needed if short else ()))
    return TextTable(columns, rows, query="policy_classes")


def _shown(proposal: Proposal) -> list[ClassResult]:
    if len(proposal.classes) <= MOST_CLASSES:
        return list(proposal.classes)
    largest = sorted(proposal.classes, key=lambda result: -1 if result.p_value is None else result.p_value)
    kept = {id(result) for result in largest[-MOST_CLASSES:]}
    return [result for result in proposal.classes if id(result) in kept]


def _falls_short(certificate: Certificate, result: ClassResult) -> bool:
    return result.p_value is not None and result.p_value > certificate.level


def _needed(certificate: Certificate, result: ClassResult) -> tuple[str, str]:
    """The documents and labels with which a class that falls short is likely to pass."""
    if not _falls_short(certificate, result):
        return "", ""
    if result.documents_needed is None or result.documents_needed > TOO_MANY:
        return "no number", "no number"
    return count_text(result.documents_needed), count_text(certificate.points_in(result.documents_needed))


def _notes(certificate: Certificate, proposal: Proposal) -> Iterator[str]:
    yield (
        f"admitted: of all points of vp; right: of these; a class passes if its p-value is at most "
        f"{1 - certificate.confidence}."
    )
    if any(result.p_value is None for result in proposal.classes):
        yield "never: this predicted class is not admitted, so that nothing is promised of it."
    if len(proposal.classes) > MOST_CLASSES:
        yield f"{MOST_CLASSES} of {len(proposal.classes)} classes shown: those with the largest p-values."


def _least_right(proposal: Proposal) -> str:
    shares = [result.vp_share for result in proposal.classes if result.p_value is not None]
    known = [share for share in shares if share is not None]
    return share_text(min(known)) if known else "-"


def _verdict(certificate: Certificate, place: int) -> str:
    proposal = certificate.proposals[place]
    if place == certificate.chosen:
        return "certified"
    if proposal.passed:
        return "passed"
    return "failed" if proposal.p_value > certificate.level else "after one that failed"
