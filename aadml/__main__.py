"""`python -m aadml`: the command line."""

from aadml.cli import main

main()
