"""The device that torch computes on. `python -m workers.device NAME [PROCESSES]` tells whether this machine has it,
`python -m workers.device --describe` what it has, as JSON."""

import json
import os
import resource
import sys

import torch

from workers.errors import RewardError

ALLOWED = "auto, cpu, cuda, or cuda:N for the GPU with the number N"


class DeviceError(RewardError):
    """The device of a setting is not one, or not there."""


def choose_device(name: str) -> torch.device:
    """`auto`, `cpu`, `cuda` or `cuda:N`. Raises DeviceError for anything else, and for a GPU that is not there.

    Of several processes on a machine each takes its own GPU, by LOCAL_RANK.
    """
    numbered = name.removeprefix("cuda:") if name.startswith("cuda:") else ""
    is_number = numbered.isascii() and numbered.isdecimal() and len(numbered) <= 3
    if name not in ("auto", "cpu", "cuda") and not is_number:
        raise _error(f"unknown device {name!r}; use {ALLOWED}.")
    has_cuda = torch.cuda.is_available() if name != "cpu" else False
    if name not in ("auto", "cpu") and not has_cuda:
        raise _error(
            f"the device is set to {name}, but torch finds no GPU on this machine; run on a machine with one, or set "
            "auto or cpu (TOUCHSTONE_TRAINING_DEVICE of the worker, TOUCHSTONE_REWARDS_DEVICE of `rewards`)."
        )
    if not has_cuda:
        return torch.device("cpu")
    count = torch.cuda.device_count()
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if numbered and processes > 1:
        raise _error(f"the device is set to {name}, one GPU, for {processes} processes; set cuda or auto.")
    number = int(numbered) if numbered else int(os.environ.get("LOCAL_RANK", "0"))
    if number >= count and numbered:
        raise _error(
            f"the device is set to {name}, but this machine has {count} GPU{'s' if count > 1 else ''}: "
            f"{', '.join(f'cuda:{each}' for each in range(count))}. Use one of them, cuda, auto or cpu."
        )
    require_gpus(max(processes, number + 1))
    device = torch.device("cuda", number)
    torch.cuda.set_device(device)
    return device


def require_gpus(processes: int) -> None:
    """Raises DeviceError where this machine has fewer GPUs than processes that train on it."""
    count = torch.cuda.device_count()
    if processes > count:
        raise _error(
            f"{processes} processes are to train on this machine, one for each GPU, but torch finds {count}; start at "
            f"most {count} here (TOUCHSTONE_TRAINING_PROCESSES, or --nproc-per-node of torchrun)."
        )


def _error(message: str) -> DeviceError:
    return DeviceError(message, pointer="/device")


def peak_memory(device: torch.device) -> int:
    """Bytes: the peak of tensors on a GPU, else of the process."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak  # kibibytes on other systems


def describe_device() -> dict[str, str | int]:
    """{"device": in words, "gpus": how many torch finds}"""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    name = torch.cuda.get_device_name(0) if gpus else f"CPU, {os.cpu_count()} cores"
    return {"device": f"{gpus} x {name}" if gpus > 1 else name, "gpus": gpus}


def main(name: str, processes: int = 1) -> int:
    if name == "--describe":
        sys.stdout.write(json.dumps(describe_device()))
        return 0
    try:
        if choose_device(name).type == "cuda":
            require_gpus(processes)
    except DeviceError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:3])))
