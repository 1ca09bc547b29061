"""The verb `db check`: whether a database holds all that it should."""

from venn_admit.cli.options import Json
from venn_admit.cli.output import messages, print_result
from venn_admit.errors import Code, DatabaseError


def check(as_json: Json = False) -> None:
    """Check that a restored or running database is complete, without writing to it.

    Compares the schema with that of this program; exemplars with vectors, digests and labels; neighbour lists;
    snapshots; decisions; and jobs. The exit code is 5 if anything is missing or contradicts itself.
    """
    from venn_admit.cli.session import connect_unchecked
    from venn_admit.cli.tables.rows import table
    from venn_admit.flows.reports.check import check_database

    session = connect_unchecked()
    with messages.status("Checking") as shown:
        checks = check_database(session, on_check=lambda what: shown.update(f"Checking {what}"))
    found = [one for check in checks for one in check.found]
    done = [
        {"what": one.what, "classifier": one.classifier, "rows": one.rows, "damage": len(one.found)} for one in checks
    ]
    damage = [
        {
            "damage": one.damage,
            "meaning": one.damage.meaning,
            "classifier": one.classifier,
            "count": one.count,
            "first": one.first,
        }
        for one in found
    ]
    rows = [
        (
            one.what,
            one.classifier,
            one.rows,
            ", ".join(f"{each.count:,} {each.damage}, the first {each.first}" for each in one.found),
        )
        for one in checks
    ]
    print_result(
        as_json,
        {"complete": not found, "checks": done, "damage": damage},
        table(("checked", "classifier", "rows", "wrong"), rows),
    )
    if found:
        raise DatabaseError(
            f"the database is not complete: {', '.join(sorted({one.damage for one in found}))}; restore a backup that "
            "is, or store again what is missing",
            code=Code.DAMAGED,
        )
