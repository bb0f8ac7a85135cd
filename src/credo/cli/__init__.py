"""The command line: one file for each command; nothing here imports JAX before a command needs it."""
