"""The OpenAPI document of the HTTP service, and the reference of its routes made from it.

`python -m docs.generate.openapi` prints the document, to compare it with that of another version.
"""

import json
import sys
from typing import Any

from docs.generate.markdown import join, one_line, plain, table
from venn_admit.api.application import ROUTERS, document
from venn_admit.errors import Code
from venn_admit.http.guards.guard import GuardedRoute, guard_of
from venn_admit.http.problems import STATUS, TITLES
from venn_admit_client.codes import Problem

INTRODUCTION = """\
# HTTP

`venn-admit serve` answers over HTTP; [how to use it](../how-to/http.md) shows how to start it and how to make a key.
The complete document, with every field, its bounds and examples, is [openapi.json](openapi.json); a running service has
it at `/v1/openapi.json`, and shows it to people at `/docs`.

Requests and answers are JSON, except for the files of bulk data. The members of an answer have the names that `--json`
has on the command line. NaN and infinities, which JSON lacks, are the texts `nan`, `inf` and `-inf`. A request with a
member that is not known is refused."""

SCOPES = """\
## Keys and scopes

A key has one scope, and each scope includes those before it:

1. `read`: see what is stored, and have decisions computed again;
2. `score`: also decide on points, and send files to be scored;
3. `write`: also store exemplars and labels, calibrate, and retire settings;
4. `admin`: also create and rename classifiers, and read the audit ledger.

A key may be for one classifier alone. Then every other one is refused to it, whether it exists or not, and so are
requests that are about no classifier in particular, except the list of classifiers, which has its own alone. A key is
256 random bits, of which the database keeps a digest; it may expire, and it can be revoked at any time."""

PAGES = """\
## Pages and tags

Lists go from the newest to the oldest, and the list of classifiers goes by name. An answer has at most `limit` rows and
a `next_cursor`, with which the next request goes on; it is null on the last page. What arrives meanwhile shifts
no page.

A calibration never changes, except that another is put in use. Its answer has an `ETag`: a request with
`If-None-Match` is answered by status 304 and no body as long as nothing has changed. Clients that ask for
`/v1/classifiers/NAME/calibration` again and again thus learn at little cost when another calibration is in use.

`/v1/classifiers/NAME/settings` has what of a classifier can be changed: its name, and which settings are retired. A
change needs `If-Match` with the `ETag` of the settings as they were last read (status 428 without it). If somebody has
changed them since, the status is 412, and nothing is changed. What changes by itself, such as the calibration of a
setting, is not part of it."""

LIMITS = """\
## Limits

A body has at most 32 MiB (status 413) and is nested at most 32 deep; a request decides on at most 1,000 points, stores
at most 1,000 exemplars or records at most 5,000 labels (status 422). A body must come within 20 seconds, a large one at
64 KiB a second or more (status 408), and is never compressed (status 415). A route that needs no body takes one of at
most 4 KiB and does not use it. A connection that sends no request for 20 seconds is closed. Larger amounts are sent as
files, whose bodies have limits of their own:

| what | limit | status | code |
|---|---|---|---|
| bytes of a file | `VENN_ADMIT_UPLOAD_MB` | 413 | `body-too-large` |
| seconds until it has arrived | `VENN_ADMIT_UPLOAD_SECONDS` | 408 | `body-too-slow` |
| memory that reading it takes, decompressed | `VENN_ADMIT_MEMORY_BUDGET_MB` | 422 | `invalid-input` |
| columns | 1,000 | 422 | `invalid-input` |
| files that a key sends to one process at a time | 4 | 429 | `too-many` |
| running jobs of a key, in all processes of the service | `VENN_ADMIT_JOBS_PER_KEY` | 429 | `too-many` |
| requests of a key that one process is answering | `VENN_ADMIT_CONCURRENT_REQUESTS_PER_KEY` | 429 | `too-many` |
| streams of events of a key that one process sends | 50 | 429 | `too-many` |
| streams of events of one process | 500 | 429 | `too-many` |

A key may send 600,000 requests to decide a minute to one process (`VENN_ADMIT_DECISIONS_PER_MINUTE`), 6,000 others
(`VENN_ADMIT_REQUESTS_PER_MINUTE`), and 1,000 of each kind at once (`VENN_ADMIT_REQUESTS_BURST`). Every answer says how
many of its kind are left, in the headers `RateLimit` and `RateLimit-Policy` of
the IETF's draft; one more is refused with status 429 and the code `too-many-requests`. A process that is answering as
many requests as it can (`VENN_ADMIT_CONCURRENT_REQUESTS`) refuses further ones with status 503 and the code `too-busy`,
and so does one whose memory for bodies is full (`VENN_ADMIT_BODY_BUDGET_MB`, files aside).
All these refusals with status 429 or 503 say in `Retry-After` after how many seconds to try again."""

ERRORS = """\
## Errors

Every error is `application/problem+json` (RFC 9457) with the members `type`, `title`, `status`, `detail`, `code` and
`parameters`. `code` is one of the [reference of errors](errors.md) or of the table below, and `detail` says what the
command line would say, except that it names requests instead of commands. If values of a request are invalid,
`errors` says where each stands and what was expected. What is wrong with the database or the broker is told
in the log alone, under the number in the header `X-Request-ID`."""

OTHER_CODES = "These codes are of HTTP alone:"


def openapi_text() -> str:
    """Return the document as the site has it."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def http_page() -> str:
    """Return the page: one row a route, in the order in which they are defined."""
    rows = []
    for route in (route for router in ROUTERS for route in router.routes):
        assert isinstance(route, GuardedRoute)
        guard = guard_of(route)
        scope = "none" if guard is None else f"`{guard.scope}`"
        if guard is not None and guard.every_classifier:
            scope += ", for all classifiers"
        said = plain(one_line(route.description))
        rows += [(f"`{method} {route.path}`", scope, said) for method in sorted(route.methods or ())]
    statuses = [(f"`{code}`", str(STATUS[code]), TITLES[code.family]) for code in Code if code in STATUS]
    problems = [(f"`{problem}`", problem.heading) for problem in Problem]
    return join(
        INTRODUCTION,
        "## Routes",
        table(["route", "scope of the key", "what it does"], rows),
        SCOPES,
        PAGES,
        LIMITS,
        ERRORS,
        "A code has the status of its family, except for those of their own:",
        table(["family or code", "status", "title"], statuses),
        OTHER_CODES,
        table(["code", "title"], problems),
    )


def references(value: Any) -> set[str]:
    """Return every reference within a document."""
    match value:
        case dict():
            found = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return found.union(*map(references, value.values()))
        case list():
            return set().union(*map(references, value))
    return set()


if __name__ == "__main__":
    sys.stdout.write(openapi_text())
