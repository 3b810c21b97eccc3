"""`python -m workers.active_learning DIR`: see `workers.active_learning.selection_folder`.

Exit status 2: refused, with a sentence."""

import sys

from workers.active_learning.select import select_items
from workers.job_cli import command

if __name__ == "__main__":
    sys.exit(command("active_learning", "Select what to annotate next.", select_items))
