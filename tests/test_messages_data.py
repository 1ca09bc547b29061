"""The bundled messages are what examples/make_messages.py writes, and no message is in two files."""

from pathlib import Path

import venn_admit
from examples import make_messages
from venn_admit.layer.texts.source import TextFile


def test_the_script_writes_what_is_bundled(tmp_path: Path) -> None:
    make_messages.write(tmp_path)
    bundled = venn_admit.example_texts()
    assert {path.name for path in bundled.iterdir()} == {f"{name}.csv" for name in make_messages.SIZES}
    for path in bundled.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_the_files_are_as_they_are_described() -> None:
    described = " ".join((venn_admit.example_texts.__doc__ or "").split())
    seen: set[bytes] = set()
    for name, size in make_messages.SIZES.items():
        summary = TextFile(venn_admit.example_texts() / f"{name}.csv").summary()
        assert summary.documents == size
        assert f"`{name}.csv` ({size:,}" in described
        assert not summary.text_digests & seen
        seen |= summary.text_digests
        assert set(summary.labels) == (set() if name == "new" else set(make_messages.TEAMS))
