"""Jobs: sending, waiting, cancelling, and computing a chunk."""
