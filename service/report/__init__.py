"""What people look at: one `DatasetReport` shown as terminal tables, charts and a page."""
