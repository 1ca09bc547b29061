"""Pages of the documentation that are written from the source each time the site is built."""
