"""The verb `decide`: one point at once, without a job, and nothing is stored."""

from pathlib import Path
from typing import Annotated, Any

import typer

from venn_admit.service.cli import panels
from venn_admit.service.cli.output import Json, print_result
from venn_admit.service.cli.renamed import MODE_OPTIONS
from venn_admit.service.cli.verbs.calibrating.classifier import Name
from venn_admit.service.cli.verbs.deciding.scoring import chosen_weights
from venn_admit.service.errors import InvalidInputError


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command(rich_help_panel=panels.DECIDING, context_settings=MODE_OPTIONS)(decide)


def decide(
    name: Name,
    file: Annotated[Path | None, typer.Argument(help="Exemplars, .npz or .parquet.")] = None,
    row: Annotated[int, typer.Option(min=0, help="Row of the file, counted from 0.")] = 0,
    logits: Annotated[
        str | None,
        typer.Option(help="In place of a file, for a classifier with logits only: its logits, such as 2.5,-1.5."),
    ] = None,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="Weight probabilities by the localizer, the default of venn-admit.")
    ] = False,
    unweighted: Annotated[
        bool, typer.Option("--unweighted", help="Use plain Venn probabilities, the default of venn-abers.")
    ] = False,
    require_full_match: Annotated[
        bool, typer.Option("--require-full-match", help="Reject a prediction with q < K.")
    ] = False,
    ef_search: Annotated[
        int | None,
        typer.Option(help="Search by the HNSW index with this many candidates, K to 1000; default: search exactly."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Decide on one row of a file, or on logits alone, by the current calibration, and show why; nothing is stored."""
    import numpy as np

    from venn_admit.service.cli.session import open_session
    from venn_admit.service.cli.shown.decision_tables import print_decision
    from venn_admit.service.flows.decisions.decide_row import decide_row, decide_vector
    from venn_admit.service.payloads.decisions import decided_payload

    if (file is None) == (logits is None) or (file is None and row):
        raise InvalidInputError("expected either a file, and a row of it, or logits")
    session = open_session()
    how: dict[str, Any] = {
        "weighted": chosen_weights(weighted, unweighted),
        "require_full_match": require_full_match,
        "hnsw_ef_search": ef_search,
    }
    external_id = None
    if file is None:
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, which is refused
            given = np.array(_numbers("logits", logits or ""), dtype=np.float32)
        found = decide_vector(session.point_scorer, name, None, logits=given, **how)
    else:
        of_row = decide_row(session.engine, session.point_scorer, name, session.exemplars_in(file), row, **how)
        external_id, found = of_row.external_id, of_row.decided
    decided = found.decision
    if as_json:
        print_result(True, decided_payload(external_id, found))
    else:
        title = f"{external_id or f'logits {logits}'}, calibration {decided.calibration_id}"
        print_decision(
            title, decided.classifier.class_names, decided.fields, decided.category_counts, found.near, decided.policy
        )


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(f"{option}: expected numbers such as 2.5,-1.5, got {text!r}") from None
