"""`python -m confide` and the script `confide`: the command line."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line of this process; the version alone is said without loading it."""
    if sys.argv[1:] == ["--version"]:
        from confide._version import __version__

        sys.stdout.write(f"confide {__version__}\n")
        return
    # what a command loads stays to its end: looking through it for cycles at every turn takes time and finds none
    gc.set_threshold(20_000, 20, 20)
    from confide.cli import main as run

    run()


if __name__ == "__main__":
    main()
