"""The exact search for the K nearest training exemplars of many points, by certified bounds of rounded products.

These arguments and attributes mean the same in all of its modules.

Args:
    distance: As `euclidean_distances` gives it.
    index: The support, prepared.
    queries: (n, D) float32, finite.
    query_rows: (M,) int64, the query of each pair.
    rows: (M,) int64, the support row of each pair.
    support: (N, D) float32, N, D >= 1, finite, the training exemplars in order of ingestion; may be a read-only memory
        map.
"""
