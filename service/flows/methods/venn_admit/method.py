"""Venn-ADMIT as a method of calibration."""

from sqlalchemy import Connection, Engine

from venn_admit.service.core.types import CalibratorSettings
from venn_admit.service.flows.methods.venn_admit.decide_one import AdmitPointDecider
from venn_admit.service.flows.methods.venn_admit.make import MadeByAdmit, make
from venn_admit.service.flows.methods.venn_admit.snapshot import AdmitSnapshot, load_snapshot
from venn_admit.service.store.calibrations.setting_forms import MethodSettings
from venn_admit.service.store.exemplars.approximations import StoredParameters
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.search.array_cache import ArrayCache


class VennAdmit:
    """The method `venn-admit`; see the protocol `Method` for what it does."""

    weighted_by_default = True

    def make(
        self,
        connection: Connection,
        classifier: Classifier,
        parameters: StoredParameters,
        settings: MethodSettings,
        *,
        memory_budget: int,
    ) -> MadeByAdmit:
        assert isinstance(settings, CalibratorSettings)
        return make(connection, classifier, parameters, settings, memory_budget=memory_budget)

    def load(self, engine: Engine, cache: ArrayCache, classifier: Classifier, calibration_id: int) -> AdmitSnapshot:
        return load_snapshot(engine, cache, classifier, calibration_id)

    def point_decider(self, engine: Engine, cache: ArrayCache) -> AdmitPointDecider:
        return AdmitPointDecider(engine, cache)
