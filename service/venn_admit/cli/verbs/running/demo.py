"""The verb `demo`: the main job on bundled real data, by the verbs that a user would type."""

import os
import shutil
import sys
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli.opening import open_session
from venn_admit.cli.output import messages, output, shown
from venn_admit.cli.verbs.calibrating.calibrate import calibrate
from venn_admit.cli.verbs.calibrating.classifier import create, fit, ingest
from venn_admit.cli.verbs.deciding.scoring import evaluate_data
from venn_admit.cli.verbs.running.catalogue import use
from venn_admit.core.method_names import VENN_ADMIT
from venn_admit.errors import ConflictError
from venn_admit.resources import bundled_folder

PROGRAM = "venn-admit"
NAME = "sentiment-demo"
ALPHA, KAPPA = "0.1", 100
SETS = {"test": "test, other film reviews", "ood": "ood, tweets instead of reviews"}


def demo(out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo-report")) -> None:
    """Ingest, fit, calibrate, score and compare, on bundled real data."""
    from rich.rule import Rule
    from rich.text import Text

    from venn_admit.files.output.atomic import make_folder
    from venn_admit.flows.data.catalogue import find, list_calibrations
    from venn_admit.flows.reports.folders import write_evaluations
    from venn_admit.report.evaluation.terminal import report_tables
    from venn_admit.report.evaluation.verdicts import headline

    data = bundled_folder("examples") / "sentiment_small"
    make_folder(out)
    session = open_session()
    output.print(
        "A small network reads film reviews and tweets, and tells good from bad: it is right in 84 to 88 of 100 cases. "
        "Which of its predictions can you act on, so that at least 90 of 100 are right in every class?\n"
    )
    with session.workers():
        _step("1. Register the classifier, store its training exemplars and labelled held-out data in Postgres")
        try:
            create(NAME, "negative,positive", 128)
        except ConflictError:
            output.print(f"Classifier {NAME} and its data are there from an earlier run.")
        ingest(NAME, data / "train.npz", "train")
        ingest(NAME, data / "valid.npz", "held-out")
        _step("2. Approximate the network by its nearest training exemplars")
        fit(NAME)
        _step("3. Calibrate with the strongest promise that the labels show, which is the default")
        calibrate(NAME, alpha=ALPHA)
        _step("4. Calibrate by the paper's method, which is one word away")
        calibrate(NAME, method=VENN_ADMIT, alpha=ALPHA, kappa=KAPPA)
        of_paper, of_default = list_calibrations(session.engine, NAME, limit=2).calibrations
        use(NAME, of_default.calibration)
        _step("5. Score two sets and look at what is admitted")
        reports = [
            (
                evaluate_data(session, NAME, data / f"{key}.npz", title, None),
                evaluate_data(
                    session, NAME, data / f"{key}.npz", f"{title}, by the paper's method", of_paper.calibration
                ),
            )
            for key, title in SETS.items()
        ]
    for by_default, by_paper in reports:
        output.print(Rule(style="dim"))
        output.print(report_tables(by_default))
        output.print(f"Calibration {of_paper.calibration}, by the paper's method: {headline(by_paper)}")

    classifier = find(session.engine, NAME)
    about = (
        f"{NAME}: {' or '.join(classifier.class_names)}; D = {classifier.dimension}, K = {classifier.neighbour_count}"
    )
    with messages.status("Drawing the report"):
        page, *pictures = write_evaluations(
            out,
            "venn-admit on bundled film reviews and tweets",
            about,
            [*chain.from_iterable(reports)],
            _next_steps(data),
        )
    output.print(Rule(style="dim"))
    where = Text.assemble("The same with charts: ", (shown(page), "bold"))
    output.print(where.append(f", and {len(pictures)} PNG files beside it."), soft_wrap=True)
    output.print("\nWhat to try next:")
    for line in _next_steps(data):
        output.print(f"  {line.replace(PROGRAM, _as_started(), 1)}", highlight=False, soft_wrap=True, markup=False)


def _step(title: str) -> None:
    output.print(f"\n[bold]{title}[/bold]")


def _as_started() -> str:
    """Return how this program is called from here: its virtual environment may not be active."""
    return PROGRAM if shutil.which(PROGRAM) else sys.argv[0]


def _next_steps(data: Path) -> list[str]:
    ood = os.path.relpath(data / "ood.npz")
    return [
        f"{PROGRAM} replay 1",
        f"{PROGRAM} score {NAME} {ood} --out scores.parquet",
        f"{PROGRAM} calibrate {NAME} --method venn-admit --kappa {KAPPA} --q-bins 0,1,6,16,25 --delta 2",
        f"{PROGRAM} evaluate {NAME} {ood} --out ood-report",
        f"{PROGRAM} export {NAME} --what approximations --out approximations.parquet",
        f"{PROGRAM} calibrate {NAME}",
        f"{PROGRAM} calibrate {NAME} --method venn-abers --certify predicted,true",
        f"{PROGRAM} create YOURS --classes a,b,c --dim 384",
    ]
