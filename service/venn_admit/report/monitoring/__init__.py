"""What is shown of a monitor: as tables, as JSON, and as metrics."""
