"""How messages name what was received."""


def type_text(value: object) -> str:
    """Return the name of a value's type with its article.

    >>> type_text([]), type_text(1), type_text(None)
    ('a list', 'an int', 'None')

    Capitals are spelled, as in `SVC`, and so is the beginning of `ndarray`.

    >>> [type_text(type(name, (), {})()) for name in ("SVC", "Sequential", "ndarray", "UserDict")]
    ['an SVC', 'a Sequential', 'an ndarray', 'a UserDict']
    """
    if value is None:
        return "None"
    name = type(value).__name__
    is_spelled = name[:2].isupper() or name.startswith("nd")
    return f"{'an' if name[0].upper() in ('AEFHILMNORSX' if is_spelled else 'AEIO') else 'a'} {name}"
