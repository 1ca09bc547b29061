"""Results as JSON has them: the same for `--json` and over HTTP; the records of Python are read from it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from venn_admit.advice import Step
from venn_admit.core.calibrators.arguments import arguments_for, asked_json
from venn_admit.core.method_names import VENN_ADMIT
from venn_admit_client.members import as_json
from venn_admit_client.records.data import Registered

if TYPE_CHECKING:  # most of these take long to import, and a shell that shows one result needs few of them
    from sqlalchemy import Row

    from venn_admit.core.calibrators.certified.certificate import Certificate
    from venn_admit.core.evaluation.category import Bounds, CategoryShares
    from venn_admit.core.types import IntArray
    from venn_admit.flows.calibration.calibrate import Calibrated
    from venn_admit.flows.calibration.generations import Switch
    from venn_admit.flows.calibration.in_use import FarLess, Used
    from venn_admit.flows.calibration.recalibrate import RecalibrationStep
    from venn_admit.flows.data.catalogue import Listed, ListedCalibrations, Shown
    from venn_admit.flows.data.settings import ClassifierSettings
    from venn_admit.flows.decisions.listing import ShownDecision
    from venn_admit.flows.decisions.replay import Replayed
    from venn_admit.flows.decisions.score_one import Near, PointDecision
    from venn_admit.flows.jobs.listing import ShownJob
    from venn_admit.methods.method import AppliedPolicy
    from venn_admit.store.calibrations.calibrators import Calibrator
    from venn_admit.store.exemplars.classifiers import Classifier
    from venn_admit.store.work.recalibrations import RecalibrationRequest
    from venn_admit_client.records.calibrations import Weaker, Withheld


def arguments_of(step: Step) -> dict[str, Any]:
    """Return the arguments of a step that is advised, by the names that all shells have for them."""
    given = dict(step.arguments)
    if "settings" in given:
        given |= arguments_for(given.pop("settings"), given.pop("neighbour_count"))
    return given


def rows_json(rows: "Sequence[Row[Any]]") -> list[dict[str, Any]]:
    """Return stored rows."""
    return [as_json(row._mapping) for row in rows]


def job_json(found: "ShownJob") -> dict[str, Any]:
    """Return a job, its progress, and its chunks if they were asked for."""
    return {
        **as_json(found.summary._mapping),
        "chunk_states": rows_json(found.states),
        "chunk_list": rows_json(found.chunks),
    }


def registered(classifier: "Classifier") -> Registered:
    """Return how a classifier was registered."""
    knn = classifier.knn
    return Registered(
        name=classifier.name,
        classes=classifier.class_names,
        dimension=None if knn is None else knn.dimension,
        neighbours=classifier.neighbours,
        generation=classifier.generation,
        is_current=classifier.is_current,
        extractor=classifier.extractor,
    )


def created_json(created: "Classifier") -> dict[str, Any]:
    """Return a classifier, or a generation, that was registered."""
    return {**as_json(registered(created)), "seed": created.seed}


def listed_json(one: "Listed") -> dict[str, Any]:
    """Return a classifier at a glance."""
    return {
        **as_json(registered(one.classifier)),
        "created_at": one.classifier.created_at.isoformat(),
        "exemplars": as_json(one.counts.exemplars),
        "labelled": as_json(one.counts.labelled),
        "in_use": None if one.in_use is None else setting_json(one.in_use),
        "running_jobs": one.counts.running_jobs,
    }


def generations_json(found: "Sequence[Listed]") -> dict[str, Any]:
    """Return the generations of a classifier."""
    return {"classifier": found[0].classifier.shared_name, "generations": [listed_json(one) for one in found]}


def switch_json(done: "Switch") -> dict[str, Any]:
    """Return what a classifier's name stood for and stands for."""
    return {
        "classifier": done.after.classifier.shared_name,
        "before": listed_json(done.before),
        "after": listed_json(done.after),
        "changes": done.changes,
        "is_made": done.is_made,
        "never_admitted": list(done.never_admitted),
    }


def classifier_json(found: "Shown") -> dict[str, Any]:
    """Return a classifier in detail."""
    from venn_admit.core.split_names import Split

    classifier, holdings = found.classifier, found.holdings
    return {
        **created_json(classifier),
        "created_at": classifier.created_at.isoformat(),
        "knn_share": float(classifier.knn_share),
        "mc_share": float(classifier.mc_share),
        "data": {
            str(split): {
                "exemplars": sum(holdings.labels[split]) + holdings.unlabelled[split],
                "labels": holdings.labels[split],
                "shares": holdings.shares(split),
                "unlabelled": holdings.unlabelled[split],
                "documents": holdings.documents[split],
            }
            for split in Split
        },
        "held_out_accuracy": {
            "points": holdings.accuracy.points,
            "network": holdings.accuracy.network,
            "knn_points": holdings.accuracy.knn_points,
            "knn": holdings.accuracy.knn,
        },
        "training_waiting": found.waiting,
        "parameters": None if found.parameters is None else as_json(found.parameters._mapping),
        "calibration": next((setting.calibration_id for setting in found.settings if setting.is_in_use), None),
        "settings": [setting_json(setting) for setting in found.settings],
        "jobs": rows_json(found.jobs),
        "decisions": rows_json(found.decisions),
        "outcomes": {"admitted" if reason is None else reason: rows for reason, rows in found.outcomes.items()},
    }


