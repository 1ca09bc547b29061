"""The tables of the page on files that say what a decision holds."""

from docs.generate.markdown import plain, table
from venn_admit.core.calibrators.settings import METHOD_NAMES
from venn_admit.core.evidence import EVIDENCE, SHARED
from venn_admit.core.reasons import Reason


def scores_table() -> str:
    """Return the columns of what `score` writes that say what was decided, and why."""
    rows = [
        (f"`{field.out}`", "" if method is None else METHOD_NAMES[method], plain(field.meaning))
        for method, fields in ((None, SHARED), *((one.method, one.fields) for one in EVIDENCE.values()))
        for field in fields
        if field.out is not None
    ]
    return table(["column", "only under", "what it holds"], rows)


def reasons_table() -> str:
    """Return why predictions are rejected, in the order in which reasons apply."""
    rows = [(f"`{reason}`", plain(reason.meaning), plain(reason.remedy)) for reason in Reason]
    return table(["reason", "what it means", "what to do"], rows)
