"""The page of the HTTP service: HTML that the server renders, for people with a key."""
