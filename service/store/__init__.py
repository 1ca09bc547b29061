"""Every SQL statement, behind typed functions (connection, ...) -> core types."""
