"""Pages as answers, under their content policy."""

from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from venn_admit.api.routes.parts import runtime_of
from venn_admit.flows.keys.sessions import form_token
from venn_admit.store.access.keys import Scope
from venn_admit.web.assets import environment

# Everything comes from this host, except images that the page itself holds. Nothing is run or styled from within a
# page, and no other site may frame it.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

# Browsers name the origin of a form only if the policy lets them.
_HEADERS = {"content-security-policy": POLICY, "referrer-policy": "same-origin"}


def page(request: Request, template: str, *, status: int = 200, **shown: Any) -> HTMLResponse:
    """Return a page.

    request: if somebody has signed in, their caller and session are in its state. template: its name without suffixes.
    shown: what the template shows.
    """
    caller = getattr(request.state, "caller", None)
    token = getattr(request.state, "session", None)
    root = root_of(request)
    text = (
        environment()
        .get_template(f"{template}.html.j2")
        .render(
            caller=caller,
            may={str(scope): caller is not None and caller.scope.includes(scope) for scope in Scope},
            form_token=None if token is None else form_token(token),
            place=root + request.url.path,
            root=root,
            address=lambda *parts: Markup(root) + address(*parts),  # noqa: S704 - a setting of the operator
            **shown,
        )
    )
    return HTMLResponse(text, status, headers=_HEADERS)


def root_of(request: Request) -> str:
    """Return the path under which a proxy serves the pages; empty if it is that of a host."""
    return runtime_of(request).settings.root_path


def address(*parts: object) -> Markup:
    """Return the address of a page, below the path under which a proxy serves them all.

    >>> str(address("classifiers", "my reviews", "decisions", 7))
    '/classifiers/my%20reviews/decisions/7'
    """
    # Safe: nothing that HTML reads is left as it is.
    return Markup("/" + "/".join(quote(str(part), safe="") for part in parts))  # noqa: S704


def with_query(there: str, **parameters: str) -> str:
    """Return an address with parameters.

    >>> with_query("/labels", recorded="a b")
    '/labels?recorded=a+b'
    """
    return f"{there}?{urlencode(parameters)}"
