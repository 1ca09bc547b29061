"""How long the expensive steps take, beside the barest thing that does the same work; see README.md."""
