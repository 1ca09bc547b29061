"""What would change if something were different: sections of text, and JSON."""
