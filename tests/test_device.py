"""Whether a device computes is tried in another process, and said before anything depends on it."""

import pytest

from venn_admit.errors import NotReadyError
from venn_admit.runtime.device import require_device


def test_the_processor_needs_no_trial() -> None:
    require_device("cpu")


@pytest.mark.processes
def test_a_device_that_computes_passes() -> None:
    require_device("cpu:0")


@pytest.mark.processes
def test_a_device_that_torch_does_not_know_is_refused_with_its_reason() -> None:
    with pytest.raises(
        NotReadyError, match=r"VENN_ADMIT_DEVICE=nowhere: expected .* got .*nowhere.* set VENN_ADMIT_DEVICE=cpu"
    ):
        require_device("nowhere")
