"""Write essays whose wrong words are marked; every one is generated, and nobody wrote or corrected them.

Run from the checkout: `python -m examples.make_essays FOLDER`. The same seed writes the same files: `train.conll`,
`held-out.conll`, `test.conll` and `shifted.conll`, with a line for each word, its label behind it, and a document an
essay. About one word in eleven is an error. The essays of `shifted` are letters on other subjects, with about half the
errors.
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

SEED = 22
SIZES = {"train": 400, "held-out": 1200, "test": 300, "shifted": 300}
CORRECT, ERROR = "correct", "error"
RATES, SHIFTED_RATES = (0.2, 0.5), (0.08, 0.28)
"""How often a writer errs where an error is at hand; each writer has a rate of their own."""
SLIP = 0.015
"""How often two letters of a longer word change places."""

# A word, or the right one and wrong ones that learners write; `{...}` is drawn.
ESSAYS = (
    "My {person} goes/go|going to the {place} every/all {day} .",
    "Last {season} we visited/visit|visits a/an {place} near/nearly the sea .",
    "It was an/a interesting {thing} and everybody enjoyed/enjoy|enjoied it .",
    "I have never seen/saw|see such/so a {adjective} {place} before .",
    "The information/informations about the {thing} was/were wrong .",
    "She has been/be living/live here for/since {number} years/year .",
    "If I had/have more time , I would/will learn/to learn to swim .",
    "He does/do not like/likes getting/to get up early on {day} .",
    "There are/is many/much {adjective} things/thing to see in the {place} .",
    "We were/was tired , because/becouse the {thing} was too long/length .",
    "My {person} told/said me that he/him was waiting/wait at the {place} .",
    "In my opinion , people/peoples should/shoulds spend/to spend less money on/in it .",
    "I am interested/interesting in {adjective} music and my {person} is too .",
    "They arrived/arrive|arrives late , although/despite the train was on/in time .",
    "Nobody knows/know where the {person} bought/buyed that {thing} .",
)
LETTERS = (
    "I am writing/write to complain about/of the {thing} that I ordered/order in {season} .",
    "We would/will be grateful/gratefull if you could/can send/to send it again .",
    "Please find/finds the {adjective} receipt attached/attach to this letter .",
    "Our office is/are open from {day} to {day} and closed/close in {season} .",
    "I look forward to hearing/hear from you soon/early .",
    "The {person} at the desk was not able/possible to help/helping us .",
    "Both/Boths parcels have/has been/be returned/return to the shop .",
    "According to/with the contract , the price includes/include the {thing} .",
)
DRAWN = {
    "person": ("brother", "sister", "teacher", "neighbour", "friend", "cousin", "uncle", "colleague"),
    "place": ("market", "museum", "village", "beach", "library", "theatre", "castle", "harbour", "park"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "season": ("spring", "summer", "autumn", "winter"),
    "thing": ("journey", "concert", "lesson", "film", "meal", "meeting", "book", "exhibition"),
    "adjective": ("beautiful", "quiet", "famous", "modern", "strange", "old", "crowded", "friendly"),
    "number": ("two", "three", "four", "five", "six", "seven", "ten"),
}
Words = list[tuple[str, str]]


def sentence(pattern: str, rate: float, generator: random.Random) -> Words:
    """Return the words of a sentence with their labels; rate: how often an error is made where one is at hand."""
    words = []
    for slot in pattern.split(" "):
        right, _, wrong = slot.partition("/")
        if right.startswith("{"):
            right = generator.choice(DRAWN[right.strip("{}")])
        chosen = generator.choice(wrong.split("|")) if wrong and generator.random() < rate else right
        if len(chosen) > 4 and generator.random() < SLIP:
            chosen = _with_a_slip(chosen, generator)
        words.append((chosen, CORRECT if chosen == right else ERROR))
    return words


def _with_a_slip(word: str, generator: random.Random) -> str:
    place = generator.randrange(1, len(word) - 2)
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def essays(name: str, count: int, generator: random.Random) -> Iterator[list[Words]]:
    """Yield essays of two to five sentences each."""
    shifted = name == "shifted"
    for _ in range(count):
        rate = generator.uniform(*(SHIFTED_RATES if shifted else RATES))
        patterns = generator.sample(LETTERS if shifted else ESSAYS, generator.randint(2, 5))
        yield [sentence(pattern, rate, generator) for pattern in patterns]


def write(folder: Path, seed: int = SEED, sizes: dict[str, int] | None = None) -> None:
    """Write the files to a folder, which is made if it is missing."""
    generator = random.Random(seed)  # noqa: S311
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in (sizes or SIZES).items():
        lines = []
        for number, essay in enumerate(essays(name, size, generator)):
            lines += ["-DOCSTART-", "", f"# id = {name}-{number:04}"]
            for words in essay:
                lines += [*(f"{word}\t{label}" for word, label in words), ""]
        (folder / f"{name}.conll").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
