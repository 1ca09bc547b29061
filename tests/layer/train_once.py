"""`python -m tests.layer.train_once STATES OUT FORM`: trains in a process of its own."""

import sys
from dataclasses import replace
from pathlib import Path

from tests.layer.made_up import SMALL
from venn_admit.layer.settings import LayerForm
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.training import train


def main() -> None:
    states, out, form = sys.argv[1:]
    settings = replace(SMALL, form=LayerForm(form))
    train(StateShards(Path(states)), settings, Path(out), progress=lambda _: None, memory_budget=256 << 20)


if __name__ == "__main__":
    main()
