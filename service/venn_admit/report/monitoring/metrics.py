r"""What a monitor says, in the text format of Prometheus (version 0.0.4), as node_exporter reads it from a file."""

import math

from venn_admit.core.monitoring.anytime.readings import Reading
from venn_admit.report.monitoring.contents import MonitorReport

_PREFIX = "venn_admit_monitor"


def metrics_text(report: MonitorReport) -> str:
    """Return the metrics: gauges, a sample for each class and partition."""
    classifier = {"classifier": report.classifier}
    lines = [
        *_header("documents", "Labelled documents that count."),
        _sample("documents", classifier, report.documents),
        *_header("alarms", "Alarms that stand: admitted predictions may be wrong more often than they should be."),
        _sample("alarms", classifier, len(report.harmful)),
        *_header("notices", "Notices that stand, which do no harm by themselves."),
        _sample("notices", classifier, len(report.notices)),
    ]
    figures = {
        "labels": "Admitted points with a label; for the mix, documents.",
        "right": "Admitted points that are predicted right.",
        "share_right_lower_bound": "Bound that the share right exceeds at all times, with 95 percent confidence.",
        "e_value": "Evidence against what the lamp stands for.",
        "e_value_needed": "The evidence that lights the lamp.",
        "lit": "Whether the lamp is lit.",
    }
    for figure, meaning in figures.items():
        lines += _header(figure, meaning)
        for reading in report.readings:
            value = _value(reading, figure)
            if value is not None:
                lines.append(_sample(figure, classifier | _labels(report, reading), value))
    return "\n".join(lines) + "\n"


def _value(reading: Reading, figure: str) -> float | None:
    values: dict[str, float | None] = {
        "labels": reading.points,
        "right": reading.right,
        "share_right_lower_bound": reading.lower_bound,
        "e_value": reading.e_value,
        "e_value_needed": reading.needed,
        "lit": int(reading.lit_at is not None),
    }
    return values[figure]


def _labels(report: MonitorReport, reading: Reading) -> dict[str, str]:
    name = report.name(reading.lamp, reading.number)
    return {"lamp": str(reading.lamp), "class": name.class_name} | ({} if name.q is None else {"q": name.q})


def _header(figure: str, meaning: str) -> tuple[str, str]:
    return f"# HELP {_PREFIX}_{figure} {meaning}", f"# TYPE {_PREFIX}_{figure} gauge"


def _sample(figure: str, labels: dict[str, str], value: float) -> str:
    written = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
    shown = "+Inf" if math.isinf(value) else repr(value)
    return f"{_PREFIX}_{figure}{{{written}}} {shown}"


def _escaped(text: str) -> str:
    r"""A label value: backslash, quote and line break are escaped.

    >>> print(_escaped('a "b"\\\n'))
    a \"b\"\\\n
    """
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
