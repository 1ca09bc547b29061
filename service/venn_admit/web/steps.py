"""The steps that reports advise, as the page's visitors take them: in words that stand in a sentence."""

from collections.abc import Mapping

from venn_admit.advice import Step, Verb
from venn_admit.http.advice import address_of, members_of

PAGES: Mapping[Verb, str] = {
    Verb.REPORT: "the page \u201cReport\u201d",
    Verb.LIST_UNLABELLED: "the page \u201cLabels\u201d",
    Verb.LABEL: "the page \u201cLabels\u201d",
    Verb.RECALIBRATE: "the next recalibration",
}
"""The steps that the page has, or that happen by themselves; the others are requests over HTTP."""


def on_page(step: Step) -> str:
    """Return where on the page a step is taken, or which request takes it.

    >>> from venn_admit.core.calibrators.settings import make_settings
    >>> settings = make_settings(2, 5, kappa=100, q_bins=(0, 1))
    >>> on_page(Step(Verb.CALIBRATE, classifier="made", settings=settings, neighbour_count=5))
    'a POST request to /v1/classifiers/made/calibrations with method "venn-admit", kappa 100 and q_bins [0, 1]'
    """
    if step.verb in PAGES:
        return PAGES[step.verb]
    method, path = address_of(step).split(" ", 1)
    *first, last = [f"{name} {value}" for name, value in members_of(step).items()] or [""]
    given = f"{', '.join(first)} and {last}" if first else last
    return f"a {method} request to {path}{f' with {given}' if given else ''}"
