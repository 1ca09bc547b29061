"""The reference of the Python API, from the docstrings of the package that `python_api` in mkdocs.yml names."""

from docs.generate.markdown import join

NOT_YET = """\
There is no public Python package yet. Call the command line with `--json`, which prints one JSON object, and exchange
arrays as `.npz` or `.parquet` files; [Bring your model](../how-to/bring-your-model.md) shows both. The modules under
`service` are internal and may change without notice."""


def python_page(package: str) -> str:
    """Return the page: a directive that mkdocstrings expands, or what to do until there is such a package."""
    return join("# Python API", f"::: {package}" if package else NOT_YET)
