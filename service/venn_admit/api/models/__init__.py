"""What requests and answers consist of, with the names that `--json` has on the command line."""
