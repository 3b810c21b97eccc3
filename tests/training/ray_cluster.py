"""A Ray cluster of two nodes on this machine: `python -m tests.training.ray_cluster FOLDER`, which needs ray.

It prints the address of the dashboard, then obeys lines: "kill" ends the second node without a word, "add" adds
another one. It ends with its input.
"""

import os
import sys
from pathlib import Path

from ray.cluster_utils import Cluster

from tests.ports import free_port

_STORE_BYTES = 80 * 2**20


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(folder: str) -> None:
    os.environ["RAY_TMPDIR"] = folder
    (Path(folder) / "ray").mkdir()
    port = free_port()
    head = {"num_cpus": 1, "include_dashboard": True, "dashboard_port": port}
    cluster = Cluster(initialize_head=True, head_node_args=head | {"object_store_memory": _STORE_BYTES})
    second = cluster.add_node(num_cpus=1, object_store_memory=_STORE_BYTES)
    say(f"http://127.0.0.1:{port}")
    for line in sys.stdin:
        if line == "kill\n":
            cluster.remove_node(second, allow_graceful=False)
        else:
            second = cluster.add_node(num_cpus=1, object_store_memory=_STORE_BYTES)
        say("done")
    cluster.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
