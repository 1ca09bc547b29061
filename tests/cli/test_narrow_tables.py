"""Tables of what is stored in a narrow terminal: no number, header or word is broken, and rows can be told apart."""

from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from rich.console import Console, RenderableType

from venn_admit.cli import output, waiting
from venn_admit.cli.tables.catalogue_tables import calibrations_tables, classifiers_table, generations_table
from venn_admit.cli.tables.rows import cell, jobs_table
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.settings import MethodSettings, make_settings, make_venn_abers_settings
from venn_admit.core.split_names import Split
from venn_admit.errors import InvalidInputError
from venn_admit.flows.data.catalogue import Listed, ListedCalibrations
from venn_admit.store.calibrations.calibrators import Calibrator
from venn_admit.store.decisions.catalogue import Counts
from venn_admit.store.exemplars.classifiers import Classifier, KnnSize
from venn_admit_client.records.calibrations import CalibrationUse

NOW = datetime.now(UTC)
LONG = "assignment-of-customer-messages-to-teams-of-the-european-shop"
EXTRACTOR = "0123456789abcdef"


def setting(number: int, settings: MethodSettings, **more: Any) -> Calibrator:
    usual = {"is_in_use": False, "retired_at": None, "due_for": None, "due_error": None}
    return Calibrator(
        id=number,
        settings=settings,
        calibration_id=123_455 + number,
        calibrated_at=NOW,
        mc_count=125_000,
        vp_count=125_000,
        **(usual | more),
    )


SETTINGS = [
    setting(
        1,
        make_venn_abers_settings(2, 25, certify=["predicted", "true"]),
        is_in_use=True,
        certified=(ClassKind.PREDICTED, ClassKind.TRUE),
        policy=(0.61, None),
    ),
    setting(2, make_venn_abers_settings(2, 25, score="network"), due_for="held-out data"),
    setting(3, make_venn_abers_settings(2, 25, score="reliability"), retired_at=NOW),
    setting(4, make_settings(2, 25, alpha=Decimal("0.025"))),
]


def classifiers() -> list[Listed]:
    share, counts = Decimal("0.1"), Counts(dict.fromkeys(Split, 99_999), dict.fromkeys(Split, 99_999), 12)
    size = KnnSize(16_000, 25)
    return [
        Listed(
            Classifier(
                1, name, ("a", "b"), size, share, share, 0, uuid4(), 1, 1, NOW, EXTRACTOR, 1, True, 1, f"{name}@1"
            ),
            counts,
            in_use,
        )
        for name, in_use in (("sentiment-demo", SETTINGS[0]), (LONG, SETTINGS[1]), ("reviews", None))
    ]


def calibrations() -> list[RenderableType]:
    reasons = ("held-out data", "labels", "fit", "requested", "training data")
    rows: list[Any] = [
        SimpleNamespace(
            calibration=123_456 + place,
            setting=1 + place % 4,
            created_at=NOW,
            reason=reason,
            mc=125_000,
            vp=125_000,
            is_current=place < 4,
            state="current" if place < 4 else "withheld",
        )
        for place, reason in enumerate(reasons)
    ]
    used = [CalibrationUse(123_456, 1, NOW, None, "command line", None, None, "put in use by its number")]
    return list(calibrations_tables(ListedCalibrations(classifiers()[0].classifier, SETTINGS, rows, used, [], [])))


