"""Builds the wheel that users install."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build_wheel(folder: Path, *, of: Path = ROOT) -> Path:
    """Build the wheel of a project into an empty folder, and return its path."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=of, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built
