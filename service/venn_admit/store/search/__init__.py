"""Searches of the training exemplars: by SQL, by an HNSW index, or in cached arrays."""
