"""`python -m workers.launch`: what every host of a cluster runs for a training.

The environment has the address of the run's files and a token for them (TOUCHSTONE_RUN_FILES, TOUCHSTONE_RUN_TOKEN, or
TOUCHSTONE_RUN_TOKEN_FILE). Exit status: that of `workers.train`; 2 where there is nothing to train with.
"""

import argparse
import os
import sys
from pathlib import Path

from workers.errors import RewardError
from workers.launch.host_run import REFUSED, HostPlace, run_on_host
from workers.launch.job import RENDEZVOUS_PORT, TOKEN_VARIABLE, URL_VARIABLE
from workers.launch.part_cache import PartCache
from workers.launch.run_files import HttpRunFiles


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workers.launch",
        description="Train a run of an installation on this host of a cluster.",
    )
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1, help="on each host, one for each GPU")
    parser.add_argument("--rendezvous", default="", help="HOST:PORT of the first host, for several hosts")
    parser.add_argument(
        "--has-rendezvous",
        choices=("true", "false"),
        default="",
        help="whether this host is the one of --rendezvous",
    )
    parser.add_argument("--name", default="touchstone", help="of the job; the same on every host")
    parser.add_argument(
        "--scratch", type=Path, default=None, help="folder of this host; by default a temporary one"
    )
    parser.add_argument(
        "--cache", type=Path, default=None, help="folder that keeps pretrained weights between runs"
    )
    parser.add_argument("--cache-gb", type=int, default=20, help="size of that folder at most, in GiB")
    arguments = parser.parse_args()
    rendezvous = arguments.rendezvous
    if arguments.hosts > 1 and not rendezvous:
        parser.error("several hosts need --rendezvous HOST:PORT")
    place = HostPlace(
        hosts=arguments.hosts,
        processes=arguments.processes,
        rendezvous=rendezvous if ":" in rendezvous else f"{rendezvous}:{RENDEZVOUS_PORT}",
        name=arguments.name,
        address=os.environ.get("TOUCHSTONE_HOST_ADDRESS", ""),
        has_rendezvous=arguments.has_rendezvous,
    )
    try:
        files = HttpRunFiles(_required(URL_VARIABLE), _token())
        cache = PartCache(arguments.cache, arguments.cache_gb * 2**30) if arguments.cache else None
        return run_on_host(files, place, arguments.scratch, cache=cache)
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return REFUSED


def _token() -> str:
    path = os.environ.get(f"{TOKEN_VARIABLE}_FILE", "")
    return Path(path).read_text(encoding="utf-8").strip() if path else _required(TOKEN_VARIABLE)


def _required(name: str) -> str:
    value = os.environ.pop(name, "")  # the training needs neither
    if not value:
        raise RewardError(f"{name} is not set; the installation sets it for jobs that it submits.")
    return value


if __name__ == "__main__":
    sys.exit(main())
