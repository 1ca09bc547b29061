"""`python -m tests.layer.peak_of_training STATES OUT MEMORY_BUDGET`: trains, and prints by how many bytes it grew.

Run as a program of its own: what others hold in memory, or have held, does not count.
"""

import sys
from pathlib import Path

from tests.files.read_hostile import forget_peak, memory
from venn_admit.layer.settings import LayerForm, LayerSettings
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.training import train


def main() -> None:
    states, out, memory_budget = sys.argv[1:]
    settings = LayerSettings(LayerForm.DOCUMENT, filters=64, max_epochs=1)
    forget_peak()
    before = memory("VmRSS")
    train(StateShards(Path(states)), settings, Path(out), progress=lambda _: None, memory_budget=int(memory_budget))
    sys.stdout.write(f"{memory('VmHWM') - before}\n")


if __name__ == "__main__":
    main()
