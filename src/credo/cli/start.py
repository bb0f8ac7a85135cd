"""Where the `credo` script begins: Ctrl-C is heard before anything slow is imported."""

import sys

from credo.training.interrupt import listen


def main() -> None:
    """Run the command that the arguments name."""
    try:
        listen()
        from credo.cli.main import app

        app()
    except KeyboardInterrupt as error:
        print(str(error) or "Stopped.", file=sys.stderr)
        sys.exit(130)
