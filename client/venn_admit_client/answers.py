"""Answers of the service as results."""

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from .members import from_json
from .records.calibrations import Calibration, Weaker, Withheld
from .records.certificates import Certificate, CertifiedClass, SetAside
from .records.data import Ingestion, Labelling
from .records.decisions import Decision
from .records.reports import Alarm, Monitor

Stored = TypeVar("Stored", Ingestion, Labelling)
Certified = TypeVar("Certified", bound=Certificate)
Monitored = TypeVar("Monitored", bound=Monitor)

_NO_EVIDENCE = ("external_id", "neighbours", "class_names", "predicted_class", "decided_class", "calibration")


def stored_of(of: type[Stored], answers: Iterable[Mapping[str, Any]]) -> Stored:
    """Return what became of exemplars or labels that were sent in several requests."""
    total: dict[str, Any] = {}
    for answer in answers:
        for name, value in answer.items():
            if name == "recalibrations_due":
                total[name] = max(value, total.get(name, 0))
            elif name in ("training_waiting", "ignored"):  # the last says what all have
                total[name] = value
            elif isinstance(value, Mapping):
                total[name] = Counter(total.get(name, {})) + Counter(value)
            else:
                total[name] = value + total.get(name, 0)
    return from_json(of, total | {name: dict(value) for name, value in total.items() if isinstance(value, Counter)})


def calibration_of(made: Mapping[str, Any]) -> Calibration:
    """Return a calibration from what making it answers."""
    usable, singletons = made.get("vp_in_usable_bands"), made.get("vp_singletons")
    document, average, thresholds = made.get("certificate"), made.get("average"), made["thresholds"]
    if average is not None:
        thresholds = average["thresholds"]
    elif document is not None:
        thresholds = document["thresholds"] or [None] * len(thresholds)
    return Calibration(
        id=made["calibration"],
        method=made["method"],
        alpha=Decimal(made["alpha"]),
        thresholds=tuple(None if one is None else Decimal(str(one)) for one in thresholds),
        q_bins=tuple(made["q_bins"]),
        mc_points=made["mc"],
        vp_points=made["vp"],
        delta=None if made["delta"] is None else float(made["delta"]),
        kappa=made["kappa"],
        usable_share=None if usable is None else usable / made["vp"],
        singleton_share=None if singletons is None else singletons / made["vp"],
        score=made.get("chosen_score"),
        certificate=None if document is None else certificate_of(Certificate, document),
        on_average=average is not None,
        withheld=None if made.get("withheld") is None else from_json(Withheld, made["withheld"]),
        weaker=None if made.get("weaker") is None else from_json(Weaker, made["weaker"]),
    )


def certificate_of(of: type[Certified], document: Mapping[str, Any], **rest: Any) -> Certified:
    """Return a certificate.

    Args:
        of: As what.
        document: What JSON says of it.
        rest: What else that has.
    """
    thresholds = document["thresholds"]
    return of(
        is_certified=document["certified"],
        kinds=tuple(document["kinds"]),
        confidence=Decimal(document["confidence"]),
        test=document["test"],
        thresholds=None if thresholds is None else dict(zip(document["classes"], thresholds, strict=True)),
        admitted=document["share"],
        classes=tuple(
            _certified_class(document, one, is_promised=name == "promised")
            for name in ("promised", "lacking")
            for one in document[name]
        ),
        documents_needed=document["documents_needed"],
        labels_needed=document["labels_needed"],
        set_aside=_set_aside(document),
        document=document,
        **rest,
    )


def _set_aside(document: Mapping[str, Any]) -> SetAside | None:
    aside = document.get("set_aside")
    if aside is None:
        return None
    classes = tuple(_certified_class(document, one, is_promised=False) for one in aside["promised"])
    return SetAside(aside["admitted"] / document["points"], aside["by_softmax"] / document["points"], classes)


def _certified_class(document: Mapping[str, Any], found: Mapping[str, Any], *, is_promised: bool) -> CertifiedClass:
    needed = None if is_promised else found["documents_needed"]
    # A chain that has just begun has no evidence, and each document is taken for one point.
    points, documents = max(document["points"], 1), max(document["documents"], 1)
    return CertifiedClass(
        kind=found["kind"],
        name=None if found["class"] is None else document["classes"][found["class"]],
        group=found.get("group"),
        is_promised=is_promised,
        admitted=found["admitted"] / points,
        right=found["right"] / found["admitted"] if found["admitted"] else None,
        p_value=found["p_value"],
        documents_needed=needed,
        labels_needed=None if needed is None else -(-needed * points // documents),
    )


def decision_of(answer: Mapping[str, Any]) -> Decision:
    """Return a decision that was made at once."""
    evidence = {name: value for name, value in answer.items() if name not in _NO_EVIDENCE}
    return from_json(Decision, answer, evidence=evidence)


def monitor_of(of: type[Monitored], answer: Mapping[str, Any], **rest: Any) -> Monitored:
    """Return what a monitor says; of and rest as in `certificate_of`."""
    return of(
        classifier=answer["classifier"],
        alarm=answer["alarm"],
        alarms=tuple(map(alarm_of, answer["alarms"])),
        documents=answer["documents"],
        points=answer["points"],
        document=answer,
        **rest,
    )


def alarm_of(answer: Mapping[str, Any]) -> Alarm:
    """Return an alarm, or a notice, that stands."""
    # Older services say neither the kind nor a group.
    kind = "true" if "class" in answer else "predicted"
    missing = {"kind": kind, "group": None, "q": None, "class": answer.get("predicted_class")}
    return from_json(Alarm, missing | dict(answer), document=answer)