def calibrations_json(name: str, found: "ListedCalibrations") -> dict[str, Any]:
    """Return the settings of a classifier, and its calibrations."""
    return {
        "classifier": name,
        "settings": [setting_json(setting) for setting in found.settings],
        "calibrations": rows_json(found.calibrations),
        "uses": [as_json(one) for one in found.uses],
        "withheld": rows_json(found.withheld),
        "certificates": [as_json(one) for one in found.looks],
    }


def standing_json(setting: "Calibrator") -> dict[str, Any]:
    """Return a setting without its calibrations, which change by themselves, as do the thresholds of a policy."""
    return {
        "setting": setting.id,
        **asked_json(setting.settings),
        "q_bins": list(setting.settings.q_bins),
        "thresholds": None if setting.settings.has_policy else _thresholds(setting.settings.thresholds),
        "is_in_use": setting.is_in_use,
        "retired_at": None if setting.retired_at is None else setting.retired_at.isoformat(),
    }


def setting_json(setting: "Calibrator") -> dict[str, Any]:
    """Return a setting with its calibration."""
    return {
        **standing_json(setting),
        "thresholds": _thresholds(setting.thresholds),
        "calibration": setting.calibration_id,
        "calibrated_at": setting.calibrated_at.isoformat(),
        "mc": setting.mc_count,
        "vp": setting.vp_count,
        "due_for": setting.due_for,
        "due_error": setting.due_error,
        "is_certified": setting.is_certified,
        "promised": setting.promised,
        "chain": None if setting.standing is None else _chain(setting.standing, setting),
    }


def _chain(certificate: "Certificate", setting: "Calibrator") -> dict[str, Any]:
    from venn_admit.report.standing import chain_payload  # which brings NumPy

    return chain_payload(certificate, has_ended=setting.chain_has_ended, later=setting.later)


def settings_json(found: "ClassifierSettings") -> dict[str, Any]:
    """Return the settings of a classifier without their calibrations."""
    return {"classifier": found.classifier.name, "settings": [standing_json(setting) for setting in found.settings]}


def _thresholds(thresholds: Sequence[object]) -> list[str | None]:
    return [None if one is None else str(one) for one in thresholds]


def calibrated_json(done: "Calibrated") -> dict[str, Any]:
    """Return what either method says of a calibration that it made."""
    return {
        "calibration": done.calibration_id if done.is_stored else None,
        **asked_json(done.method_settings),
        "thresholds": _thresholds(done.method_settings.thresholds),
        "q_bins": list(done.method_settings.q_bins),
        **(_by_admit(done) if done.method_settings.method == VENN_ADMIT else _by_abers(done)),
        "mc": done.mc_count,
        "vp": done.vp_count,
        "rows_closed": done.changed.closed,
        "rows_opened": done.changed.opened,
        "is_stored": done.is_stored,
        "withheld": _far_less(done, is_withheld=True),
        "weaker": _far_less(done, is_withheld=False),
    }


def far_less_of(found: "FarLess") -> "Withheld | Weaker":
    """Return what a calibration admits that admits far less than the one in use before."""
    from venn_admit_client.records.calibrations import Weaker, Withheld

    of = Withheld if found.is_withheld else Weaker
    return of(found.before, found.strength.points, found.strength.share, found.strength.share_in_use)


def _far_less(done: "Calibrated | None", *, is_withheld: bool) -> dict[str, Any] | None:
    found = None if done is None else done.far_less
    return None if found is None or found.is_withheld != is_withheld else as_json(far_less_of(found))


def withheld_in(row: "Row[Any]") -> "Withheld":
    """Return the same of a row that is stored of it."""
    from venn_admit_client.records.calibrations import Withheld

    return Withheld(row.in_use, row.points, row.share, row.share_in_use)


def in_use_json(name: str, done: "Used") -> dict[str, Any]:
    """Return what a classifier decides with from now on."""
    from venn_admit_client.records.calibrations import PutInUse

    return as_json(PutInUse(name, done.calibration_id, done.before, done.is_changed, done.admits_nothing))


def _by_admit(done: "Calibrated") -> dict[str, Any]:
    made = done.by_admit
    return {
        "s_hat": made.radius.s_hat,
        "omega": made.radius.omega,
        "vp_in_usable_bands": made.usable_count,
        "vp_singletons": made.singleton_count,
        "largest_usable_kappa": made.largest_kappa,
    }


