"""The queries that a report offers behind its tables: readers of schema `report` can run them as they are."""

from collections.abc import Sequence

from venn_admit.store.database.statements import filled, statement_names


def offered_queries(
    classifier: str,
    calibration: int,
    setting: int,
    split: str,
    match_edges: Sequence[int],
    part_edges: Sequence[int],
) -> dict[str, str]:
    """Return the SQL of each query by its name, with its parameters written out.

    Args:
        classifier: The classifier's name.
        calibration: The snapshot's number.
        setting: The number of its calibrator.
        split: That the calibration is described by.
        match_edges: Lower edges of the groups of q of the partition map; empty without vectors.
        part_edges: The edges of the tables of traffic by q.
    """
    values: dict[str, int | str | Sequence[int]] = {
        "classifier": classifier,
        "calibration": calibration,
        "setting": setting,
        "split": split,
        "match_edges": match_edges,
        "part_edges": part_edges,
    }
    return {name: filled(f"offered.{name}", values) for name in statement_names("offered")}
