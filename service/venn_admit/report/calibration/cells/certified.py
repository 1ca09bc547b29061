"""What is shown of a certificate: the outcome class by class, and the policies that were tested."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from venn_admit.core.calibrators.certification import ClassKind, DocumentTest, GroupKind, kind_place
from venn_admit.core.calibrators.certified.certificate import Certificate, Chain, ClassResult, LaterChain, SetAside
from venn_admit.core.calibrators.certified.document import to_document
from venn_admit.core.calibrators.certified.policies import Bounded
from venn_admit.core.calibrators.certified.shares.mixes import Departure
from venn_admit.core.calibrators.certified.strongest import LEAST_PART
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.report.calibration.sections import Section, TextTable, ratio_text
from venn_admit.report.evaluation.wording import score_text
from venn_admit.report.standing import MOST_CLASSES, standing_text
from venn_admit.report.wording import MOST_LISTED, class_text, counted, listed_text, share_text
from venn_admit_client.records.certificates import count_text, labels_needed_text

MOST_STEPS = 4
"""At most this many policies of a chain are shown: the first, and those before the end."""

TOO_MANY = 10**9
"""A number of documents that no one will ever have."""


def certificate_section(
    certificate: Certificate,
    class_names: Sequence[str],
    *,
    has_average: bool = False,
    has_ended: bool = False,
    later: LaterChain | None = None,
) -> Section:
    """Return the outcome: whether a policy is certified, what it does in each class, and what is lacking.

    has_average: whether the average promise takes its place, if none is. has_ended: whether its chain has ended.
    later: the chain of its setting that was begun since.
    """
    parts: list[str | TextTable] = [outcome_text(certificate, class_names, has_average=has_average)]
    if certificate.standing is not None:
        parts.append(standing_text(certificate, class_names, has_ended=has_ended, later=later))
    if certificate.policy is not None:
        parts.append(_thresholds(certificate, class_names))
        if certificate.unpromised:
            parts.append(unpromised_text(certificate, class_names))
    results = (*certificate.classes, *_aside(certificate), *certificate.lacking)
    if not results:
        parts.append("No policy was tested: by the data that propose, none has a chance to pass.")
        return Section("Certificate", tuple(parts))
    parts.append(_classes(certificate, results, class_names))
    return Section("Certificate", tuple(parts), tuple(_notes(certificate, results)))


def section_of_tests(certificate: Certificate, class_names: Sequence[str]) -> Section:
    """Return the policies that were tested, in order, chain by chain."""
    shown = certificate.chains[:MOST_CLASSES]
    rows = tuple(row for number, chain in enumerate(shown, start=1) for row in _steps(number, chain, class_names))
    columns = ("chain", "", "foretold\nright", "admitted", "least\nright", "p-value", "level", "outcome")
    return Section(
        "Policies tested",
        (TextTable(columns, rows, query="policy_tests"),) if rows else ("None.",),
        (
            "Each chain is tested from strict to liberal, in an order fixed by the data that propose, up to the first "
            "failure. foretold right: the least share right that those data foretell of a prediction admitted; "
            "admitted: points of the evidence; least right: the lowest share right of a class that is tested; level: "
            "what the p-value may be at most. The first and the last policies of each chain are shown.",
            *_chains_left_out(certificate),
        ),
    )


def _chains_left_out(certificate: Certificate) -> Iterator[str]:
    if len(certificate.chains) > MOST_CLASSES:
        yield f"The first {MOST_CLASSES} of {len(certificate.chains)} chains are shown."


def certificate_payload(certificate: Certificate, class_names: Sequence[str]) -> dict[str, Any]:
    """Return a certificate as JSON has it."""
    return {"certified": certificate.policy is not None, "classes": list(class_names), **to_document(certificate)}


def kinds_text(certificate: Certificate) -> str:
    """Return the classes that a certificate is for, such as "every predicted and every true class"."""
    classes = [f"every {kind}" for kind in certificate.kinds if not isinstance(kind, GroupKind)]
    parts = [f"{' and '.join(classes)} class"] if classes else []
    groups = [kind for kind in certificate.kinds if isinstance(kind, GroupKind)]
    parts += [f"every {'predicted class of every ' if kind.by_predicted else ''}{kind.attribute}" for kind in groups]
    return ", and in ".join(parts)


def certified_text(certificate: Certificate) -> str:
    """Return what the policy of a certificate promises."""
    said = (
        f"of what is admitted, at least {1 - certificate.alpha} is right in"
        if certificate.loss is None
        else f"the mean loss of what is admitted is at most {certificate.alpha} in"
    )
    when = "" if certificate.standing is None else ", whenever one looks"
    of = "" if certificate.class_shares is None else f", in traffic {shares_text(certificate.class_shares)}"
    confidence = f"{certificate.test.of_confidence}confidence {certificate.confidence}"
    return f"Certified with {confidence}{when}: {said} {kinds_text(certificate)}{of}."


def shares_text(declared: ClassShares | EstimatedShares) -> str:
    """Return what is declared of traffic, or estimated.

    >>> from decimal import Decimal
    >>> shares_text(ClassShares((Decimal("0.3"), Decimal("0.7")), Decimal("0.05")))
    'with the class shares 0.3, 0.7, each within 0.05, and points of each class like those of the calibration data'
    """
    alike = "and points of each class like those of the calibration data"
    if isinstance(declared, EstimatedShares):
        ends = zip(declared.least, declared.most, strict=True)
        shares = listed_text([f"{least:.3f} to {most:.3f}" for least, most in ends])
        of = f"{declared.points:,} points of recent traffic"
        return f"with the class shares {shares}, as {of} have them, {alike}"
    within = f", each within {declared.within}" if declared.within else ""
    return f"with the class shares {listed_text(list(map(str, declared.shares)))}{within}, {alike}"


def departure_text(of: Departure, class_names: Sequence[str]) -> str:
    """Return how traffic has left the class shares that a certificate is for.

    >>> departure_text(Departure(1, 600, 0.25, (0.2, 0.301), (0.4, 0.5)), ("a", "b"))
    "of 600 points, 0.250 are predicted 'b' (0.200 to 0.301), and with these shares 0.400 to 0.500 would be"
    """
    (low, high), (least, most) = of.interval, of.allowed
    return (
        f"of {of.points:,} points, {of.seen:.3f} are predicted {class_names[of.predicted]!r} ({low:.3f} to "
        f"{high:.3f}), and with these shares {least:.3f} to {most:.3f} would be"
    )


def outcome_text(certificate: Certificate, class_names: Sequence[str], *, has_average: bool = False) -> str:
    """Return what is certified; otherwise that nothing is in use, why, and how many labels would do."""
    confidence = certificate.confidence
    if certificate.policy is not None:
        share = share_text(certificate.admitted / certificate.points)
        return (
            f"{certified_text(certificate)} The policy admits {share} of the {certificate.points:,} points of "
            f"{evidence_text(certificate)}."
        )
    if certificate.set_aside is not None:
        return set_aside_text(certificate, certificate.set_aside, class_names)
    if certificate.is_withdrawn:
        return "What was certified is withdrawn, so everything is rejected."
    if certificate.standing is not None:
        return (
            f"Not certified yet: no threshold has passed at confidence {confidence} for {kinds_text(certificate)}, so "
            "everything is rejected."
        )
    follows = "so the average promise takes its place" if has_average else "so everything is rejected"
    said = f"Not certified: no policy passed at confidence {confidence} for {kinds_text(certificate)}, {follows}. "
    return f"{said}At the rates seen, {_needed_text(certificate, certificate.documents_needed)}."


def set_aside_text(certificate: Certificate, aside: SetAside, class_names: Sequence[str]) -> str:
    """Return what a policy that is not in use would promise and admit, and why another promise takes its place."""
    tested = [class_text(result, class_names) for result in aside.classes if result.p_value is not None]
    certified, softmax = (share_text(of / certificate.points) for of in (aside.admitted, aside.by_softmax))
    return (
        f"Certified and not in use: a policy that passed at confidence {certificate.confidence} for "
        f"{listed_text(tested)} admits {certified} of the {certificate.points:,} points of "
        f"{evidence_text(certificate)}, less than the softmax at 1 - alpha, which promises nothing and admits "
        f"{softmax}. So the average promise, which admits more, takes its place."
    )


def _aside(certificate: Certificate) -> tuple[ClassResult, ...]:
    return () if certificate.set_aside is None else certificate.set_aside.classes


def unpromised_text(certificate: Certificate, class_names: Sequence[str]) -> str:
    """Return which classes nothing is promised for although the strongest promise was asked for, and what it takes."""
    listed = [class_text(one, class_names).removeprefix("true ") for one in certificate.unpromised]
    said = f"Nothing is promised for true classes: {listed_text(listed)}."
    passed = [chain.last_passed for chain in certificate.chains if chain.covers_true_classes]
    admitted = max((step.admitted for step in passed if step is not None), default=None)
    if admitted is None:
        closest = certificate.closest_for_unpromised
        most = class_text(max(closest, key=lambda one: one.documents_needed or math.inf), class_names)
        needed = _needed_text(certificate, certificate.needed_for_unpromised)
        return f"{said} All classes of both kinds must pass together: at the rates seen, {needed}, because of {most}."
    # The rule of `certify_strongest` has no other reason.
    why = "half as much" if admitted < LEAST_PART * certificate.admitted else "the softmax at 1 - alpha"
    return (
        f"{said} A policy for them and for every predicted class passed too, and admits "
        f"{share_text(admitted / certificate.points)}: less than {why}, so it is not in use."
    )


def lacking_texts(certificate: Certificate, class_names: Sequence[str]) -> tuple[str, ...]:
    """Return what a policy leaves without a promise and why, a sentence each; none if everything has one."""
    lacking = [one for one in certificate.lacking if one.kind in certificate.kinds]
    never = [one for one in lacking if (one.kind, one.number) not in certificate.lost]
    names = [class_text(one, class_names) for one in lacking if one not in never]
    return (
        *((f"Never admitted, since what was certified is withdrawn: {listed_text(names)}.",) if names else ()),
        *((_never_text(certificate, never, class_names),) if never else ()),
        *((unpromised_text(certificate, class_names),) if certificate.unpromised else ()),
    )


def _never_text(certificate: Certificate, never: Sequence[ClassResult], class_names: Sequence[str]) -> str:
    """Which classes and groups are never admitted. What those of a chain take is said with it."""
    said = "Never admitted, since no threshold passed"
    names = [class_text(one, class_names) for one in never]
    if certificate.standing is not None:
        return f"{said}: {listed_text(names)}."
    needed = [labels_needed(certificate, one) for one in never]
    texts = [labels_needed_text(number, known=certificate.points) for number in needed]
    listed = listed_text([f"{name} ({text})" for name, text in zip(names, texts, strict=True)])
    there = f"there are {certificate.points:,} in {evidence_text(certificate)}"
    more = any(number is not None and number > certificate.points for number in needed)
    return f"{said}: {listed}{f', at the rates seen; {there}' if more else ''}."


def labels_needed(certificate: Certificate, result: ClassResult) -> int | None:
    """Return the labels with which a class is likely to pass; None if no number would do."""
    needed = result.documents_needed
    return None if needed is None or needed > TOO_MANY else certificate.points_in(needed)


def evidence_text(certificate: Certificate) -> str:
    """Return which splits a certificate was tested on."""
    if certificate.standing is not None:
        return "the evidence"
    return "mc and vp" if certificate.proposing else "vp"


def _needed_text(certificate: Certificate, needed: int | None) -> str:
    """Whether some documents of evidence would do, as the rest of a sentence; None: no number would."""
    splits = evidence_text(certificate)
    if needed is None or needed > TOO_MANY:
        return "no number of labels would do"
    if needed <= certificate.documents:
        return "about as many labels as there are would do, and some more will help"
    labels = count_text(certificate.points_in(needed))
    if certificate.single_points:
        return f"it would take about {labels} labels in {splits}, where there are {certificate.points:,}"
    return (
        f"it would take about {count_text(needed)} documents in {splits}, where there are {certificate.documents:,}; "
        f"that many hold about {labels} labels"
    )


def _thresholds(certificate: Certificate, class_names: Sequence[str]) -> str:
    policy = certificate.policy
    assert policy is not None, "there is a policy"
    own = " Each group has a threshold of its own, this one or a higher one, or is never admitted."
    groups = own if policy.groups else ""
    pairs = list(zip(class_names, policy.thresholds, strict=True))
    never = [name for name, threshold in pairs if threshold is None]
    if len(pairs) > MOST_LISTED:
        if not never:
            return f"Every predicted class is admitted from some score on.{groups}"
        are = "is" if len(never) == 1 else "are"
        return f"{len(never)} of {len(pairs)} predicted classes {are} never admitted: {listed_text(never)}.{groups}"
    said = ", ".join(f"{name} {'never' if value is None else f'from {score_text(value)}'}" for name, value in pairs)
    return f"Predicted classes are admitted by {'score' if policy.bounded is Bounded.SCORE else 'p0'}: {said}.{groups}"


def _classes(certificate: Certificate, results: Sequence[ClassResult], class_names: Sequence[str]) -> TextTable:
    needed = ("labels\nneeded",) if certificate.single_points else ("documents\nneeded", "labels\nneeded")
    short = bool(certificate.lacking)

    def outcome(result: ClassResult) -> tuple[str, ...]:
        if not short:
            return ()
        if (result.kind, result.number) in certificate.lost:
            return "withdrawn", *("" for _ in needed)
        verdict = "passed" if result in _aside(certificate) else "not"
        verdict = "promised" if result in certificate.classes else verdict
        return verdict, *_needed(certificate, result)[-len(needed) :]

    rows = tuple(
        (
            class_text(result, class_names),
            ratio_text(result.admitted, certificate.points),
            ratio_text(result.right, result.admitted),
            *(("-" if result.mean_loss is None else f"{result.mean_loss:.4g}",) if certificate.loss else ()),
            "-" if result.p_value is None else share_text(result.p_value),
            *outcome(result),
        )
        for result in _shown(results)
    )
    columns = (
        "class",
        "admitted",
        "right",
        *(("mean loss",) if certificate.loss else ()),
        "p-value",
        *(("outcome", *needed) if short else ()),
    )
    return TextTable(columns, rows, query="policy_classes")


def _shown(results: Sequence[ClassResult]) -> list[ClassResult]:
    if len(results) <= MOST_CLASSES:
        return sorted(results, key=_place)
    largest = sorted(results, key=lambda result: -1 if result.p_value is None else result.p_value)
    return _shown(largest[-MOST_CLASSES:])


def _place(result: ClassResult) -> tuple[tuple[int, str], int, str]:
    return kind_place(result.kind), -1 if result.number is None else result.number, result.value or ""


def _has_enough(certificate: Certificate, result: ClassResult) -> bool:
    """Whether labels are not what a class that nothing is promised for lacks."""
    return result.documents_needed is not None and result.documents_needed <= certificate.documents


def _needed(certificate: Certificate, result: ClassResult) -> tuple[str, str]:
    """The documents and labels with which a class that falls short is likely to pass."""
    if result in (*certificate.classes, *_aside(certificate)):
        return "", ""
    if result.documents_needed is None or result.documents_needed > TOO_MANY:
        return "no number", "no number"
    if _has_enough(certificate, result):
        return "enough", "enough"
    return count_text(result.documents_needed), count_text(certificate.points_in(result.documents_needed))


def surviving_text(certificate: Certificate) -> Iterator[str]:
    """Yield a sentence on each shift that a certificate survives.

    One for class shares of traffic is for groups as they are there, which the calibration data do not show.
    """
    if ClassKind.TRUE in certificate.kinds:
        yield (
            "The promise for true classes holds whatever the shares of the classes become, as long as the inputs of "
            "each class stay as they are."
        )
    for kind in certificate.kinds if certificate.class_shares is None else ():
        if isinstance(kind, GroupKind) and kind.by_predicted:
            yield (
                f"The promise for predicted classes of each {kind.attribute} holds whatever the mix of these groups "
                "becomes, as long as each group stays as it is."
            )


def _notes(certificate: Certificate, results: Sequence[ClassResult]) -> Iterator[str]:
    if certificate.policy is not None:
        yield from surviving_text(certificate)
    yield f"admitted: of all points of {evidence_text(certificate)}; right: of these."
    if certificate.test is DocumentTest.ASYMPTOTIC:
        yield "The asymptotic test of documents of several points is valid only if there are very many of them."
    if certificate.class_shares is not None:
        weighed = "p-values" if certificate.loss is None else "p-values and mean losses"
        yield (
            f"An error of a class that traffic has more of counts for more in {weighed}; shares right are those of the "
            "calibration data."
        )
    if certificate.policy is not None and len(certificate.lacking) > len(certificate.unpromised):
        yield (
            "not: nothing is promised for this class or group, which is never admitted; shown is the threshold that "
            "came closest, or nothing if the data that propose gave it too little chance to be tested, and how many "
            "labels it would take."
        )
    if certificate.unpromised:
        yield (
            "For a true class, what the policy for both kinds of classes that came closest would admit is shown, and "
            "how many labels it would take for all classes of both kinds to pass."
        )
    if any(_has_enough(certificate, one) for one in certificate.lacking):
        yield (
            "enough: labels are not what is lacking. The class had to pass together with one that did not, a policy "
            "that passed admits too little to be in use, or it failed by chance."
        )
    if certificate.capped:
        hold = "holds" if certificate.capped == 1 else "hold"
        yield (
            f"{counted(certificate.capped, 'document')} {hold} more points of a class than any that proposed; each "
            "counts for as many as the largest of those."
        )
    if len(results) > MOST_CLASSES:
        yield f"{MOST_CLASSES} of {len(results)} classes shown: those with the largest p-values."


def _steps(number: int, chain: Chain, class_names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    of_part = chain.name in {"class", "group", "class in group"}
    name = class_text(chain.steps[0].classes[0], class_names).removeprefix("predicted ") if of_part else chain.name
    places = range(len(chain.steps))
    for place in [*places[:1], *places[1:][-(MOST_STEPS - 1) :]]:
        step = chain.steps[place]
        known = [result.share for result in step.classes if result.p_value is not None and result.share is not None]
        foretold = [share for share in step.shares if share is not None]
        yield (
            f"{number} {name}",
            str(place + 1),
            share_text(min(foretold)) if foretold else "-",
            f"{step.admitted:,}",
            share_text(min(known)) if known else "-",
            share_text(step.p_value),
            share_text(chain.level),
            "passed" if step.passed else "failed",
        )
