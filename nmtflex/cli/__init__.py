"""Command line: each subcommand is a thin module that parses options and calls the library."""
