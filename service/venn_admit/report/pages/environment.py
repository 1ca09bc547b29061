"""What renders the templates of reports."""

from jinja2 import Environment, PackageLoader, StrictUndefined

from venn_admit.report.charts.colours import CHART_COLOURS
from venn_admit.report.wording import counted


def page_environment() -> Environment:
    """Return an environment that escapes every name, and refuses what is undefined."""
    environment = Environment(
        loader=PackageLoader("venn_admit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["chart_colours"] = CHART_COLOURS
    environment.globals["counted"] = counted
    return environment
