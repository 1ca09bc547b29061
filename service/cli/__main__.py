"""`python -m service.cli` is `venn-admit`."""

from service.cli.main import main

if __name__ == "__main__":
    main()
