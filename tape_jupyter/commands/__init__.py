"""Commands that `%tape` and the command line share."""
