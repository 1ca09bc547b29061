"""What is checked of each answer beside the checks that Schemathesis has."""

from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, Response, SerializationContext

from venn_admit.service.api.headers import REQUEST_ID, SECURITY_HEADERS
from venn_admit.service.api.problems import Problem


@schemathesis.serializer("application/vnd.apache.parquet", "application/vnd.apache.arrow.stream")
def as_bytes(ctx: SerializationContext, value: Any) -> bytes:  # noqa: ARG001
    """A file of drawn bytes, which no reader must accept or fail on."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@schemathesis.check
def refused_only_for_what_the_document_lacks(ctx: CheckContext, response: Response, case: Case[Any]) -> None:  # noqa: ARG001
    """A request that is as the document says may contradict what is stored, but it is never invalid."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 422:
        return
    problem = response.json()
    assert problem["code"] != Problem.INVALID_REQUEST, f"the document allows what is refused: {problem['detail']}"


@schemathesis.check
def has_what_surrounds_every_answer(ctx: CheckContext, response: Response, case: Case[Any]) -> None:  # noqa: ARG001
    """Whatever is asked, the answer has the security headers and the number to find it by in the log."""
    missing = {REQUEST_ID, *SECURITY_HEADERS} - set(response.headers)
    assert not missing, f"the answer lacks {sorted(missing)}"
