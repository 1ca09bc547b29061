"""A reviewer of a classifier, in this process."""

from collections.abc import Collection, Mapping

from venn_admit.flows.reviews.claims import claim, holding, release, renew
from venn_admit.flows.reviews.labels import give
from venn_admit.interface.advice import advising
from venn_admit.runtime.workspace import Runtime
from venn_admit_client.asked_reviews import ReviewerInterface
from venn_admit_client.records import Claims, Reviewed


class Reviewer(ReviewerInterface):
    """A reviewer of a classifier. It is made by `Classifier.reviewer`."""

    def __init__(self, runtime: Runtime, classifier: str, name: str) -> None:
        """Use a runtime that is open."""
        super().__init__(classifier, name)
        self._runtime = runtime

    @advising()
    def claim(self, count: int = 1, *, lease: float = 900.0, again: bool = False) -> Claims:
        return claim(self._runtime.engine, self._classifier, self.name, count=count, lease_seconds=lease, again=again)

    @advising()
    def held(self) -> Claims:
        return holding(self._runtime.engine, self._classifier, self.name)

    @advising()
    def renew(self, ids: Collection[str] | None = None, *, lease: float = 900.0) -> int:
        return renew(self._runtime.engine, self._classifier, self.name, _listed(ids), lease_seconds=lease)

    @advising()
    def release(self, ids: Collection[str] | None = None) -> int:
        return release(self._runtime.engine, self._classifier, self.name, _listed(ids))

    @advising()
    def label(self, labels: Mapping[str, str | int], *, resolve: bool = False) -> Reviewed:
        given = {str(one): label for one, label in labels.items()}
        return give(self._runtime.engine, self._classifier, self.name, given, resolves=resolve)


def _listed(ids: Collection[str] | None) -> list[str] | None:
    return None if ids is None else [str(one) for one in ids]
