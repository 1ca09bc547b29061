"""A reviewer of a classifier, in this process."""

from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path

from venn_admit.errors import InvalidInputError
from venn_admit.files.reviews.formats import format_of
from venn_admit.flows.reviews.claims import claim, holding, release, renew
from venn_admit.flows.reviews.exchange import export_points, import_labels
from venn_admit.flows.reviews.labels import give
from venn_admit.flows.reviews.tools import pull, push
from venn_admit.interface.advice import advising
from venn_admit.interface.arguments import checking_arguments
from venn_admit.labelling.places import tool_at
from venn_admit.labelling.tool import LabellingTool
from venn_admit.runtime.workspace import Runtime
from venn_admit_client.given import listed_ids
from venn_admit_client.records.reviews import Claims, Pushed, Reviewed
from venn_admit_client.reviewer_interface import FILE_LEASE, FILE_POINTS, LEASE_SECONDS, ReviewerInterface


@checking_arguments
class Reviewer(ReviewerInterface):
    """A reviewer of a classifier. It is made by `Classifier.reviewer`."""

    def __init__(self, runtime: Runtime, classifier: str, name: str) -> None:
        """Use a runtime that is open."""
        super().__init__(classifier, name)
        self._runtime = runtime

    @advising()
    def claim(self, count: int = 1, *, lease: float = LEASE_SECONDS, again: bool = False) -> Claims:
        return claim(self._runtime.engine, self._classifier, self.name, count=count, lease_seconds=lease, again=again)

    @advising()
    def export(
        self,
        out: str | PathLike[str],
        *,
        format: str | None = None,  # noqa: A002 - as on the command line
        count: int = FILE_POINTS,
        lease: float = FILE_LEASE,
    ) -> Claims:
        """Claim points, and write all that are held to a file, for a sheet or a tool for labelling.

        Args:
            out: The file, .csv, or .json for the tools.
            format: `csv`, `label-studio` or `argilla`; by default csv for a .csv file.
            count: As in `claim`.
            lease: As in `claim`; a week by default.

        Raises:
            InvalidInputError: A value is out of range, or the file cannot be written.
        """
        path = Path(out)
        wanted = format_of(format, path)
        engine = self._runtime.engine
        return export_points(engine, self._classifier, self.name, path, wanted, count=count, lease_seconds=lease)

    @advising()
    def import_labels(
        self,
        file: str | PathLike[str],
        *,
        format: str | None = None,  # noqa: A002 - as on the command line
    ) -> tuple[Reviewed, ...]:
        """Record the labels of a file that `export` wrote and people filled in, or that a tool has exported.

        Each label is that of the reviewer whom the file names, or else of this one. Again, it is a no-op.

        Args:
            file: The file.
            format: As in `export`.

        Returns:
            What became of the labels of each reviewer.

        Raises:
            InvalidInputError: The file is invalid, or a label is of no class.
            NotFoundError: An id is not stored.
        """
        path = Path(file)
        wanted = format_of(format, path)
        runtime, classifier = self._runtime, self._classifier
        budget = runtime.memory_budget
        return tuple(import_labels(runtime.engine, classifier, path, wanted, reviewer=self.name, memory_budget=budget))

    @advising()
    def push(
        self, address: str, *, token: str | None = None, count: int = FILE_POINTS, lease: float = FILE_LEASE
    ) -> Pushed:
        """Claim points, and send those that are held to Label Studio or Argilla, except for what is there.

        Args:
            address: A project of Label Studio or dataset of Argilla, as the browser shows it: https://host/projects/12
                or https://host/dataset/ID.
            token: A token of Label Studio, or an API key of Argilla; by default that of the setting `review_token`.
            count: As in `claim`.
            lease: As in `claim`; a week by default.

        Raises:
            InvalidInputError: A value is invalid, or the tool refuses; what it took stays there.
            VennAdmitError: The tool cannot be reached, or fails; what it took stays there.
        """
        with self._tool(address, token) as tool:
            return push(self._runtime.engine, self._classifier, self.name, tool, count=count, lease_seconds=lease)

    @advising()
    def pull(self, address: str, *, token: str | None = None) -> tuple[Reviewed, ...]:
        """Record the labels that were given in Label Studio or Argilla; again, it is a no-op.

        Each label is that of the user who gave it there, or else of this reviewer.

        Args:
            address: As in `push`.
            token: As in `push`.

        Returns:
            What became of the labels of each reviewer who gave new ones.

        Raises:
            InvalidInputError: A value is invalid, the tool refuses, or a label is of no class; nothing is recorded.
            VennAdmitError: The tool cannot be reached, or fails; nothing is recorded.
            NotFoundError: An id is not stored.
        """
        runtime = self._runtime
        with self._tool(address, token) as tool:
            found = pull(
                runtime.engine, self._classifier, tool, reviewer=self.name, memory_budget=runtime.memory_budget
            )
        return tuple(found)

    def _tool(self, address: str, token: str | None) -> LabellingTool:
        given = self._runtime.settings.review_token if token is None else token
        if given is None:
            raise InvalidInputError("token: expected one, here or in VENN_ADMIT_REVIEW_TOKEN, got none; give it")
        return tool_at(address, given)

    @advising()
    def held(self) -> Claims:
        return holding(self._runtime.engine, self._classifier, self.name)

    @advising()
    def renew(self, ids: Collection[str] | None = None, *, lease: float = LEASE_SECONDS) -> int:
        wanted = listed_ids("ids", ids, InvalidInputError)
        return renew(self._runtime.engine, self._classifier, self.name, wanted, lease_seconds=lease)

    @advising()
    def release(self, ids: Collection[str] | None = None) -> int:
        return release(self._runtime.engine, self._classifier, self.name, listed_ids("ids", ids, InvalidInputError))

    @advising()
    def label(self, labels: Mapping[str, str | int], *, resolve: bool = False) -> Reviewed:
        given = {str(one): label for one, label in labels.items()}
        runtime, classifier = self._runtime, self._classifier
        return give(runtime.engine, classifier, self.name, given, resolves=resolve, memory_budget=runtime.memory_budget)
