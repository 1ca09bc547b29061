"""Reading .npz files, whose headers are checked against the memory budget first."""
