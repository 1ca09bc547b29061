"""`venn-admit demo`: the main job on bundled real data, by the verbs that a user would type."""

import os
import shutil
import sys
from pathlib import Path

from rich.rule import Rule
from rich.text import Text

from venn_admit.cli.output import make_report_folder, messages, output, shown
from venn_admit.cli.session import Session, open_session
from venn_admit.cli.verbs.calibrating import calibrate as calibrate_command
from venn_admit.cli.verbs.calibrating import classifier as classifier_commands
from venn_admit.cli.verbs.deciding import scoring as scoring_commands
from venn_admit.errors import ConflictError
from venn_admit.files.output.atomic import filling
from venn_admit.flows.data.catalogue import find
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.evaluated import calibration_facts
from venn_admit.report.evaluation.terminal import report_tables
from venn_admit.report.pages.html import write_report
from venn_admit.resources import bundled_folder

PROGRAM = "venn-admit"
NAME = "sentiment-demo"
ALPHA, KAPPA = "0.1", 100
SETS = {"test": "test, other film reviews", "ood": "ood, tweets instead of reviews"}


def run(out: Path) -> None:
    """Ingest, fit, calibrate, score `test` and `ood`, and show what each method admits; a second run adds nothing."""
    data = bundled_folder("examples") / "sentiment_small"
    make_report_folder(out)
    session = open_session()
    output.print(
        "A small network reads film reviews and tweets, and tells good from bad: it is right in 84 to 88 of 100 cases. "
        "Which of its predictions can you act on, so that at least 90 of 100 are right in every class?\n"
    )
    with session.workers():
        _step("1. Register the classifier, store its training exemplars and labelled held-out data in Postgres")
        try:
            classifier_commands.create(NAME, "negative,positive", 128)
        except ConflictError:
            output.print(f"Classifier {NAME} and its data are there from an earlier run.")
        classifier_commands.ingest(NAME, data / "train.npz", "train")
        classifier_commands.ingest(NAME, data / "valid.npz", "held-out")
        _step("2. Approximate the network by its nearest training exemplars")
        classifier_commands.fit(NAME)
        _step("3. Calibrate")
        calibrate_command.calibrate(NAME, alpha=ALPHA, kappa=KAPPA)
        _step("4. Score two sets and look at what is admitted")
        reports = [
            scoring_commands.evaluate_data(session, NAME, data / f"{key}.npz", title, None)
            for key, title in SETS.items()
        ]
    for report in reports:
        output.print(Rule(style="dim"))
        output.print(report_tables(report))

    with messages.status("Drawing the report"), filling(out) as folder:
        page, *pictures = write_report(
            folder,
            "venn-admit on bundled film reviews and tweets",
            _facts(session, reports[0]),
            reports,
            _next_steps(data),
        )
    output.print(Rule(style="dim"))
    where = Text.assemble("The same with charts: ", (shown(out / page.name), "bold"))
    output.print(where.append(f", and {len(pictures)} PNG files beside it."), soft_wrap=True)
    output.print("\nWhat to try next:")
    for line in _next_steps(data):
        output.print(f"  {line.replace(PROGRAM, _as_started(), 1)}", highlight=False, soft_wrap=True, markup=False)


def _step(title: str) -> None:
    output.print(f"\n[bold]{title}[/bold]")


def _as_started() -> str:
    """Return how this program is called from here: its virtual environment may not be active."""
    return PROGRAM if shutil.which(PROGRAM) else sys.argv[0]


def _facts(session: Session, evaluated: DatasetReport) -> dict[str, str]:
    classifier = find(session.engine, NAME)
    facts = {
        "Classifier": f"{NAME}: {' or '.join(classifier.class_names)}; D = {classifier.dimension}, "
        f"K = {classifier.neighbour_count}"
    }
    if evaluated.calibration is not None:
        facts |= calibration_facts(evaluated.calibration)
    return facts


def _next_steps(data: Path) -> list[str]:
    ood = os.path.relpath(data / "ood.npz")
    return [
        f"{PROGRAM} replay 1",
        f"{PROGRAM} score {NAME} {ood} --out scores.parquet",
        f"{PROGRAM} calibrate {NAME} --kappa {KAPPA} --q-bins 0,1,6,16,25 --delta 2",
        f"{PROGRAM} evaluate {NAME} {ood} --out ood-report",
        f"{PROGRAM} export {NAME} --what approximations --out approximations.parquet",
        f"{PROGRAM} calibrate {NAME} --method venn-abers",
        f"{PROGRAM} calibrate {NAME} --method venn-abers --certify predicted,true",
        f"{PROGRAM} create YOURS --classes a,b,c --dim 384",
    ]
