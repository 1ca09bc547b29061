"""What is said of a cascade, for terminals and pages: a table of its stages, and sentences on the promise."""

from collections.abc import Sequence

from venn_admit.report.evaluation.wording import interval_text
from venn_admit.report.wording import listed_text, share_text
from venn_admit_client.records.cascades import CascadeClass, CascadeReport, WithheldCascade, cost_text
from venn_admit_client.records.certificates import labels_needed_text

CASCADE_COLUMNS = ("cascade", "stages", "certificate", "served", "cost a point", "last stage alone")
STAGE_COLUMNS = ("stage", "classifier", "class", "reached", "served", "right of served", "from score", "cost a point")


def cascade_rows(found: Sequence[CascadeReport]) -> list[tuple[str, ...]]:
    """Return the rows of the table of cascades, whose columns are `CASCADE_COLUMNS`."""
    return [
        (
            one.cascade,
            ", ".join(stage.classifier or "person" for stage in one.stages),
            "" if one.number is None else str(one.number) if one.is_certified else f"{one.number}, nothing certified",
            "" if not one.points else share_text((one.served or 0) / one.points),
            "" if one.cost is None else cost_text(one.cost),
            cost_text(one.cost_of_last),
        )
        for one in found
    ]


def stage_rows(found: CascadeReport) -> list[Sequence[str | int | None]]:
    """Return the rows of the table of stages: each stage and, below it, the classes that it serves; then all stages.

    The columns are `STAGE_COLUMNS`: points reach a stage, and of those that it serves, a share is right.
    """
    rows: list[Sequence[str | int | None]] = []
    for stage in found.stages:
        served, right = stage.served, sum(one.right for one in stage.classes)
        share = _share(right, served) if stage.classifier is not None and served is not None else ""
        name = stage.classifier or "person"
        rows.append((str(stage.place), name, "", stage.reached, served, share, "", cost_text(stage.cost)))
        rows += [("", "", one.label, None, one.served, shown_share(one), _threshold(one), "") for one in stage.classes]
    if found.number is not None and found.cost is not None:
        right = sum(one.right for stage in found.stages for one in stage.classes)
        last = f"{cost_text(found.cost)}; last alone {cost_text(found.cost_of_last)}"
        rows.append(("", "classifiers", "", found.points, found.served, _share(right, found.served or 0), "", last))
        rows += [
            ("", "", f"{one.label} ({one.kind})", None, one.served, shown_share(one), "", "") for one in found.promised
        ]
    return rows


def shown_share(one: CascadeClass) -> str:
    """Return the share right of a class, with its interval if there is one."""
    if one.share is None:
        return ""
    interval = "" if one.low is None or one.high is None else f" {interval_text((one.low, one.high))}"
    return share_text(one.share) + interval


def _share(right: int, served: int) -> str:
    return share_text(right / served) if served else ""


def _threshold(one: CascadeClass) -> str:
    return "never" if one.threshold is None else f"{one.threshold:.4f}"


def promise_sentence(found: CascadeReport) -> list[str]:
    """Return what is promised of a cascade, what nothing is promised for, and what looking again costs."""
    if found.number is None or found.alpha is None or found.confidence is None:
        return ["It is not certified yet, and serves nothing until then."]
    kinds = " and of each ".join(f"{kind} class" for kind in found.kinds)
    promised = f"at least {1 - found.alpha:f} of what is served of each {kinds}"
    if not found.is_certified:
        lines = [
            f"Nothing is certified, so every point is left to {'a person' if _has_person(found) else 'you'}: "
            f"that {promised} is right could not be shown. {_needed_text(found)}",
            "The last rows of the table show what the policy that came closest would serve.",
        ]
    else:
        of_documents = "" if found.documents == found.points else f" of {found.documents:,} documents"
        lines = [
            f"With confidence {found.confidence:f}, {promised} by all classifiers together is right, for data like the "
            f"labelled ones. What a person answers is not part of the promise. Certificate {found.number}, on "
            f"{found.points:,} points{of_documents}."
        ]
        tested = {one.label for one in found.promised if one.kind == "predicted"}
        never = [name for name in found.classes if name not in tested] if "predicted" in found.kinds else []
        if never:
            lines.append(f"Never served, since nothing could be promised for it: {', '.join(never)}.")
    if found.looks > 1:
        lines.append(
            f"{found.looks} certificates of this cascade looked at labels; that all of them hold has confidence "
            f"{found.joint_confidence:f} at least."
        )
    if found.withheld is not None:
        lines.append(_withheld_text(found.withheld, (found.served or 0) / (found.points or 1)))
    return lines


def _withheld_text(found: WithheldCascade, in_use: float) -> str:
    """Why a later certificate is not in use; in_use: the share of its points that the one in use serves."""
    said = f"Certificate {found.number} came later and is not in use, because"
    if not found.is_certified:
        return f"{said} nothing is certified by it. {_needed_text(found)}"
    share = share_text(found.served / found.points)
    return f"{said} it serves {share} of its points and the one in use {share_text(in_use)}."


def _needed_text(found: CascadeReport | WithheldCascade) -> str:
    """What it would take, as a sentence, and which classes are the reason."""
    if found.labels_needed is None:
        hopeless = [one for one in found.promised if one.labels_needed is None]
        # One that is never served is no obstacle to others.
        named = [f"{one.kind} {one.label}" for one in hopeless if one.served] or [
            f"{one.kind} {one.label}" for one in hopeless
        ]
        return f"No number of labels would do, at the rates seen of {listed_text(named)}."
    if found.labels_needed <= (found.points or 0):
        return "At the rates seen, about as many labels as there are would do, and some more will help."
    most = max(found.promised, key=lambda one: one.labels_needed or 0)
    return (
        f"All classes must pass together: {labels_needed_text(found.labels_needed)} of evidence would do instead "
        f"of {found.points:,}, because of {most.kind} {most.label}."
    )


def _has_person(found: CascadeReport) -> bool:
    return found.stages[-1].classifier is None
