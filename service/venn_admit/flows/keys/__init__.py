"""Use cases of keys: who may ask for what."""
