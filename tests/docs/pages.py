"""Runs the blocks of a page, in their order, as a reader would type them.

Blocks of `sh` and `python` are run. A block of `text` right behind one of them shows lines of its output; numbers may
differ, since they depend on the processor. Blocks of `console` are for reading: they install something or need a
server.

As a program, which needs nothing but Python, it runs pages in the current folder: `python pages.py PAGE...`
"""

import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d,.]*")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page and the line that it starts at."""

    language: str
    content: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text("utf-8")
    return [
        Block(found["language"], found["content"], text.count("\n", 0, found.start()) + 1)
        for found in FENCE.finditer(text)
    ]


def run_page(page: Path, run_commands: Callable[[str, str], str], names: dict[str, Any]) -> None:
    """Run the blocks of a page.

    Args:
        page: The Markdown.
        run_commands: Runs a block of `sh`; is given the block and where it stands, and returns its output.
        names: What blocks of `python` find and leave.

    Raises:
        AssertionError: A block of `text` shows a line that is not in the output.
    """
    output = ""
    for block in blocks(page):
        where = f"{page.name}, line {block.line}"
        match block.language:
            case "sh":
                output = run_commands(block.content, where)
            case "python":
                with redirect_stdout(StringIO()) as printed:
                    exec(compile(block.content, where, "exec"), names)  # what a reader would type
                output = printed.getvalue()
            case "text" if output:
                shown = [line.rstrip() for line in masked(output).splitlines()]
                for line in block.content.splitlines():
                    if not any(masked(line).strip() in each for each in shown):
                        raise AssertionError(f"{where}: {line!r} is not in the output, which is now\n{output}")
                output = ""


def masked(text: str) -> str:
    """Return text with a sign for each number."""
    return NUMBER.sub("#", text)


def in_a_shell(content: str, where: str) -> str:
    """Run a block of `sh` as a shell does."""
    done = subprocess.run(["sh", "-e", "-c", content], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{where}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    for path in sys.argv[1:]:
        run_page(Path(path), in_a_shell, {"__name__": "__main__"})
        sys.stdout.write(f"{path}: every block does what it says\n")
