"""`python -m tape_jupyter` is `tape`."""

from tape_jupyter.cli import main

if __name__ == "__main__":
    main()
