"""Calibrators, their numbered snapshots, and the row-versioned points of a snapshot."""
