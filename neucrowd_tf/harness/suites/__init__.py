"""Each table and figure of the papers as one command."""
