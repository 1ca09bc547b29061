"""`python -m tests.layer.train_until_killed STATES OUT EPOCH TOKENS`: trains, and kills itself at that point.

It is killed within the epoch, after a number of tokens, or as the epoch ends if there are fewer.
"""

import os
import signal
import sys
from pathlib import Path

from tests.layer.made_up import SMALL
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.training import TrainingProgress, train


def main() -> None:
    states, out, epoch, tokens = sys.argv[1:]

    def die(progress: TrainingProgress) -> None:
        if progress.epoch == int(epoch) and (progress.finished or progress.tokens >= int(tokens)):
            os.kill(os.getpid(), signal.SIGKILL)

    train(StateShards(Path(states)), SMALL, Path(out), progress=die, memory_budget=256 << 20)


if __name__ == "__main__":
    main()
