"""What `calibrate` does with --compare: settings are compared on split mc, and nothing of a calibration is stored."""

from collections.abc import Mapping

from venn_admit.cli.output import output, print_result
from venn_admit.cli.waiting import Waiting
from venn_admit.errors import InvalidInputError


def compare_settings(name: str, alpha: str, others: Mapping[str, object], *, details: bool, as_json: bool) -> None:
    """Print what each setting admits of mc, and which command to run next.

    others: by name, the options of `calibrate` that no comparison takes, None if they were not given. details: whether
    every setting is printed, or only those that matter.
    """
    from venn_admit.cli.session import open_session
    from venn_admit.cli.tables.compared_settings import compared_payload, compared_table, next_lines
    from venn_admit.core.calibrators.settings import parse_decimal
    from venn_admit.flows.calibration.compare import compare

    given = [f"--{option}" for option, value in others.items() if value is not None]
    if given:
        raise InvalidInputError(
            "--compare takes no other option than --alpha, --details and --json, because it compares settings of every "
            f"method; got {', '.join(given)}; leave out one or the other"
        )
    session = open_session()
    session.require_worker()
    with Waiting(session) as shell:
        found = compare(session, name, parse_decimal("alpha", alpha), shell=shell)
    if not as_json:
        output.print(compared_table(found, details=details))
    print_result(as_json, compared_payload(found), *next_lines(found))
