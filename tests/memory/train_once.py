"""`python -m tests.memory.train_once STATES OUT FORM`: trains in a process of its own."""

import sys
from dataclasses import replace
from pathlib import Path

from tests.memory.made_up import SMALL
from venn_admit.service.memory.settings import MemoryForm
from venn_admit.service.memory.states.reader import StateShards
from venn_admit.service.memory.training import train


def main() -> None:
    states, out, form = sys.argv[1:]
    settings = replace(SMALL, form=MemoryForm(form))
    train(StateShards(Path(states)), settings, Path(out), progress=lambda _: None, memory_budget=256 << 20)


if __name__ == "__main__":
    main()
