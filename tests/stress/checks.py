"""What is sent beside what Schemathesis draws, what is checked of each answer beside its own checks, and what is noted.

It is loaded by Schemathesis, which runs as a program of its own; `test_openapi.py` reads what is noted.
"""

import os
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import strategies
from schemathesis import Case, CheckContext, HookContext, Response, SerializationContext
from schemathesis.transport.serialization import Binary

from tests.stress.drawn_files import EXEMPLARS, LABELS
from venn_admit.http.headers import REQUEST_ID, SECURITY_HEADERS
from venn_admit_client.bodies import ARROW_STREAM, CSV, PARQUET
from venn_admit_client.codes import Problem

# Stands for a file that the operation takes: what may be drawn does not depend on the operation.
TAKEN = b"a file that is taken"
schemathesis.openapi.format("binary", strategies.just(TAKEN) | strategies.binary())


@schemathesis.serializer(PARQUET, ARROW_STREAM, CSV)
def as_bytes(ctx: SerializationContext, value: Any) -> bytes:
    """Half of what is drawn is a file that is taken, half are bytes that no reader must accept or fail on."""
    if not isinstance(value, Binary):
        return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    if value.data != TAKEN:
        return value.data
    files = LABELS if ctx.case.operation.path.endswith("/labels/file") else EXEMPLARS
    return files[str(ctx.case.media_type)]


@schemathesis.hook
def after_call(context: HookContext, case: Case[Any], response: Response) -> None:  # noqa: ARG001
    """Note which operation was asked, and the status of the answer."""
    with Path(os.environ["VENN_ADMIT_TEST_ANSWERS"]).open("a") as file:
        file.write(f"{response.status_code} {case.operation.label}\n")


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
