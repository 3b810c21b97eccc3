"""The command line `touchstone`: see docs/command-line.md."""
