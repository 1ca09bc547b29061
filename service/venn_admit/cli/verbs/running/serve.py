"""The verb `serve`, which answers over HTTP."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from venn_admit import telemetry
from venn_admit.cli.opening import open_session
from venn_admit.cli.output import messages, print_result, warn

if TYPE_CHECKING:
    from venn_admit.runtime.settings import Settings

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8470


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; only this machine reaches the default.")] = LOOPBACK,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any that is free.")] = DEFAULT_PORT,
) -> None:
    """Answer over HTTP, with a page for browsers, until stopped; requests that are being answered are completed first.

    With the embedded Postgres, the first start makes a key with scope admin, in the file api-key of VENN_ADMIT_HOME,
    which only its owner can read. To listen for other machines, it takes a valid key, or an issuer of tokens.
    """
    from venn_admit.api.server import listen, own_key, require_key, warning_of_address
    from venn_admit.web.site import create_site

    telemetry.begin("api")
    session = open_session()
    warning = warning_of_address(session.settings, host)
    if warning is not None:
        warn(warning)
    if session.settings.database_url is None:
        session.require_home()
        key = own_key(session)
        print_result(False, {}, f"The key is in {key}; requests have it in the header Authorization: Bearer KEY.")
    require_key(session, host)
    messages.print(Text(_limits(session.settings)), soft_wrap=True)
    session.cache.delete_outdated(session.engine)  # what was forgotten since may be in it
    try:
        listen(
            create_site(session),
            host,
            port,
            on_start=lambda url: messages.print(Text(f"Listening on {url}"), soft_wrap=True),
        )
    finally:
        telemetry.end()
        session.engine.dispose()


def _limits(settings: "Settings") -> str:
    decisions, others = (
        f"{rate:,}" if rate else "any number of"
        for rate in (settings.decisions_per_minute, settings.requests_per_minute)
    )
    return (
        f"A key may send {decisions} requests to decide a minute, and {others} others "
        "(VENN_ADMIT_DECISIONS_PER_MINUTE, VENN_ADMIT_REQUESTS_PER_MINUTE)."
    )
