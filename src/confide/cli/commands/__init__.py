"""The commands, by what they are for; `confide.cli.registry` loads each when it is called."""
