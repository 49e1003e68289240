"""`python -m iocflow.cli`: the command line without the installed script."""

from __future__ import annotations

from iocflow.cli.main import main

if __name__ == "__main__":
    main()
