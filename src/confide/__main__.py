"""`python -m confide`: the command line, where its script is not on the path."""

from confide.cli import main

if __name__ == "__main__":
    main()
