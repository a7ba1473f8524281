"""What a cell read and wrote while it ran: variables, files, options, the environment."""
