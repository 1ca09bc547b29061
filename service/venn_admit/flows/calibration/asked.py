"""The settings that a user of a shell asks for, of whichever method of calibration, and how to ask for them."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.venn_abers.settings import (
    AUTO,
    ScoreKind,
    VennAbersSettings,
    make_venn_abers_settings,
)
from venn_admit.errors import InvalidInputError
from venn_admit.flows.calibration.calibrate import SettingsOf
from venn_admit.store.calibrations.setting_forms import FORMS, VENN_ABERS, VENN_ADMIT, MethodSettings
from venn_admit.store.exemplars.classifiers import Classifier, require_vectors


def settings_asked_for(
    method: str,
    *,
    alpha: Decimal,
    thresholds: Sequence[Decimal] | None,
    q_bins: Sequence[int] | None,
    delta: float | None,
    kappa: int | None,
    score: str | None,
    default_kappa: int | None = None,
    certify: Sequence[str] | None = None,
    confidence: Decimal | None = None,
    test: str | None = None,
) -> SettingsOf:
    """Return what makes the settings for a classifier.

    Args:
        method: `venn-admit` or `venn-abers`.
        alpha: Error level.
        thresholds: The thresholds of each predicted class; None for the default.
        q_bins: Lower edges of the bins of q; None for the method's default.
        delta: Venn-ADMIT only; None for the default.
        kappa: Venn-ADMIT only; None for `default_kappa`.
        score: Venn-Abers only; None for the default.
        default_kappa: Kappa if none is asked for; None for the default of the settings.
        certify: Venn-Abers only: the kinds of classes that a certificate is asked for; None for none.
        confidence: The confidence of a certificate; None for the default.
        test: The test of a certificate; None for the default.

    Raises:
        InvalidInputError: There is no such method, or it has no such setting.
    """
    shared = _given(
        alpha=alpha,
        thresholds=None if thresholds is None else tuple(thresholds),
        q_bins=None if q_bins is None else tuple(q_bins),
    )
    of_bands = _given(delta=delta, kappa=default_kappa if kappa is None else kappa)
    of_cells = _given(score=score, certify=certify, confidence=confidence, test=test)
    makers: dict[str, Callable[[Classifier], MethodSettings]] = {
        VENN_ADMIT: lambda classifier: make_settings(
            classifier.class_count,
            require_vectors(classifier, "the method venn-admit").neighbour_count,
            **shared,
            **of_bands,
        ),
        VENN_ABERS: lambda classifier: _abers_settings(classifier, **shared, **of_cells),
    }
    if method not in makers:
        raise InvalidInputError(f"method: expected {' or '.join(FORMS)}, got {method!r}")
    of_others: dict[str, dict[str, object]] = {
        VENN_ADMIT: {
            "score": score,
            "certify": None if certify is None else ",".join(certify),
            "confidence": confidence,
            "test": test,
        },
        VENN_ABERS: {"delta": delta, "kappa": kappa},
    }
    for setting, value in of_others[method].items():
        if value is not None:
            (other,) = FORMS.keys() - {method}
            raise InvalidInputError(
                f"{setting}: the method {method} has no such setting, got {value}; leave it out, or ask for {other}"
            )
    return makers[method]


def arguments_for(settings: MethodSettings, neighbour_count: int | None) -> dict[str, Any]:
    """Return the arguments of `settings_asked_for` that make these settings, for the advice to calibrate under them.

    Kappa or the score is always among them, so that nothing else is chosen; others are left out if they have their
    default. Decimals stay decimals, and sequences are lists.

    Args:
        settings: The settings.
        neighbour_count: K; None if the classifier has logits only.

    Examples:
        >>> arguments_for(make_settings(2, 5, kappa=100, q_bins=(0, 1)), 5)
        {'kappa': 100, 'q_bins': [0, 1]}
    """
    class_count, alpha = len(settings.thresholds), settings.alpha
    default: MethodSettings
    if isinstance(settings, VennAbersSettings):
        default = make_venn_abers_settings(class_count, neighbour_count, alpha=alpha)
    else:
        assert neighbour_count is not None, "Venn-ADMIT decides by the KNN"
        default = make_settings(class_count, neighbour_count, alpha=alpha)
    left_out = {**_arguments(default), "method": VENN_ADMIT, "alpha": make_settings(2, 1).alpha}
    return {
        name: value
        for name, value in _arguments(settings).items()
        if name in ("kappa", "score") or value != left_out[name]
    }


def _arguments(settings: MethodSettings) -> dict[str, Any]:
    """All arguments that make settings."""
    if isinstance(settings, VennAbersSettings):
        asked = settings.certification
        own: dict[str, Any] = {
            "method": VENN_ABERS,
            "score": AUTO if settings.score is None else str(settings.score),
            "certify": None if asked is None else list(map(str, asked.kinds)),
            "confidence": None if asked is None else asked.confidence,
            "test": None if asked is None else str(asked.test),
        }
    else:
        own = {"method": VENN_ADMIT, "kappa": settings.kappa, "delta": settings.delta}
    return {
        **own,
        "q_bins": list(settings.q_bins),
        "alpha": settings.alpha,
        "thresholds": list(settings.thresholds),
    }


def _abers_settings(classifier: Classifier, **asked: Any) -> VennAbersSettings:
    """Return the settings; with logits only, auto stands for the network's score, as there is no other."""
    if classifier.knn is None:
        if asked.get("score") == ScoreKind.RELIABILITY:
            require_vectors(classifier, "the reliability score")
        if len(asked.get("q_bins", ())) > 1:
            require_vectors(classifier, "more than one bin of q")
    neighbour_count = None if classifier.knn is None else classifier.knn.neighbour_count
    return make_venn_abers_settings(classifier.class_count, neighbour_count, **asked)


def _given(**settings: Any) -> dict[str, Any]:
    """The settings that were asked for; the others have their defaults where settings are made."""
    return {name: value for name, value in settings.items() if value is not None}
