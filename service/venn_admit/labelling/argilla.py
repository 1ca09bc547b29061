"""Argilla 2: records of a dataset, by the interface that its server describes under /api/docs."""

from collections.abc import Iterator, Sequence
from typing import Any

from venn_admit.errors import InvalidInputError
from venn_admit.files.reviews.argilla import asked, exported_record
from venn_admit.files.reviews.given import GivenLabels, OneLabel, by_reviewer, member, shown_name
from venn_admit.labelling.tool import BATCH, LabellingTool, paged
from venn_admit.labelling.web import Web
from venn_admit_client.records.reviews import ReviewPoint


class Argilla(LabellingTool):
    """A dataset."""

    def __init__(self, base: str, dataset: str, token: str) -> None:
        """Name the dataset, by its id. The token is the API key of an owner or admin."""
        super().__init__(f"{base}/dataset/{dataset}", Web(base, {"X-Argilla-Api-Key": token}, token))
        self._path = f"api/v1/datasets/{dataset}"

    def known(self) -> set[str]:
        return {str(one["external_id"]) for one in self._records() if one.get("external_id") is not None}

    def _records(self, **include: str) -> list[Any]:
        return paged(
            f"{self.place}: records",
            "items",
            lambda _, offset: self._web.get(f"{self._path}/records", offset=offset, limit=BATCH, **include),
        )

    def _add(self, points: Sequence[ReviewPoint]) -> None:
        items = list(self._taken(points))
        answer = self._web.post(f"{self._path}/records/bulk", {"items": items})
        where = f"{self.place}: records"
        created = member(where, answer, "items", list)
        if len(created) != len(items):
            raise InvalidInputError(f"{where}: expected {len(items):,} of them, got {len(created):,}; look into it")

    def _taken(self, points: Sequence[ReviewPoint]) -> Iterator[dict[str, Any]]:
        """Points as records, with what the dataset has fields and metadata for: it refuses others."""
        fields = self._names("fields", f"{self._path}/fields")
        takes_all = member(self.place, self._web.get(self._path), "allow_extra_metadata", bool)
        properties = self._names("metadata", f"api/v1/me/{self._path.removeprefix('api/v1/')}/metadata-properties")
        for point in points:
            record = exported_record(point)
            given = {"external_id": point.id, **record["fields"]}
            yield {
                "external_id": point.id,
                "fields": {name: one for name, one in given.items() if name in fields},
                "metadata": {name: one for name, one in record["metadata"].items() if takes_all or name in properties},
            }

    def _names(self, what: str, path: str) -> set[str]:
        where = f"{self.place}: {what}"
        return {member(where, one, "name", str) for one in member(where, self._web.get(path), "items", list)}

    def labels(self) -> list[GivenLabels]:
        records = self._records(include="responses")
        return by_reviewer(
            one
            for number, each in enumerate(records)
            for one in _of_record(f"{self.place}: record {shown_name(each, 'external_id', number)}", each)
        )


def _of_record(where: str, each: object) -> Iterator[OneLabel]:
    """The labels of a record: its responses, except for drafts and those that were discarded."""
    for response in member(where, each, "responses", list):
        if member(f"{where}: responses", response, "status", str) != "submitted":
            continue
        answer = asked(where, member(f"{where}: responses", response, "values", dict))
        value = member(f"{where}: responses", answer, "value", str)
        user = response.get("user_id")
        at = member(f"{where}: responses", response, "updated_at", str)
        external_id = member(where, each, "external_id", str)
        yield OneLabel(None if user is None else f"Argilla {user}", external_id, value, at)
