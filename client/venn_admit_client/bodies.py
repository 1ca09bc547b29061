"""What bodies of requests may be: their media types, and how much one holds at most."""

JSON = "application/json"
PARQUET = "application/vnd.apache.parquet"
ARROW_STREAM = "application/vnd.apache.arrow.stream"
CSV = "text/csv"

MOST_ROWS = 1000
"""Exemplars to store, or points to decide on."""
MOST_LABELS = 5000
ATTRIBUTE_NESTING = 100
"""How deep the value of an attribute is nested."""
