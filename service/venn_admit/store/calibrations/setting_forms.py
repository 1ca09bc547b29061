"""The settings of each method of calibration, as the columns of a calibrator hold them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from sqlalchemy import Row

from venn_admit.core.calibrators.certified.certification import Certification
from venn_admit.core.calibrators.certified.hypothesis_tests import DocumentTest
from venn_admit.core.calibrators.certified.points import ClassKind
from venn_admit.core.calibrators.venn_abers.settings import AUTO, ScoreKind, VennAbersSettings
from venn_admit.core.types import CalibratorSettings

VENN_ADMIT = "venn-admit"
VENN_ABERS = "venn-abers"
METHOD_NAMES = {VENN_ADMIT: "Venn-ADMIT", VENN_ABERS: "Venn-Abers"}
"""The methods as sentences call them; the program is venn-admit."""

MethodSettings = CalibratorSettings | VennAbersSettings


@dataclass(frozen=True, slots=True)
class SettingForm:
    """How the settings of one method are stored.

    type: of the settings. columns: their values by column; a column of another method is absent. read: the settings in
    a row of a calibrator. canonical: a tuple whose text is the same for equal settings, however they are written.
    """

    type: type[Any]
    columns: Callable[[Any], dict[str, Any]]
    read: Callable[[Row[Any]], Any]
    canonical: Callable[[Any], tuple[Any, ...]]


def _admit_columns(settings: CalibratorSettings) -> dict[str, Any]:
    return {
        "alpha": settings.alpha,
        "delta": settings.delta,
        "kappa": settings.kappa,
        "bin_edges": list(settings.q_bins),
        "thresholds": list(settings.thresholds),
    }


def _read_admit(row: Row[Any]) -> CalibratorSettings:
    return CalibratorSettings(
        alpha=Decimal(row.alpha),
        delta=row.delta,
        kappa=row.kappa,
        q_bins=tuple(row.bin_edges),
        thresholds=tuple(row.thresholds),
    )


def _canonical_admit(settings: CalibratorSettings) -> tuple[Any, ...]:
    # Stored digests were made of this; it must not change.
    return (
        settings.alpha.normalize(),
        float(settings.delta),
        settings.kappa,
        settings.q_bins,
        tuple(threshold.normalize() for threshold in settings.thresholds),
    )


def _abers_columns(settings: VennAbersSettings) -> dict[str, Any]:
    asked = settings.certification
    return {
        "alpha": settings.alpha,
        "bin_edges": list(settings.q_bins),
        "thresholds": list(settings.thresholds),
        "score": AUTO if settings.score is None else settings.score,
        "certify": None if asked is None else list(map(str, asked.kinds)),
        "confidence": None if asked is None else asked.confidence,
        "document_test": None if asked is None else str(asked.test),
    }


def _read_abers(row: Row[Any]) -> VennAbersSettings:
    return VennAbersSettings(
        alpha=Decimal(row.alpha),
        q_bins=tuple(row.bin_edges),
        thresholds=tuple(row.thresholds),
        score=None if row.score == AUTO else ScoreKind(row.score),
        certification=None
        if row.certify is None
        else Certification(
            tuple(ClassKind(kind) for kind in row.certify), Decimal(row.confidence), DocumentTest(row.document_test)
        ),
    )


def _canonical_abers(settings: VennAbersSettings) -> tuple[Any, ...]:
    asked = settings.certification
    # Stored digests were made of this; it must not change.
    return (
        VENN_ABERS,
        settings.alpha.normalize(),
        settings.q_bins,
        tuple(threshold.normalize() for threshold in settings.thresholds),
        AUTO if settings.score is None else str(settings.score),
        *(() if asked is None else (tuple(map(str, asked.kinds)), asked.confidence.normalize(), str(asked.test))),
    )


FORMS: Mapping[str, SettingForm] = {
    VENN_ADMIT: SettingForm(CalibratorSettings, _admit_columns, _read_admit, _canonical_admit),
    VENN_ABERS: SettingForm(VennAbersSettings, _abers_columns, _read_abers, _canonical_abers),
}


def method_of(settings: MethodSettings) -> str:
    """Return the name of the method that these are settings of."""
    return next(name for name, form in FORMS.items() if isinstance(settings, form.type))


def setting_columns(settings: MethodSettings) -> dict[str, Any]:
    """Return the values of a calibrator's columns, the method and the digest included; None for other methods'."""
    method = method_of(settings)
    others = dict.fromkeys(("delta", "kappa", "score", "certify", "confidence", "document_test"))
    return {"method": method, "settings_digest": settings_digest(settings), **others, **FORMS[method].columns(settings)}


def settings_of(row: Row[Any]) -> MethodSettings:
    """Return the settings in a row that has the columns of a calibrator."""
    found: MethodSettings = FORMS[row.method].read(row)
    return found


def settings_digest(settings: MethodSettings) -> bytes:
    """Return the BLAKE2b-128 digest of the settings; equal numbers give equal digests, however they are written."""
    canonical = FORMS[method_of(settings)].canonical(settings)
    return blake2b(repr(canonical).encode(), digest_size=16).digest()
