"""Tables, charts and pages made from core types."""
