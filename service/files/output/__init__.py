"""Writing files, which appear complete or not at all."""
