"""The training exemplars as they are searched: by SQL, by an HNSW index, or from cached arrays."""
