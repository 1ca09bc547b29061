"""The program on a database of its own, as the tests of the command line have it."""

from tests.cli.conftest import program

__all__ = ["program"]
