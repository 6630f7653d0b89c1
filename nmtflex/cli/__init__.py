"""Typer app: options in, library call, report out; one thin file a subcommand."""
