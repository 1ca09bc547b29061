"""Charts, drawn once for pages and PNG files."""