def drawn(table: RenderableType, width: int) -> list[str]:
    shown = StringIO()
    Console(file=shown, width=width).print(table)
    lines = [line.rstrip() for line in shown.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    return lines


@pytest.mark.parametrize("width", [80, 120])
class TestNarrow:
    def test_calibrations(self, width: int) -> None:
        settings, made, used = (drawn(table, width) for table in calibrations())
        assert used[2].split() == ["calibration", "in", "use", "since", "until", "put", "in", "use", "by", "why"]
        assert sum(cell(NOW) in line for line in used) == 1
        assert settings[2].split() == ["setting", "state", "calibration", "retired", "settings"]
        assert made[2].split() == ["calibration", "setting", "made", "why", "mc", "vp", "state"]
        assert sum(cell(NOW) in line for line in settings) == 1
        assert sum((cell(NOW) if width == 120 else f"{NOW.astimezone():%Y-%m-%d}") in line for line in made) == 5
        starts = [place for place, line in enumerate(settings) if line[1:2].isdecimal()]
        told = [
            " ".join(" ".join(line[settings[2].index("settings") :] for line in settings[start:end]).split())
            for start, end in zip(starts, [*starts[1:], None], strict=True)
        ]
        assert told == [
            "venn-abers, alpha 0.1, score auto, certify predicted, true with confidence 0.95: certified; bins of q 0; "
            "thresholds 0.61, never",
            "venn-abers, alpha 0.1, score network, pointwise; bins of q 0; due for held-out data",
            "venn-abers, alpha 0.1, score reliability, pointwise; bins of q 0",
            "venn-admit, alpha 0.025, delta 1, kappa 1,000; bins of q 0,1,...,25",
        ]

    def test_list(self, width: int) -> None:
        lines = drawn(classifiers_table(classifiers()), width)
        header = ["classifier", "classes", "train", "held-out", "scored", "labels", "jobs", "calibration"]
        assert lines[1].split() == header
        words = " ".join(lines).split()
        assert {"certify", "predicted,", "certified", "network,", "pointwise"} <= set(words)
        assert "sentiment-demo" in words

    def test_jobs(self, width: int) -> None:
        jobs: list[Any] = [
            SimpleNamespace(
                job=job,
                classifier="sentiment-demo",
                kind=kind,
                state="running",
                rows_done=16_000,
                rows=16_000,
                created_at=NOW,
                seconds=7500.0,
                removed_at=None,
                error=None,
            )
            for job, kind in ((4711, "approximate"), (4712, "score"))
        ]
        lines = drawn(jobs_table(jobs), width)
        for job in jobs:
            told = next(line for line in lines if line.split()[:1] == [str(job.job)]).split()
            assert told[1:6] == ["sentiment-demo", job.kind, "running", "16,000", "16,000"]

    def test_generations(self, width: int) -> None:
        lines = drawn(generations_table(classifiers()), width)
        header = ["generation", "name", "extractor", "D", "train", "held-out", "scored", "calibration"]
        assert lines[1].split() == header
        assert sum("99,999   299,997  99,999" in line for line in lines) == 3


@pytest.mark.parametrize("width", [40, 60])
def test_what_is_too_wide_is_a_list_of_values_under_each_other(width: int) -> None:
    """Rather than break numbers, and leave narrow columns out."""
    lines = drawn(classifiers_table(classifiers()), width)
    told = [tuple(line.split(maxsplit=1)) for line in lines]
    assert told.count(("held-out", "299,997")) == 3
    assert told.count(("classes", "2")) == 3
    assert sum(line.startswith(("classifier ", " classifier ")) for line in lines) == 3


@pytest.mark.parametrize("width", [60, 80])
def test_a_progress_bar_gives_way_before_its_figures_do(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    written = StringIO()
    monkeypatch.setattr(output, "messages", Console(file=written, width=width))
    with output.progress("Scoring ood, tweets instead of reviews, by the paper's method", 12_000_000) as advance:
        advance(12_000_000)
    assert "12000000/12000000 0:00:00" in written.getvalue()
    assert "method" in written.getvalue()


def refuse_while_shown() -> None:
    with waiting.Showing() as shown:
        shown.show("Storing new.npz", 10)
        raise InvalidInputError("expected other rows")


def test_a_refusal_takes_the_progress_bar_away(monkeypatch: pytest.MonkeyPatch) -> None:
    written = StringIO()
    monkeypatch.setattr(output, "messages", Console(file=written, width=80))
    with pytest.raises(InvalidInputError), output.progress("Storing new.npz", 10):
        raise InvalidInputError("expected other rows")
    assert written.getvalue().strip() == ""
    with pytest.raises(InvalidInputError):
        refuse_while_shown()
    assert written.getvalue().strip() == ""
