"""`python -m attnaudit` is the same as `attnaudit`."""

from attnaudit.cli import main

if __name__ == "__main__":
    main()
