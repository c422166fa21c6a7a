"""Runs the command: `python -m headrace`."""

from headrace.cli.start import main

if __name__ == "__main__":
    main()
