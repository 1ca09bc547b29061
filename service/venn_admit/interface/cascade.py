"""A cascade: its certificate, and what it serves."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from venn_admit.files.records import Stated
from venn_admit.flows.cascades import manage, serve
from venn_admit.flows.cascades.certify import certify as certify_flow
from venn_admit.flows.decisions.score_one import GivenPoint, as_logits
from venn_admit.interface.advice import advising
from venn_admit.interface.inputs import exemplar_source, vector_of
from venn_admit.interface.shell import ProcessShell
from venn_admit.runtime.workspace import Runtime
from venn_admit_client.asked_cascade import CascadeInterface
from venn_admit_client.interface import Rows
from venn_admit_client.records import CascadeDecision, CascadeReport, Served


class Cascade(CascadeInterface):
    """A cascade that is stored. It is made by `Connection.create_cascade` or `Connection.cascade`."""

    def __init__(self, runtime: Runtime, found: CascadeReport) -> None:
        """Use a runtime that is open, and a cascade that is stored."""
        super().__init__(found)
        self._runtime = runtime

    @advising()
    def calibrate(
        self,
        *,
        alpha: Decimal | str | float | None = None,
        certify: Sequence[str] | str | None = None,
        confidence: Decimal | str | float | None = None,
        test: str | None = None,
    ) -> CascadeReport:
        given = {"alpha": alpha, "certify": certify, "confidence": confidence, "test": test}
        return certify_flow(self._runtime, self.name, given=given)

    @advising()
    def report(self) -> CascadeReport:
        return manage.show(self._runtime.engine, self.name)

    @advising()
    def score(self, *data: Any, progress: Callable[[int, int], object] | None = None) -> Served:
        none = (None,) * 9
        sources = [exemplar_source(Rows(one, *none), memory_budget=self._runtime.memory_budget) for one in data]
        found, _ = serve.score(self._runtime, self.name, sources, shell=ProcessShell(self._runtime).following(progress))
        return found

    @advising()
    def served(self, jobs: Sequence[int]) -> Served:
        return serve.served(self._runtime.engine, self.name, jobs)

    @advising()
    def decide(
        self,
        stage: int,
        vector: Any = None,
        *,
        logits: Any,
        extractor: str | None = None,
        probabilities: bool | None = None,
    ) -> CascadeDecision:
        given = GivenPoint(
            None if vector is None else vector_of(vector, None), vector_of(logits, len(self.classes), "logits")
        )
        (point,) = as_logits([given], probabilities)
        # What stands for logits is one by now.
        stated = None if extractor is None else Stated(extractor, probabilities=False)
        return serve.decide(self._runtime.engine, self._runtime.point_scorer, self.name, stage, point, stated=stated)

    @advising()
    def delete(self) -> None:
        manage.delete(self._runtime.engine, self.name)
