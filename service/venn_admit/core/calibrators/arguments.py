"""Settings as the arguments of a calibration: what each means, what a user gives, and what would give them again."""

from collections.abc import Mapping
from typing import Any

from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.declaration import Declared, SettingKind
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import (
    DECLARED,
    DEFAULT_ALPHA,
    METHOD_NAMES,
    MethodSettings,
    VennAbersSettings,
    make_settings,
    make_venn_abers_settings,
)
from venn_admit.core.method_names import VENN_ABERS, VENN_ADMIT
from venn_admit.errors import InvalidInputError

ALL_DECLARED: Mapping[str, Declared] = {name: one for of_method in DECLARED.values() for name, one in of_method.items()}
"""The settings of all methods by name."""

_PROMISING = frozenset({"promise", "certify", "thresholds"})
"""Without any of these, the strongest promise is asked for, or the only one that can stand."""


def about(name: str) -> str:
    """Return what a setting is and which method alone has it, if one has, without a full stop.

    Examples:
        >>> about("kappa")
        'Venn-ADMIT only: least number of points of each class in a band'
    """
    text, having = ALL_DECLARED[name].about, [method for method in DECLARED if name in DECLARED[method]]
    return f"{METHOD_NAMES[having[0]]} only: {text}" if len(having) == 1 else text[0].upper() + text[1:]


def documentation(name: str) -> str:
    """Return what a setting is, which method has it, how it is given, and its default."""
    given = ALL_DECLARED[name].given
    return f"{about(name)}; {given}." if given else f"{about(name)}."


