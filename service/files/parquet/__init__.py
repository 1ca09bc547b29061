"""Reading Parquet, whose footer and page headers are held against the memory budget first."""
