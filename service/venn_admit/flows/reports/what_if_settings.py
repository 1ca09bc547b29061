"""What the setting in use would admit with one part of it varied: by cross-fitting on mc, and nothing is stored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from operator import attrgetter
from typing import Any

from venn_admit.core.calibrators.arguments import value_text
from venn_admit.core.calibrators.settings import (
    DECLARED,
    CalibratorSettings,
    MethodSettings,
    ScoreKind,
    VennAbersSettings,
    check_alpha,
    check_q_bins,
    check_settings,
    check_thresholds,
)
from venn_admit.core.comparison.candidates import cross_fitted_settings
from venn_admit.core.documents import documents_of
from venn_admit.core.evaluation.measures import measure_admission
from venn_admit.core.split_names import Split
from venn_admit.errors import InvalidInputError
from venn_admit.flows.calibration.calibrate import require_classes
from venn_admit.flows.calibration.compare import cross_fitting, parameters_of_mc, read_mc
from venn_admit.methods.registry import settled_weights
from venn_admit.methods.venn_abers.make import require_model
from venn_admit.report.what_if.settings import SettingsTried, SettingTried
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace

MOST_VALUES = 50
"""How many values can be tried at once; each of alpha, delta and the bins takes a pass over the folds of its own."""

Value = Decimal | float | int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """How a setting that can be varied is taken from settings, put into them, and shown, given K (None without)."""

    of: Callable[[Any], Any]
    varied: Callable[[Any, Any], Any]
    text: Callable[[Any, int | None], str]


def _plain_part(name: str) -> _Part:
    """A setting that is replaced alone."""
    return _Part(
        attrgetter(name), lambda one, value: replace(one, **{name: value}), lambda value, _: value_text(name, value)
    )


def _with_alpha(settings: Any, alpha: Decimal) -> Any:
    """With another alpha. A threshold of 1 - alpha follows it; another one stays, unless it would be too low."""
    check_alpha(alpha)
    least = 1 - alpha
    thresholds = tuple(least if one == 1 - settings.alpha else max(one, least) for one in settings.thresholds)
    return replace(settings, alpha=alpha, thresholds=thresholds)


def _common_threshold(settings: Any) -> Decimal | None:
    """The threshold that all classes have; None if they differ."""
    return settings.thresholds[0] if len(set(settings.thresholds)) == 1 else None


def _bins_text(edges: tuple[int, ...], neighbour_count: int | None) -> str:
    if len(edges) == 1 or neighbour_count is None:
        return "one bin"
    return "every q" if len(edges) == neighbour_count + 1 else ",".join(map(str, edges))


PARTS: dict[str, _Part] = {
    "alpha": replace(_plain_part("alpha"), varied=_with_alpha),
    "kappa": _plain_part("kappa"),
    "delta": _plain_part("delta"),
    "q_bins": replace(_plain_part("q_bins"), text=_bins_text),
    "thresholds": _Part(
        _common_threshold,
        lambda one, value: replace(one, thresholds=(value,) * len(one.thresholds)),
        lambda value, _: "as they are" if value is None else str(value),
    ),
}
"""What can be varied, by its name as an argument of a calibration."""


def what_if_settings(workspace: Workspace, name: str, varied: str, values: Sequence[Value]) -> SettingsTried:
    """Return what the setting of the calibration in use would admit of mc, and how much of it is right.

    Probabilities are weighted if that is the default of the method.
    Every document of mc is judged by the other ones, and vp stays unseen, so that a value can be chosen by this.

    Args:
        varied: What is varied, one of `PARTS`.
        values: To try; a threshold is that of every class. The value in use is added.

    Raises:
        InvalidInputError: There is no such part, or a value is invalid.
        NotReadyError: There is no calibration yet, data are missing, or the method cannot be cross-fitted.
        OutdatedError: Points of mc have no approximation yet.
    """
    part = PARTS.get(varied)
    if part is None:
        raise InvalidInputError(f"expected one of {', '.join(PARTS)} to be varied, got {varied!r}")
    if not 0 < len(values) <= MOST_VALUES:
        raise InvalidInputError(f"{varied}: expected 1 to {MOST_VALUES} values to try, got {len(values)}")
    with consistent_view(workspace.engine) as connection:
        classifier = classifiers.by_name(connection, name)
        if varied == "q_bins":
            classifiers.require_vectors(classifier, "more than one bin of q")
        calibration = calibrations.latest(connection, classifier)
        current: MethodSettings = calibration.method_settings
        if varied not in DECLARED[calibration.method]:
            raise InvalidInputError(f"{varied}: the method {calibration.method} has no such setting")
        if calibration.is_asked_for_certificate:
            raise InvalidInputError(
                f"calibration {calibration.id} asks for a certificate, whose policies are tested on all of mc and vp, "
                "which leaves nothing to try other settings on: compare the methods, which foretells what the default "
                "would certify, or calibrate under another setting by a dry run, which shows what that certifies"
            )
        if calibration.has_policy and varied == "thresholds":
            raise InvalidInputError(
                f"thresholds: the policy of calibration {calibration.id} sets them itself; vary another part, "
                "such as alpha"
            )
        asked = list(dict.fromkeys([*values, part.of(current)]))
        if varied != "q_bins":
            asked.sort(key=lambda value: (value is None, value))
        settings = [current if one == part.of(current) else _checked(part, current, one, classifier) for one in asked]
        parameters = parameters_of_mc(connection, classifier)
        require_classes(connection, classifier, [Split.MC])
        if parameters is not None and any(map(_takes_reliability, settings)):
            require_model(classifier, parameters)
        mc, localizer = read_mc(workspace, connection, classifier, parameters)
    given = cross_fitting(workspace, classifier, mc, parameters, localizer)
    judged, found = given.judged, cross_fitted_settings(given, settings)
    documents, label = documents_of([mc.keys[row] for row in judged]), mc.label[judged]
    return SettingsTried(
        classifier=classifier.name,
        class_names=classifier.class_names,
        calibration=calibration.id,
        method=calibration.method,
        varied=varied,
        is_weighted=settled_weights(calibration, None),
        point_count=len(mc.keys),
        judged_count=len(judged),
        document_count=len(judged) if documents is None else documents.count,
        tried=tuple(
            SettingTried(
                value=part.text(value, classifier.neighbours),
                settings=one.settings,
                admission=measure_admission(label, one.predicted, one.admitted, classifier.class_count, documents),
                is_current=value == part.of(current),
            )
            for value, one in zip(asked, found, strict=True)
        ),
    )


def _takes_reliability(settings: MethodSettings) -> bool:
    """Whether the score may be the reliability score."""
    return isinstance(settings, VennAbersSettings) and settings.score is not ScoreKind.NETWORK


def _checked(part: _Part, current: MethodSettings, value: Value, classifier: Classifier) -> MethodSettings:
    settings: MethodSettings = part.varied(current, value)
    if isinstance(settings, CalibratorSettings):
        check_settings(settings, class_count=classifier.class_count, neighbour_count=classifier.neighbour_count)
    else:
        if classifier.knn is not None:
            check_q_bins(settings.q_bins, classifier.knn.neighbour_count)
        check_thresholds(settings.thresholds, settings.alpha, classifier.class_count)
    return settings
