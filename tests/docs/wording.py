"""Refuse wording that nobody would say: `python -m tests.docs.wording`, as part of `make lint`; see wording.toml."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
KINDS = ("*.py", "*.ipynb", "*.md", "*.sql", "*.j2", "*.toml", "*.yml", "*.yaml", "Makefile", "Dockerfile", ".ci/*")
# Between two words: blanks and line breaks, with what begins a comment or goes on with a string on the next line.
BREAK = r"""(?:\s|#|--|["'f])+"""
START = r"""(?:^ *|[.:;!?>|(*"#]\s*|\w+: |-- |- )"""
RULES = tomllib.loads((ROOT / "tests/docs/wording.toml").read_text("utf-8"))


def found() -> Iterator[str]:
    """Yield each place with refused wording, and what to write instead."""
    refused = [(re.compile(r"(?<!\w)" + one.replace(" ", BREAK)), why) for one, why in RULES["refused"].items()]
    refused += [(re.compile("(?m)" + START + one), why) for one, why in RULES["refused_at_the_start"].items()]
    listed = subprocess.run(["git", "ls-files", *KINDS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if name.startswith(tuple(RULES["leave"])) or not (ROOT / name).exists():
            continue
        text = (ROOT / name).read_text("utf-8")
        for pattern, why in refused:
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.end()) + 1
                yield f"{name}:{line}: {' '.join(match[0].split())!r}: {why}"


if __name__ == "__main__":
    sys.exit("\n".join(found()) or None)