def read_settings(
    method: str, given: Mapping[str, Any], *, class_count: int, neighbour_count: int | None
) -> MethodSettings:
    """Return the settings that a user asks for, checked.

    Args:
        given: Values by the names of settings, as `Declared.read` takes them; None for the default.
        neighbour_count: K; None without vectors, which Venn-ADMIT needs.

    Raises:
        InvalidInputError: There is no such method, it has no such setting, or a value is invalid.

    Examples:
        >>> read_settings("venn-admit", {"kappa": 5, "q_bins": "0,2"}, class_count=2, neighbour_count=3).q_bins
        (0, 2)
    """
    if method not in DECLARED:
        raise InvalidInputError(f"method: expected {' or '.join(DECLARED)}, got {method!r}")
    own, asked = DECLARED[method], {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in own:
            (other,) = DECLARED.keys() - {method}
            shown = value if isinstance(value, str) or not ALL_DECLARED[name].many else listed(list(value))
            raise InvalidInputError(
                f"{name}: the method {method} has no such setting, got {shown}; leave it out, or name the "
                f"method {other}"
            )
        asked[name] = own[name].read(name, value)
    if method == VENN_ABERS:
        if not asked.keys() & _PROMISING:
            by_predicted = asked.get("standing") or "class_shares" in asked or asked.get("class_shares_estimated")
            asked |= {"certify": (ClassKind.PREDICTED,)} if by_predicted else {"promise": AskedPromise.STRONGEST}
        return make_venn_abers_settings(class_count, neighbour_count, **asked)
    assert neighbour_count is not None, "Venn-ADMIT decides by the KNN"
    return make_settings(class_count, neighbour_count, **asked)


def canonical(settings: MethodSettings) -> tuple[Any, ...]:
    """Return a tuple whose text is the same for equal settings, however they are written.

    Stored digests are made of it, so that it must not change. What is None is absent.
    """
    own, method = DECLARED[settings.method], (settings.method,) if settings.method != VENN_ADMIT else ()
    values = {name: one.canonical(getattr(settings, name)) for name, one in own.items()}
    first = (value for name, value in values.items() if value is not None and not own[name].added)
    added = ((name, value) for name, value in values.items() if own[name].added and value != own[name].default)
    return (*method, *first, *added)


def plain_settings(settings: MethodSettings) -> dict[str, Any]:
    """Return all settings by name, as arguments that make them; None for one that is not in force."""
    return {name: one.plain(getattr(settings, name)) for name, one in DECLARED[settings.method].items()}


def json_settings(settings: MethodSettings, *names: str) -> dict[str, Any]:
    """Return settings as JSON has them.

    Args:
        names: Those to return, in this order, if the method has them. All of its added ones follow.
    """
    return {
        name: one.json(getattr(settings, name))
        for name, one in sorted(DECLARED[settings.method].items(), key=lambda item: _place(item[0], names))
        if name in names or one.added
    }


def asked_json(settings: MethodSettings) -> dict[str, Any]:
    """Return what tells settings apart, as JSON has it, with null for what only another method has."""
    names = [name for name in ALL_DECLARED if name not in ("q_bins", "thresholds")]
    return {"method": settings.method, **dict.fromkeys(names), **json_settings(settings, *names)}


def setting_words(settings: MethodSettings, *names: str) -> dict[str, str]:
    """Return settings in words, by what sentences call them.

    Args:
        names: Those to return, in this order, if the method has them. Added ones follow if they do not have their
            default.

    Examples:
        >>> setting_words(make_settings(2, 5), "kappa", "delta")
        {'kappa': '1,000', 'delta': '1'}
    """
    own = DECLARED[settings.method]
    return {
        called(name): value_text(name, getattr(settings, name))
        for name in sorted(own, key=lambda name: _place(name, names))
        if name in names or (own[name].added and getattr(settings, name) != own[name].default)
    }


def setting_text(settings: MethodSettings) -> str:
    """Return a setting in brief, as people tell it from others: its method, error level, score or bands, and promise.

    Examples:
        >>> setting_text(make_settings(2, 5, kappa=100))
        'venn-admit, alpha 0.1, delta 1, kappa 100'
    """
    words = setting_words(settings, "alpha", "delta", "kappa", "score")
    parts = [settings.method, *(f"{name} {text}" for name, text in words.items())]
    if isinstance(settings, VennAbersSettings):
        asked = settings.certification
        if asked is not None and settings.promise is AskedPromise.POINTWISE:
            confidence = f"{asked.test.of_confidence}confidence {asked.confidence}"
            parts.append(f"certify {', '.join(asked.kinds)} with {confidence}")
        elif not settings.has_policy:
            parts.append("pointwise")
    return ", ".join(parts)


def _place(name: str, names: tuple[str, ...]) -> int:
    return names.index(name) if name in names else len(names)


def called(name: str) -> str:
    """Return what tables and sentences call a setting."""
    return ALL_DECLARED[name].name or name.replace("_", " ")


def column_of(name: str) -> str:
    """Return the name of the column that holds a setting in the database."""
    return ALL_DECLARED[name].column or name


def value_text(name: str, value: Any) -> str:
    """Return a value of a setting in words; several with commas between them."""
    plain = ALL_DECLARED[name].plain(value)
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    form = {SettingKind.INTEGER: ",", SettingKind.NUMBER: "g"}.get(ALL_DECLARED[name].kind, "")
    return listed(plain) if isinstance(plain, list) else f"{plain:{form}}"


def listed(values: list[Any]) -> str:
    """Return several values with commas between them, and rows of values with semicolons.

    Args:
        values: Values, or lists of values.

    Examples:
        >>> listed([[0, 1], [5, 0]])
        '0,1;5,0'
    """
    rows = [one for one in values if isinstance(one, list | tuple)]
    return ";".join(map(listed, map(list, rows))) if rows else ",".join(map(str, values))


def arguments_for(settings: MethodSettings, neighbour_count: int | None) -> dict[str, Any]:
    """Return the arguments of a calibration that make these settings, for the advice to calibrate under them.

    The method and its kappa or score are always among them, so that nothing else is chosen; others are left out if they
    have their default. Decimals stay decimals, and sequences are lists.

    Examples:
        >>> arguments_for(make_settings(2, 5, kappa=100, q_bins=(0, 1)), 5)
        {'method': 'venn-admit', 'kappa': 100, 'q_bins': [0, 1]}
    """
    own, given = DECLARED[settings.method], plain_settings(settings)
    promise = _promise_arguments(settings)
    default = read_settings(
        settings.method,
        {"alpha": settings.alpha, **promise},
        class_count=len(settings.thresholds),
        neighbour_count=neighbour_count,
    )
    left_out = {**plain_settings(default), "alpha": DEFAULT_ALPHA}
    others = {name: value for name, value in given.items() if own[name].always or value != left_out[name]}
    return {"method": settings.method} | others | promise


def _promise_arguments(settings: MethodSettings) -> dict[str, Any]:
    """The arguments that ask for what the settings promise; none for the default."""
    if not isinstance(settings, VennAbersSettings) or settings.promise is AskedPromise.STRONGEST:
        return {}
    if settings.certify is not None:
        return {"certify": list(map(str, settings.certify))}
    return {"promise": str(settings.promise)}
