"""Builds the wheel that users install, and installs it."""

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


def make_environment(folder: Path) -> Path:
    """Make an empty virtual environment, without pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


def install(environment: Path, *requirements: str) -> None:
    """Install into a virtual environment what was tested, by the pip of this one."""
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    pip += ["install", "--quiet", "--no-compile", "--constraint", str(ROOT / "constraints.txt")]
    done = subprocess.run([*pip, *requirements], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
