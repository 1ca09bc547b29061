"""From texts, or token states, to exemplars by a memory layer; no database has a part in it."""
