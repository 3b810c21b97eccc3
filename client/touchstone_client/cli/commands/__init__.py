"""A module for each group of commands; `COMMANDS` of each is listed in `touchstone_client.cli.own`."""
