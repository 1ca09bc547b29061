"""The Dockerfile: two stages, what the program needs, and a user without rights."""

import subprocess
import sysconfig
from pathlib import Path

from tests.deployment.manifests import ROOT, USER

RECIPE = (ROOT / "Dockerfile").read_text()


def lint(file: Path) -> "subprocess.CompletedProcess[str]":
    linter = Path(sysconfig.get_path("scripts")) / "hadolint"
    return subprocess.run([linter, "--no-color", file], capture_output=True, text=True, check=False)


def test_the_linter_finds_nothing(tmp_path: Path) -> None:
    found = lint(ROOT / "Dockerfile")
    assert (found.returncode, found.stdout) == (0, "")
    worse = tmp_path / "Dockerfile"
    worse.write_text(RECIPE.replace("WORKDIR /var/lib/venn-admit", "WORKDIR somewhere"))
    assert "DL3000" in lint(worse).stdout


def test_the_image_is_made_in_two_stages_and_has_what_the_program_needs() -> None:
    build, image = RECIPE.split("\nFROM ")[1:]
    for folder in ("service", "workers", "client", "migrations", "examples"):
        assert f"COPY {folder} {folder}\n" in build
        assert (ROOT / folder).is_dir()
    assert build.count("--constraint constraints.txt") == 2
    assert image.count("COPY") == 1
    assert "COPY --from=build /opt/venn-admit /opt/venn-admit" in image
    assert "pip install" not in image


def test_what_is_copied_into_the_image_is_sent_to_the_build() -> None:
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"}
    copied = {
        source
        for line in RECIPE.splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    }
    assert copied <= sent


def test_the_image_runs_as_a_user_without_rights() -> None:
    assert f"useradd --uid {USER} " in RECIPE
    assert [line for line in RECIPE.splitlines() if line.startswith("USER ")] == [f"USER {USER}:{USER}"]
