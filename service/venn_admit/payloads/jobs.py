"""Jobs as JSON has them."""

from typing import Any

from venn_admit.flows.jobs.listing import ShownJob
from venn_admit.payloads.rows import plain


def job_payload(found: ShownJob) -> dict[str, Any]:
    """Return a job, its progress, and its chunks if they were asked for."""
    return {
        **plain(found.summary),
        "chunk_states": [plain(row) for row in found.states],
        "chunk_list": [plain(row) for row in found.chunks],
    }
