"""Every SQL statement, behind typed functions that take a connection and return core types."""
