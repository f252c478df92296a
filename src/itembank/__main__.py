"""`python -m itembank`: the command line."""

from itembank.cli.main import main

if __name__ == "__main__":
    main()
