"""`forget` and `delete` on the command line: they ask, count beforehand, refuse, and say what they did."""

from pathlib import Path

from tests.cli.program import Program, nothing_stored
from tests.cli.samples import NAME


def test_forget_counts_then_removes_and_says_so(own_calibrated: Program, tmp_path: Path) -> None:
    program = own_calibrated
    ids = tmp_path / "ids.txt"
    ids.write_text("held-out-3\r\n\nheld-out-4\n", "utf-8-sig")
    would = program("forget", NAME, "--file", ids, "--id", "held-out-5", "--dry-run", "--json").result
    assert (would["is_done"], would["ids"], would["exemplars"], would["rows"]["exemplar"]) == (False, 3, 3, 3)
    done = program("forget", NAME, "--file", ids, "--id", "held-out-5", "--yes", "--json").result
    assert {**would, "is_done": True} == done
    again = program("forget", NAME, "--file", ids, "--yes")
    assert again.code == 0
    assert "Forgot 0 exemplars" in again.stdout
    assert "Ids that were forgotten before: 2." in again.stdout
    assert "held-out-3" not in again.stdout


def test_what_is_refused_changes_nothing(own_calibrated: Program, tmp_path: Path) -> None:
    program, empty = own_calibrated, tmp_path / "empty.txt"
    empty.write_text("\n")
    with nothing_stored(program):
        for arguments, code, words in (
            (("forget", NAME, "--yes"), 2, "expected --id, --document or --file"),
            (("forget", NAME, "--id", "held-out-3"), 2, "expected --yes"),
            (("delete", NAME), 2, "expected --yes"),
            (("forget", NAME, "--id", "nobody", "--yes"), 3, "correct the ids; `--missing-ok` leaves such ids out"),
            (("forget", NAME, "--file", empty, "--yes"), 2, "expected an id a line, got none"),
            (("forget", NAME, "--file", tmp_path / "none.txt", "--yes"), 2, "cannot be read as text"),
            (("delete", f"{NAME}@1", "--yes"), 2, "is the current one"),
            (("delete", "nobody", "--yes"), 3, "no classifier is named 'nobody'"),
        ):
            outcome = program(*arguments)
            assert outcome.code == code, outcome
            assert words in outcome.stderr, outcome


def test_delete_counts_then_removes_everything(own_calibrated: Program) -> None:
    program = own_calibrated
    would = program("delete", NAME, "--dry-run", "--json").result
    assert (would["is_done"], would["generations"]) == (False, [f"{NAME}@1"])
    done = program("delete", NAME, "--yes")
    assert done.code == 0
    assert f"Deleted {NAME}: generation {NAME}@1" in done.stdout
    assert program("delete", NAME, "--yes").code == 3
