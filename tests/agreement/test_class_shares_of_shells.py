"""Every shell certifies documents of several points for declared class shares, and all find the same certificate."""

from typing import Any

import numpy as np
import pytest

import venn_admit
from tests.api.conftest import remote_client, serving
from tests.cli.databases import on_database
from tests.conftest import fresh_database
from tests.flows.logits import NAME, exemplars
from venn_admit.store.access.keys import Scope


def test_documents_are_certified_alike(
    server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("shares")
    np.savez(folder / "held-out.npz", **exemplars("held-out", 1500, seed=1))
    shares = ["0.5", "0.3", "0.2"]
    with fresh_database(server_url, template_database) as url:
        program = on_database(url, folder / "home")
        assert program("create", NAME, "--classes", "a,b,c", "--logits-only").code == 0
        assert program("ingest", NAME, folder / "held-out.npz", "--split", "held-out").code == 0
        asked = ("--alpha", "0.2", "--certify", "predicted", "--class-shares", ",".join(shares))
        by_command = program("calibrate", NAME, *asked, "--json").result["certificate"]
        settings: dict[str, Any] = {"alpha": "0.2", "certify": ["predicted"], "class_shares": shares}
        with (
            serving(program) as service,
            remote_client(service) as remote,
            venn_admit.connect(program.url, home=program.home) as connection,
        ):
            answer = service.post(f"/v1/classifiers/{NAME}/calibrations", settings, key=Scope.ADMIN).json()
            records = [of.classifier(NAME).calibrate(**settings).certificate for of in (connection, remote)]
    assert answer["certificate"] == by_command
    assert [None if one is None else dict(one.document) for one in records] == [by_command] * 2
    assert by_command["certified"]
    assert by_command["documents"] < by_command["points"]
    assert by_command["class_shares"]["shares"] == shares
