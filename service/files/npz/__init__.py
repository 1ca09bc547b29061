"""Reading .npz, whose headers are held against the memory budget first."""
