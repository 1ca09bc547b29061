"""A reviewer of a classifier of the service."""

from collections.abc import Collection, Mapping
from typing import Any

from .errors import InvalidInputError
from .given import listed_ids
from .members import from_json
from .records.reviews import Claims, Reviewed
from .reviewer_interface import LEASE_SECONDS, ReviewerInterface
from .transport import Transport


class Reviewer(ReviewerInterface):
    """A reviewer of a classifier. It is made by `Classifier.reviewer`.

    To see what is held needs a key of the scope `read`, and all else needs `write`.
    """

    def __init__(self, transport: Transport, classifier: str, name: str) -> None:
        """Use a transport."""
        super().__init__(classifier, name)
        self._transport = transport

    def claim(self, count: int = 1, *, lease: float = LEASE_SECONDS, again: bool = False) -> Claims:
        return from_json(Claims, self._post("claims", count=count, lease_seconds=lease, again=again))

    def held(self) -> Claims:
        found = self._transport.get("classifiers", self._classifier, "review", "claims", reviewer=self.name)
        return from_json(Claims, found)

    def renew(self, ids: Collection[str] | None = None, *, lease: float = LEASE_SECONDS) -> int:
        count: int = self._post(
            "renewals", external_ids=listed_ids("ids", ids, InvalidInputError), lease_seconds=lease
        )["renewed"]
        return count

    def release(self, ids: Collection[str] | None = None) -> int:
        count: int = self._post("releases", external_ids=listed_ids("ids", ids, InvalidInputError))["released"]
        return count

    def label(self, labels: Mapping[str, str | int], *, resolve: bool = False) -> Reviewed:
        if not isinstance(labels, Mapping):
            raise InvalidInputError(f"labels: expected a dictionary or another mapping, got {labels!r:.200}")
        rows = [{"external_id": str(one), "label": label} for one, label in labels.items()]
        return from_json(Reviewed, self._post("labels", labels=rows, resolve=resolve))

    def _post(self, route: str, **body: Any) -> dict[str, Any]:
        sent = {"reviewer": self.name, **body}
        return self._transport.post("classifiers", self._classifier, "review", route, body=sent)