def _by_abers(done: "Calibrated") -> dict[str, Any]:
    from venn_admit.methods.venn_abers.make import MadeByAbers
    from venn_admit.report.calibration.cells.average import average_payload
    from venn_admit.report.calibration.cells.certified import certificate_payload

    made = done.made
    assert isinstance(made, MadeByAbers), "there are two methods"
    choice, certificate = made.choice, made.certificate
    return {
        "chosen_score": str(choice.score),
        "network_share": choice.network_share,
        "reliability_share": choice.reliability_share,
        "standard_error": choice.standard_error,
        "steps": len(made.steps.cell),
        "certificate": None if certificate is None else certificate_payload(certificate, done.classifier.class_names),
        "average": None if made.average is None else average_payload(made.average, done.classifier.class_names),
    }


def recalibrated_json(request: "RecalibrationRequest", step: "RecalibrationStep | None") -> dict[str, Any]:
    """Return what became of a recalibration that was due; step: None if another process made it."""
    done = None if step is None else step.calibrated
    return {
        "classifier": request.classifier.name,
        **asked_json(request.settings),
        "reason": request.reason,
        "calibration": None if done is None else done.calibration_id,
        "mc": None if done is None else done.mc_count,
        "vp": None if done is None else done.vp_count,
        "rows_closed": None if done is None else done.changed.closed,
        "rows_opened": None if done is None else done.changed.opened,
        "error": None if step is None else step.error,
        "is_certified": None if done is None else done.is_certified,
        "withheld": _far_less(done, is_withheld=True),
    }


def decided_json(decided: "PointDecision") -> dict[str, Any]:
    """Return what was decided on a point, and why."""
    class_names = decided.classifier.class_names
    return {
        "external_id": decided.point.external_id,
        "calibration": decided.calibration_id,
        "class_names": list(class_names),
        **decided.fields,
        **_named_classes(decided.fields["predicted"], decided.fields["decision"], class_names),
        **_category(decided.fields, decided.category_counts, decided.bounds),
        "policy": _policy(decided.policy),
        "neighbours": _neighbours(decided.near, class_names),
    }


def replayed_json(replayed: "Replayed") -> dict[str, Any]:
    """Return a stored decision, what it rests on, and in what it differs when it is computed again."""
    return {
        **_stored_decision(replayed),
        "stored": replayed.stored,
        "computed": replayed.computed,
        "differing": list(replayed.differing),
        "is_rounding": replayed.is_rounding,
        "forgotten": asdict(replayed.forgotten),
        "not_recomputed": list(replayed.not_recomputed),
        **_category(replayed.stored, replayed.category_counts, replayed.bounds),
        "policy": _policy(replayed.policy),
        "basis": None if replayed.basis is None else asdict(replayed.basis),
    }


def listed_decision_json(row: "Row[Any]", class_names: Sequence[str]) -> dict[str, Any]:
    """Return a stored decision at a glance."""
    return {**as_json(row._mapping), **_named_classes(row.predicted, row.decided, class_names)}


def shown_decision_json(found: "ShownDecision") -> dict[str, Any]:
    """Return a stored decision with its evidence; what the other method has is left out."""
    from venn_admit.core.evidence import decision_fields

    row = found.row
    return {
        **_stored_decision(found),
        "weighted": row.weighted,
        "require_full_match": row.require_full_match,
        "created_at": row.created_at.isoformat(),
        **decision_fields(row._asdict()),
    }


def _stored_decision(found: "ShownDecision") -> dict[str, Any]:
    """Return what a stored decision is about, and what it is shown with."""
    row, class_names = found.row, found.classifier.class_names
    return {
        "decision_id": row.id,
        "classifier": found.classifier.name,
        "external_id": row.external_id,
        "calibration": row.calibration_id,
        "class_names": list(class_names),
        "label": row.label,
        "label_class": _name(row.label, class_names),
        **_named_classes(row.predicted, row.decision, class_names),
        "attributes": found.attributes,
        "neighbours": None if found.near is None else _neighbours(found.near, class_names),
    }


def _neighbours(near: "Sequence[Near]", class_names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            # Spelt out, since an answer may have many of them.
            "external_id": neighbour.external_id,
            "network_predicted": neighbour.network_predicted,
            "attributes": neighbour.attributes,
            "label": label,
            "distance": distance,
            "label_class": class_names[label],
            "network_class": class_names[neighbour.network_predicted],
        }
        for neighbour, label, distance in near
    ]


def _named_classes(predicted: int, decided: int | None, class_names: Sequence[str]) -> Mapping[str, str | None]:
    return {"predicted_class": class_names[predicted], "decided_class": _name(decided, class_names)}


def _category(decided: Mapping[str, Any], counts: "IntArray | None", bounds: "Bounds | None") -> dict[str, Any]:
    from venn_admit.core.evaluation.category import category_shares

    known = None if counts is None else counts.tolist()
    shares = category_shares(decided, known, bounds)
    return {"category_counts": known, "category": None if shares is None else _members(shares)}


def _name(number: int | None, class_names: Sequence[str]) -> str | None:
    return None if number is None else class_names[number]


def _policy(policy: "AppliedPolicy | None") -> dict[str, Any] | None:
    return None if policy is None else _members(policy)


def _members(record: "CategoryShares | AppliedPolicy") -> dict[str, Any]:
    """Return the members of a record as they are, of which `asdict` would make copies for every point."""
    return {name: getattr(record, name) for name in record.__slots__}
