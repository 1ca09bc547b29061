"""Writing files, each of which appears complete or not at all."""
