"""Use cases, one a file: gather, one core call, apply."""
