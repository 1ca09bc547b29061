"""Reading Parquet files, whose footer and page headers are checked against the memory budget first."""
