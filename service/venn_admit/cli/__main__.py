"""`python -m venn_admit.cli` is `venn-admit`."""

from venn_admit.cli.main import main

if __name__ == "__main__":
    main()
