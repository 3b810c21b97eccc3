"""`python -m tests.examples.verl_training URL KEY STEPS`: docs/examples/verl_policy.py with verl from .ci/peers.txt.

In a process: other tests put empty modules in verl's place. Ray is empty here unless it is installed: what runs in one
process starts no actor. Prints the curve as JSON.
"""

import json
import sys

import torch
from touchstone_client import verl_compute_score

from tests.peer_modules import PEERS, EmptyModules


def main(url: str, key: str, steps: int) -> None:
    sys.path.append(str(PEERS))
    sys.meta_path.append(EmptyModules("ray"))
    from docs.examples import tool_desk, verl_policy

    tool_desk._SHOWN = 60
    torch.set_num_threads(1)
    compute_score = verl_compute_score(url, "desk", key, messages="messages", run="verl")
    curve = verl_policy.train(compute_score, seed=0, steps=steps)
    sys.stdout.write(json.dumps(vars(curve)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
