"""A cascade: its certificate, and what it serves."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from venn_admit.files.records import Stated
from venn_admit.flows.cascades import manage, serve
from venn_admit.flows.cascades.certify import cascade_settings_for, certify
from venn_admit.flows.decisions.score_one import GivenPoint, as_logits
from venn_admit.interface.advice import advising
from venn_admit.interface.arguments import checking_arguments
from venn_admit.interface.inputs import exemplar_source, vector_of
from venn_admit.interface.shell import ProcessShell
from venn_admit.runtime.workspace import Runtime
from venn_admit_client.cascade_interface import CascadeInterface
from venn_admit_client.interface import Rows
from venn_admit_client.records.cascades import CascadeDecision, CascadeReport, Served


@checking_arguments
class Cascade(CascadeInterface):
    """A cascade that is stored. It is made by `Connection.create_cascade` or `Connection.cascade`."""

    def __init__(self, runtime: Runtime, found: CascadeReport) -> None:
        """Use a runtime that is open, and a cascade that is stored."""
        super().__init__(found)
        self._runtime = runtime

    @advising()
    def _calibrate(self, given: Mapping[str, Any], *, progress: Callable[[int, int], object] | None) -> CascadeReport:
        shell = ProcessShell(self._runtime, progress)
        return certify(self._runtime, self.name, cascade_settings_for(given), shell=shell)

    @advising()
    def report(self) -> CascadeReport:
        return manage.show(self._runtime.engine, self.name)

    @advising()
    def score(self, *data: Any, progress: Callable[[int, int], object] | None = None) -> Served:
        sources = [exemplar_source(Rows(one), memory_budget=self._runtime.memory_budget) for one in data]
        found, _ = serve.score(self._runtime, self.name, sources, shell=ProcessShell(self._runtime, progress))
        return found

    @advising()
    def served(self, jobs: Sequence[int]) -> Served:
        return serve.served(self._runtime.engine, self.name, jobs)

    @advising()
    def _decide(self, stage: int, vector: Any, logits: Any, **stated: Any) -> CascadeDecision:
        given = GivenPoint(
            None if vector is None else vector_of(vector, None), vector_of(logits, len(self.classes), "logits")
        )
        (point,) = as_logits([given], stated["probabilities"])
        # What stands for logits is one by now.
        source = None if stated["extractor"] is None else Stated(stated["extractor"], probabilities=False)
        return serve.decide(self._runtime.engine, self._runtime.point_scorer, self.name, stage, point, stated=source)

    @advising()
    def delete(self) -> None:
        manage.delete(self._runtime.engine, self.name)
