"""Charts of the reports as this page may show them: its content policy allows no styles inside the page."""

import re

from markupsafe import Markup

from venn_admit.report.calibration.sections import Picture
from venn_admit.report.charts.charts import to_svg

_TAG = re.compile(r"<[^>]*>")
_STYLES = re.compile(r'\sstyle="([^"]*)"')
# Round joints and butt ends, which the style sheet of the page gives instead.
_SHEET = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)


def drawn(picture: Picture) -> Markup:
    """Return a chart as an SVG element without styles of its own."""
    # Safe: matplotlib escapes the text it draws, to_svg the label.
    return Markup(without_styles(to_svg(picture.draw(), picture.name, picture.caption)))  # noqa: S704


def without_styles(svg: str) -> str:
    """Return SVG with attributes in place of styles, which look the same.

    >>> without_styles('<path style="fill: none; stroke: var(--blue)" d="M 0 0"/>')
    '<path fill="none" stroke="var(--blue)" d="M 0 0"/>'
    """
    # Within a tag only: a name that is drawn may look like an attribute.
    return _TAG.sub(lambda tag: _STYLES.sub(_attributes, tag[0]), _SHEET.sub("", svg))


def _attributes(found: re.Match[str]) -> str:
    parts = (part.partition(":") for part in found[1].split(";") if part.strip())
    pairs = ((name.strip(), value.strip()) for name, _, value in parts)
    return "".join(f' {name}="{value}"' for name, value in pairs)
