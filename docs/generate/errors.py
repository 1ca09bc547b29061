"""The reference of errors, their codes and exit codes, from `venn_admit.errors`."""

import inspect

from docs.generate.markdown import join, one_line, plain, table
from venn_admit import errors
from venn_admit.errors import Code, VennAdmitError

INTRODUCTION = """\
# Errors and exit codes

A command exits with 0 when it is done. Otherwise it prints one line to standard error, which says what was expected,
what was received, where, and what to do, and exits with the code of the error's family. `monitor` prints its result
first, and then exits with 7 if an alarm stands. `venn-admit --debug COMMAND` also prints the traceback."""

CODES = """\
## Codes

In Python, an error has a `code`, which stays the same while its message may be reworded, and the `parameters` of the
code, such as the name of the classifier. Catch the class of the family, and compare the code if the family is too
wide. The codes of the families, which any other error of the family has, come first."""

PYTHON = """\
In Python, all of them are in `venn_admit`. Every error that is raised on purpose is a `VennAdmitError`.
To catch a family, catch the class that the table names as the parent."""


def errors_page() -> str:
    """Return the page: one row a class, in the order in which they are defined."""
    found = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, VennAdmitError)]
    rows = [
        (
            str(kind.exit_code),
            f"`{kind.__name__}`",
            _parent(kind),
            plain(one_line((inspect.getdoc(kind) or "").partition("\n\n")[0])),
        )
        for kind in found
    ]
    families: dict[str, str] = {kind.general: kind.__name__ for kind in found}
    codes = [
        (
            f"`{code}`",
            f"`{families[code.family]}`",
            ", ".join(f"`{name}`" for name in code.parameters),
            plain(code.meaning),
        )
        for code in Code
    ]
    return join(
        INTRODUCTION,
        table(["exit code", "class", "parent", "meaning"], rows),
        PYTHON,
        CODES,
        table(["code", "class", "parameters", "meaning"], codes),
    )


def _parent(kind: type[VennAdmitError]) -> str:
    return f"`{kind.__base__.__name__}`" if kind.__base__ else ""
