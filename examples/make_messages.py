"""Write `messages`: customers' messages to a shop, with the team that answered each; every one is generated.

Run from the checkout: `python -m examples.make_messages`. The same seed writes the same files.

About one message in six cannot be assigned for certain: it names the concerns of two teams, or of none, or was filed
wrongly. A network can be right for nine in ten, and the point of the example is to find out which nine.
"""

import csv
import random
import sys
from collections.abc import Sequence
from pathlib import Path

SEED = 20
SIZES = {"train": 800, "held-out": 1500, "test": 300, "new": 100}
TEAMS = ("billing", "delivery", "product")

PRODUCTS = (
    "kettle", "desk lamp", "rain jacket", "bike light", "headphones", "toaster", "backpack", "office chair", "blender",
    "phone case", "coffee grinder", "tent", "running shoes", "water bottle", "keyboard", "curtains", "frying pan",
)  # fmt: skip
CONCERNS = {
    "billing": (
        "you charged my card twice for the {product}",
        "the invoice for the {product} shows the wrong address",
        "I still have not got my money back for the {product}",
        "the discount code did not work when I paid for the {product}",
        "I need a receipt with tax for the {product}",
        "my bank says that the payment for the {product} was declined",
        "there is a fee on my statement that I do not recognise",
        "the price at checkout was higher than the one on the page of the {product}",
        "I would like to pay for the {product} in instalments",
        "my gift card was not applied to the order",
    ),
    "delivery": (
        "the {product} was supposed to arrive on {day} and it has not",
        "the tracking has not changed since {day}",
        "the courier left the parcel with a neighbour I do not know",
        "I will not be at home on {day}, can the parcel come later",
        "the parcel with the {product} went to my old address",
        "the box arrived soaked and torn open",
        "I was waiting all {day} and nobody rang the bell",
        "can I pick the {product} up at a shop instead",
        "the driver wrote that nobody was in, which is not true",
        "only one of the two parcels has come",
    ),
    "product": (
        "the {product} stopped working after {number} days",
        "the {product} is the wrong colour",
        "there is a crack in the {product}",
        "the {product} makes a strange noise when I use it",
        "the {product} is much smaller than in the pictures",
        "a part of the {product} is missing",
        "I cannot work out how to put the {product} together",
        "does the {product} come with a warranty",
        "the {product} smells of burnt plastic",
        "the zip of the {product} broke on the first day",
    ),
}
VAGUE = (
    "please call me back about my order",
    "I have written {number} times now and nobody answers",
    "something is wrong with my order of the {product}",
    "I want to send the {product} back",
    "this is the last time that I order from you",
    "can somebody help me with order {order}",
)
OPENINGS = ("", "", "Hello, ", "Hi there, ", "Good morning, ", "Dear team, ", "Sorry to bother you, but ", "Again: ")
CLOSINGS = (
    "", "", "", " Thanks.", " Please advise.", " What can I do?", " My order is {order}.", " I am rather annoyed.",
    " Best regards.", " Could you look into it?",
)  # fmt: skip
JOINTS = (", and also ", ". Besides, ", "; by the way, ", ". On top of that ")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
CHANNELS = ("mail", "form", "chat")

TWO_CONCERNS, NO_CONCERN, MISFILED, TYPING_ERROR = 0.12, 0.04, 0.02, 0.15
FIRST_CONCERN_COUNTS = 0.75  # how often the team of the first of two concerns answers


def message(generator: random.Random) -> tuple[str, str]:
    """Return a message and the team that answered it."""
    team = generator.choice(TEAMS)
    concern = generator.choice(CONCERNS[team])
    kind = generator.random()
    if kind < TWO_CONCERNS:
        other = generator.choice([one for one in TEAMS if one != team])
        pair = [concern, generator.choice(CONCERNS[other])]
        if generator.random() > FIRST_CONCERN_COUNTS:
            pair.reverse()
        concern = generator.choice(JOINTS).join(pair)
    elif kind < TWO_CONCERNS + NO_CONCERN:
        concern = generator.choice(VAGUE)
    elif kind < TWO_CONCERNS + NO_CONCERN + MISFILED:
        team = generator.choice([one for one in TEAMS if one != team])
    return written(concern, generator), team


def written(concern: str, generator: random.Random) -> str:
    """Return a message with a concern: what comes before and after it, its blanks filled, and perhaps an error."""
    opening = generator.choice(OPENINGS)
    text = opening + (concern if opening else concern[0].upper() + concern[1:]) + "." + generator.choice(CLOSINGS)
    filled = text.format(
        product=generator.choice(PRODUCTS),
        day=generator.choice(DAYS),
        number=generator.randrange(2, 30),
        order=generator.randrange(10_000, 99_999),
    )
    return _with_a_typing_error(filled, generator) if generator.random() < TYPING_ERROR else filled


def _with_a_typing_error(text: str, generator: random.Random) -> str:
    place = generator.randrange(1, len(text) - 2)
    return text[:place] + text[place + 1] + text[place] + text[place + 2 :]


def write(folder: Path, seed: int = SEED, sizes: dict[str, int] | None = None) -> None:
    """Write the files to a folder; no message occurs twice, in one file or in two, and new ones have no team yet."""
    generator = random.Random(seed)  # noqa: S311
    seen: set[str] = set()
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in (sizes or SIZES).items():
        rows: list[Sequence[str]] = []
        while len(rows) < size:
            text, team = message(generator)
            if text not in seen:
                seen.add(text)
                rows.append((f"{name}-{len(rows):04}", text, team, generator.choice(CHANNELS)))
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            labelled = name != "new"
            for row in [("id", "text", "label", "channel"), *rows]:
                writer.writerow(row if labelled else (*row[:2], row[3]))


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "messages")
