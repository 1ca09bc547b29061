"""Pages of HTML, with charts inlined."""
