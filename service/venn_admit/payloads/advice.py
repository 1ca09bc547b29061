"""The arguments of a step that is advised."""

from typing import Any

from venn_admit.advice import Step
from venn_admit.core.calibrators.arguments import arguments_for


def arguments_of(step: Step) -> dict[str, Any]:
    """Return the arguments of a step by the names that all shells have for them, settings one by one."""
    given = dict(step.arguments)
    if "settings" in given:
        given |= arguments_for(given.pop("settings"), given.pop("neighbour_count"))
    return given
