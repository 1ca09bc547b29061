"""Venn-Abers as a method of calibration."""

from sqlalchemy import Connection, Engine

from venn_admit.service.core.calibrators.venn_abers.settings import VennAbersSettings
from venn_admit.service.flows.methods.venn_abers.decide_one import AbersPointDecider
from venn_admit.service.flows.methods.venn_abers.make import MadeByAbers, make
from venn_admit.service.flows.methods.venn_abers.snapshot import AbersSnapshot, load_snapshot
from venn_admit.service.store.calibrations.setting_forms import MethodSettings
from venn_admit.service.store.exemplars.approximations import StoredParameters
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.search.array_cache import ArrayCache


class VennAbers:
    """The method `venn-abers`; see the protocol `Method` for what it does."""

    weighted_by_default = False

    def make(
        self,
        connection: Connection,
        classifier: Classifier,
        parameters: StoredParameters,
        settings: MethodSettings,
        *,
        memory_budget: int,
    ) -> MadeByAbers:
        assert isinstance(settings, VennAbersSettings)
        return make(connection, classifier, parameters, settings, memory_budget=memory_budget)

    def load(self, engine: Engine, cache: ArrayCache, classifier: Classifier, calibration_id: int) -> AbersSnapshot:
        return load_snapshot(engine, cache, classifier, calibration_id)

    def point_decider(self, engine: Engine, cache: ArrayCache) -> AbersPointDecider:
        return AbersPointDecider(engine, cache)
