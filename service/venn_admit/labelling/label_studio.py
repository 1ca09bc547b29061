"""Label Studio: tasks of a project, by the interface that https://api.labelstud.io describes."""

import time
from collections.abc import Mapping, Sequence

from venn_admit.errors import InvalidInputError, VennAdmitError
from venn_admit.files.reviews.given import GivenLabels, member
from venn_admit.files.reviews.label_studio import labels_in, task
from venn_admit.labelling.tool import BATCH, LabellingTool, paged
from venn_admit.labelling.web import Web, is_token
from venn_admit_client.records.reviews import ReviewPoint

IMPORT_WAITS = (0.2, 0.5, *(1.0,) * 120)
"""Seconds to wait for an import that goes on after the request."""


class LabelStudio(LabellingTool):
    """A project."""

    def __init__(self, base: str, project: str, token: str) -> None:
        """Name the project, by its number. The token is a personal access token, which is a JWT, or a legacy one."""
        self._project, self._token = project, token
        if token.count(".") == 2:
            web = Web(base, {}, token, renew=self._access)
        else:
            web = Web(base, {"Authorization": f"Token {token}"}, token)
        super().__init__(f"{base}/projects/{project}", web)

    def known(self) -> set[str]:
        tasks = paged(
            f"{self.place}: tasks",
            "tasks",
            lambda number, _: self._web.get(
                "api/tasks/", project=self._project, fields="task_only", page=number + 1, page_size=BATCH
            ),
        )
        data = (one.get("data") for one in tasks)
        return {str(one["external_id"]) for one in data if isinstance(one, dict) and "external_id" in one}

    def _add(self, points: Sequence[ReviewPoint]) -> None:
        path = f"api/projects/{self._project}/import"
        answer = self._web.post(path, [task(point) for point in points])
        where = f"{self.place}: import"
        if isinstance(answer, dict) and "import" in answer:
            answer = self._imported(where, member(where, answer, "import", int))
        count = member(where, answer, "task_count", int)
        if count != len(points):
            raise InvalidInputError(f"{where}: expected {len(points):,} tasks, got {count:,}; look into the project")

    def _imported(self, where: str, number: int) -> object:
        """What became of an import that goes on after its request, as it does except in the community edition."""
        for seconds in IMPORT_WAITS:
            answer = self._web.get(f"api/projects/{self._project}/imports/{number}/")
            status = member(where, answer, "status", str)
            if status == "completed":
                return answer
            if status == "failed":
                raise InvalidInputError(
                    f"{where} {number}: expected that it completes, got {self._web.shown(ascii(answer.get('error')))}"
                )
            time.sleep(seconds)
        raise VennAdmitError(
            f"{where} {number}: expected that it completes, got {status!a}; look into it, and push again"
        )

    def labels(self) -> list[GivenLabels]:
        exported = self._web.get(f"api/projects/{self._project}/export", exportType="JSON")
        return labels_in(f"{self.place}: export", exported)

    def _access(self) -> Mapping[str, str]:
        """A personal access token is exchanged for one that signs requests for some minutes."""
        answer = self._web.exchange("api/token/refresh/", {"refresh": self._token})
        access = member(f"{self.place}: token", answer, "access", str)
        if not is_token(access):
            raise InvalidInputError(f"{self.place}: token: access: expected printable ASCII, got something else")
        return {"Authorization": f"Bearer {access}"}
