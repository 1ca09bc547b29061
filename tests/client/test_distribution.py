"""The client as a distribution of its own, and as a part of the main one."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import venn_admit
import venn_admit_client as client
from tests.wheels import build_wheel, install, make_environment

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "client" / "venn_admit_client"
# Which would make it heavy, or which an environment with the client alone does not have.
HEAVY = ("torch", "sqlalchemy", "psycopg", "pyarrow", "pydantic", "fastapi", "celery", "rich", "matplotlib")
IMPORTED = """
import sys

from {} import connect

connect("http://127.0.0.1:9", "key").close()
print(*sorted(name for name in sys.modules if name.partition(".")[0] in {}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"), of=ROOT / "client")


@pytest.mark.processes
def test_it_holds_the_client_and_its_license(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        needed = [line for line in archive.read(metadata).decode().splitlines() if line.startswith("Requires-Dist:")]
        license_ = next(name for name in archive.namelist() if name.endswith("licenses/LICENSE"))
        assert archive.read(license_) == (ROOT / "LICENSE").read_bytes()
    files = {path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*") if path.is_file()}
    assert held == {str(file) for file in files if "__pycache__" not in file.parts}
    always = [line for line in needed if "extra ==" not in line]
    assert always == ["Requires-Dist: httpx2>=2", "Requires-Dist: numpy>=2.0"]
    assert [line.partition(";")[0] for line in needed if line not in always] == ["Requires-Dist: pyarrow>=17"]


@pytest.mark.processes
def test_it_is_imported_without_the_rest(wheel: Path, tmp_path: Path) -> None:
    """Installed in a folder of its own, and as a part of the main distribution."""
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(tmp_path)]
    subprocess.run([*install, str(wheel)], check=True)
    for module, folder in (("venn_admit_client", tmp_path), ("venn_admit_client", PACKAGE.parent)):
        done = subprocess.run(
            [sys.executable, "-P", "-c", IMPORTED.format(module, HEAVY)],
            cwd="/",
            env=os.environ | {"PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "\n", module


def test_it_has_the_version_of_the_service() -> None:
    assert client.__version__ == venn_admit.__version__
    assert f'\nversion = "{client.__version__}"\n' in (ROOT / "client" / "pyproject.toml").read_text()


@pytest.mark.wheel
def test_an_empty_environment_with_the_client_alone(wheel: Path, tmp_path: Path) -> None:
    environment = make_environment(tmp_path / "environment")
    install(environment, str(wheel))
    python = str(environment / "bin" / "python")
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    script = IMPORTED.format("venn_admit_client", HEAVY)
    done = subprocess.run([python, "-P", "-c", script], cwd="/", env=kept, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
    lacking = subprocess.run([python, "-P", "-c", "import torch"], cwd="/", env=kept, capture_output=True, check=False)
    assert lacking.returncode == 1
