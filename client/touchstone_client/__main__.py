"""`python -m touchstone_client`: the command line, as the script `touchstone`."""

import sys

from touchstone_client.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
