"""Results as JSON has them: the same from the command line and over HTTP."""
