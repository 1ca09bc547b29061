"""The verb `decide`: one vector at once, without a job, and nothing is stored."""

from pathlib import Path
from typing import Annotated, Any

import typer

from service.cli import panels
from service.cli.output import Json, print_result
from service.cli.renamed import MODE_OPTIONS
from service.cli.verbs.classifier import Name
from service.errors import InvalidInputError


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command(rich_help_panel=panels.DECIDING, context_settings=MODE_OPTIONS)(decide)


def decide(
    name: Name,
    file: Annotated[Path, typer.Argument(help="Exemplars, .npz or .parquet.")],
    row: Annotated[int, typer.Option(min=0, help="Row of the file, counted from 0.")] = 0,
    unweighted: Annotated[bool, typer.Option("--unweighted", help="Use plain Venn probabilities.")] = False,
    require_full_match: Annotated[
        bool, typer.Option("--require-full-match", help="Reject a prediction with q < K.")
    ] = False,
    ef_search: Annotated[
        int | None,
        typer.Option(help="Search by the HNSW index, keeping so many candidates, K to 1000; default: exactly."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Decide on one row of a file at once, by the current calibration, and show why; nothing is stored."""
    from service.cli.session import open_session
    from service.cli.shown.decision_tables import named_classes, neighbour_list, print_decision
    from service.flows.decisions.score_one import PointScorer
    from service.store.database.engine import connect
    from service.store.exemplars import exemplars

    session = open_session()
    external_id, vector = _read_row(session, name, file, row)
    decided = PointScorer(session.engine, session.cache).score(
        name, vector, weighted=not unweighted, require_full_match=require_full_match, hnsw_ef_search=ef_search
    )
    with connect(session.engine) as connection:
        described = exemplars.described(connection, decided.nearest.ids)
    near = list(zip(described, decided.nearest.labels.tolist(), decided.nearest.distances.tolist(), strict=True))
    class_names = decided.classifier.class_names
    if as_json:
        print_result(
            True,
            {
                "external_id": external_id,
                "calibration": decided.calibration_id,
                "class_names": list(class_names),
                **decided.fields,
                **named_classes(decided.fields, class_names),
                "category_counts": decided.category_counts.tolist(),
                "neighbours": neighbour_list(near, class_names),
            },
        )
    else:
        title = f"{external_id}, calibration {decided.calibration_id}"
        print_decision(title, class_names, decided.fields, decided.category_counts, near)


def _read_row(session: Any, name: str, file: Path, row: int) -> tuple[str, Any]:
    """The id and the vector of a row."""
    from service.files import count_rows, read_exemplars
    from service.store.database.engine import connect
    from service.store.exemplars import classifiers

    count = count_rows(file)
    if row >= count:
        raise InvalidInputError(f"{file}: expected a row from 0 to {count - 1}, got {row}")
    with connect(session.engine) as connection:
        classifier = classifiers.by_name(connection, name)
    for batch in read_exemplars(
        file,
        dimension=classifier.dimension,
        class_count=classifier.class_count,
        class_names=classifier.class_names,
        memory_budget=session.memory_budget,
    ):
        if row < batch.first_row + len(batch.vectors):
            return batch.external_ids[row - batch.first_row], batch.vectors[row - batch.first_row]
    raise AssertionError("a file of fewer rows than its headers tell")
