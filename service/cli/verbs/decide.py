"""The verb `decide`: one vector at once, without a job, and nothing is stored."""

from pathlib import Path
from typing import Annotated

import typer

from venn_admit.service.cli import panels
from venn_admit.service.cli.output import Json, print_result
from venn_admit.service.cli.renamed import MODE_OPTIONS
from venn_admit.service.cli.verbs.classifier import Name
from venn_admit.service.cli.verbs.scoring import chosen_weights


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command(rich_help_panel=panels.DECIDING, context_settings=MODE_OPTIONS)(decide)


def decide(
    name: Name,
    file: Annotated[Path, typer.Argument(help="Exemplars, .npz or .parquet.")],
    row: Annotated[int, typer.Option(min=0, help="Row of the file, counted from 0.")] = 0,
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
    """Decide on one row of a file, by the current calibration, and show why; nothing is stored."""
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.cli.shown.decision_tables import named_classes, neighbour_list, print_decision
    from venn_admit.service.flows.decisions.decide_row import decide_row

    session = open_session()
    found = decide_row(
        session.engine,
        session.point_scorer,
        name,
        session.exemplars_in(file),
        row,
        weighted=chosen_weights(weighted, unweighted),
        require_full_match=require_full_match,
        hnsw_ef_search=ef_search,
    )
    decided = found.decided.decision
    near = list(
        zip(found.decided.neighbours, decided.nearest.labels.tolist(), decided.nearest.distances.tolist(), strict=True)
    )
    class_names = decided.classifier.class_names
    if as_json:
        print_result(
            True,
            {
                "external_id": found.external_id,
                "calibration": decided.calibration_id,
                "class_names": list(class_names),
                **decided.fields,
                **named_classes(decided.fields, class_names),
                "category_counts": decided.category_counts.tolist(),
                "neighbours": neighbour_list(near, class_names),
            },
        )
    else:
        title = f"{found.external_id}, calibration {decided.calibration_id}"
        print_decision(title, class_names, decided.fields, decided.category_counts, near)
