"""Write messages to a shop with every team that each concerns: none, one, two or all three; all are generated.

Run from the checkout: `python -m examples.make_requests FOLDER`. The same seed writes the same files. The label of a
message is a list of teams. Where it names several concerns, the team of the last is left out one time in three, and the
point of the example is to find out which labels one can rely on.
"""

import json
import random
import sys
from pathlib import Path

from examples.make_messages import CONCERNS, JOINTS, TEAMS, VAGUE, written

SEED = 30
SIZES = {"train": 1200, "held-out": 3000, "test": 1000}
SHARES = (0.1, 0.5, 0.3, 0.1)  # of messages with no concern, one, two and three
FORGOTTEN, MISTAKEN = 1 / 3, 0.01  # the last of several teams is left out; any team is added or left out


def request(generator: random.Random) -> tuple[str, list[str]]:
    """Return a message and the teams that it was labelled with."""
    (count,) = generator.choices(range(len(SHARES)), SHARES)
    named = generator.sample(TEAMS, count)
    concerns = [generator.choice(CONCERNS[team]) for team in named] or [generator.choice(VAGUE)]
    text = concerns[0]
    for concern in concerns[1:]:
        text += generator.choice(JOINTS) + concern
    if count > 1 and generator.random() < FORGOTTEN:
        named.pop()
    labels = [team for team in TEAMS if (team in named) != (generator.random() < MISTAKEN)]
    return written(text, generator), labels


def write(folder: Path, seed: int = SEED, sizes: dict[str, int] | None = None) -> None:
    """Write the files to a folder; no message occurs twice, in one file or in two."""
    generator = random.Random(seed)  # noqa: S311
    seen: set[str] = set()
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in (sizes or SIZES).items():
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            written_rows = 0
            while written_rows < size:
                text, labels = request(generator)
                if text not in seen:
                    seen.add(text)
                    print(json.dumps({"id": f"{name}-{written_rows:04}", "text": text, "label": labels}), file=file)
                    written_rows += 1


if __name__ == "__main__":
    write(Path(sys.argv[1]))
