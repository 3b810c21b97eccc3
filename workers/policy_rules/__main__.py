"""`python -m workers.policy_rules DIR`: see `workers.policy_rules.pipeline`. Status 0: done; 2: refused."""

import sys

from workers.job_cli import command
from workers.policy_rules.pipeline import list_rules

if __name__ == "__main__":
    sys.exit(command("policy_rules", "Rules of a policy document, listed by a language model.", list_rules))
