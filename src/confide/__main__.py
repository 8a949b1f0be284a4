"""`python -m confide` and the script `confide`: the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process; the version alone is said without loading it."""
    if sys.argv[1:] == ["--version"]:
        from confide._version import __version__

        sys.stdout.write(f"confide {__version__}\n")
        return
    from confide.cli import main as run

    run()


if __name__ == "__main__":
    main()
