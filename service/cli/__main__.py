"""`python -m venn_admit.service.cli` is `venn-admit`."""

from venn_admit.service.cli.main import main

if __name__ == "__main__":
    main()
