"""The verb `decide`: one point at once, without a job, and nothing is stored."""

from pathlib import Path
from typing import Annotated, Any

import typer

from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Deciding, Json, Name, Stating, numbers, with_records
from venn_admit.cli.output import print_result
from venn_admit.errors import InvalidInputError


@with_records
def decide(
    name: Name,
    file: Annotated[Path | None, typer.Argument(help="Exemplars, .npz or .parquet.")] = None,
    row: Annotated[int, typer.Option(min=0, help="Row of the file, counted from 0.")] = 0,
    logits: Annotated[
        str | None,
        typer.Option(help="In place of a file, for a classifier with logits only: its logits, such as 2.5,-1.5."),
    ] = None,
    attributes: Annotated[
        str,
        typer.Option(
            help="With logits: attributes, such as region=north,device=pc, of which one with a comma is in double "
            "quotes; a file has its own."
        ),
    ] = "",
    *,
    deciding: Deciding,
    ef_search: Annotated[
        int | None,
        typer.Option(help="Search by the HNSW index with this many candidates, K to 1000; default: search exactly."),
    ] = None,
    neighbours: Annotated[
        int | None, typer.Option(min=0, help="How many of the nearest training exemplars to show; default: all K.")
    ] = None,
    stating: Stating,
    as_json: Json = False,
) -> None:
    """Decide on one row of a file, or on logits alone, by the calibration in use, and show why; nothing is stored."""
    import numpy as np

    from venn_admit.cli.tables.decision_tables import print_decision
    from venn_admit.core.groups import named_texts
    from venn_admit.flows.decisions.decide_row import decide_row
    from venn_admit.flows.decisions.score_one import GivenPoint, as_logits
    from venn_admit.results import decided_json

    if (file is None) == (logits is None) or (file is None and row) or (attributes and logits is None):
        raise InvalidInputError("expected either a file, and a row of it, or logits, and attributes with them")
    are_probabilities = stating.are_probabilities
    how: dict[str, Any] = {**deciding.arguments(), "hnsw_ef_search": ef_search, "neighbours": neighbours}
    session = open_session()
    if file is None:
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, which is refused
            given = np.array(numbers("logits", logits or "", float, "2.5,-1.5"), dtype=np.float32)
        points = as_logits([GivenPoint(None, given, named_texts(attributes))], are_probabilities)
        (decided,) = session.point_scorer.score_each(name, points, **how)
    else:
        source = session.exemplars_in(file, stating)
        decided = decide_row(session.engine, session.point_scorer, name, source, row, **how)
    point = decided.point
    if as_json:
        print_result(True, {**decided_json(decided), "attributes": point.attributes})
    else:
        title = f"{point.external_id or f'logits {logits}'}, calibration {decided.calibration_id}"
        print_decision(
            title,
            decided.classifier.class_names,
            decided.fields,
            decided.category_counts.tolist(),
            decided.near,
            decided.policy,
            point.attributes,
            None if point.logits is None else point.logits.tolist(),
            decided.bounds,
        )
