"""The driver of a Ray job: `python -m workers.launch.ray_driver WANTED MODULE ARGUMENTS...`.

It waits for a placement group with a bundle for each host, on nodes of their own where there are several, starts
`python -m MODULE ARGUMENTS... --rendezvous HOST:PORT --has-rendezvous true|false` in each, and ends with the status
of the training; or with HOST_LOST where a node or its process was lost, STOPPED or TIME_OVER where the training has
written a checkpoint first.

WANTED is a JSON object of what each host needs: {"hosts", "gpus", "cpus", "memory_gb", "seconds", "resources"}.
"""

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

HOST_LOST, STOPPED, TIME_OVER = 75, 3, 76  # exit statuses; STOPPED is that of workers.train
WAITS, TRAINS = "[touchstone] waits for ", "[touchstone] trains on "
_LOOK_SECONDS = 1.0
_TELL_SECONDS = 15.0
_OTHERS_SECONDS = 40.0  # after one host has failed: Ray notices within this time that another one was lost
_SIOCGIFADDR = 0x8915  # Linux: the address of an interface


class TrainingHost:
    """An actor: one host of the training."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopping = False
        self._starting = threading.Lock()

    def place(self) -> tuple[str, int]:
        """The address of this node, and a port that is free on it."""
        import ray

        address = str(ray.util.get_node_ip_address())
        with socket.socket() as probe:
            probe.bind(("", 0))
            return address, int(probe.getsockname()[1])

    def run(self, module: str, arguments: Sequence[str], address: str) -> int:
        """The exit status."""
        from workers.launch.host_run import end_with_parent

        environment = os.environ | {"TOUCHSTONE_HOST_ADDRESS": address}
        if (interface := interface_of(address)) and "GLOO_SOCKET_IFNAME" not in os.environ:
            environment["GLOO_SOCKET_IFNAME"] = interface
        with self._starting:
            if self._is_stopping:
                return STOPPED
            self._child = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", module, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                preexec_fn=end_with_parent,
            )
        return self._child.wait()

    def stop(self) -> None:
        """The training writes a checkpoint and ends."""
        with self._starting:
            self._is_stopping = True
            if self._child is not None and self._child.poll() is None:
                self._child.send_signal(signal.SIGTERM)


class RayTraining:
    """wanted: see the module. Methods run in the driver, which is connected to the cluster."""

    def __init__(self, ray: Any, wanted: dict[str, Any], command: Sequence[str]) -> None:
        self._ray, self._wanted, self._command = ray, wanted, command
        self._ends_at = time.monotonic() + wanted["seconds"]
        self._is_asked = self._is_over = False

    def ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._is_asked = True

    def run(self) -> int:
        ray, hosts = self._ray, int(self._wanted["hosts"])
        group = ray.util.placement_group(
            [self._bundle()] * hosts, strategy="STRICT_SPREAD" if hosts > 1 else "PACK"
        )
        try:
            if not self._wait_for(group):
                return STOPPED
            return self._train(self._actors(group))
        except ray.exceptions.RayError as error:  # of an actor that could not start, say
            _say(f"[touchstone] {type(error).__name__}: {error}")
            return HOST_LOST
        finally:
            ray.util.remove_placement_group(group)

    def _bundle(self) -> dict[str, float]:
        wanted = self._wanted
        bundle = {"CPU": wanted["cpus"], "memory": wanted["memory_gb"] * 2**30, **wanted["resources"]}
        return bundle | ({"GPU": wanted["gpus"]} if wanted["gpus"] else {})

    def _wait_for(self, group: Any) -> bool:
        """Until every host is there; False where the job is stopped first."""
        ready, told_at = group.ready(), float("-inf")
        while not self._is_asked:
            if self._ray.wait([ready], timeout=_LOOK_SECONDS)[0]:
                return True
            if time.monotonic() - told_at >= _TELL_SECONDS:
                free = self._ray.available_resources()
                _say(
                    f"{WAITS}{self._wanted['hosts']} hosts, each with {_in_words(self._bundle())}; free now: "
                    f"{_in_words(free)} on {len(_living_nodes(self._ray))} nodes"
                )
                told_at = time.monotonic()
        return False

    def _actors(self, group: Any) -> list[Any]:
        ray, wanted = self._ray, self._wanted
        strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
        host = ray.remote(TrainingHost)
        return [
            host.options(
                num_cpus=wanted["cpus"],
                num_gpus=wanted["gpus"],
                max_concurrency=3,  # `stop` while `run` waits
                scheduling_strategy=strategy(group, placement_group_bundle_index=index),
            ).remote()
            for index in range(int(wanted["hosts"]))
        ]

    def _train(self, actors: list[Any]) -> int:
        ray, (module, *arguments) = self._ray, self._command
        places = ray.get([actor.place.remote() for actor in actors])
        addresses = [address for address, _ in places]
        _say(f"{TRAINS}{', '.join(addresses)}")
        arguments += ["--rendezvous", f"{addresses[0]}:{places[0][1]}", "--has-rendezvous"]
        running = [
            actor.run.remote(module, [*arguments, "false" if number else "true"], addresses[number])
            for number, actor in enumerate(actors)
        ]
        try:
            return self._follow(actors, running)
        finally:
            for actor in actors:
                ray.kill(actor)

    def _follow(self, actors: list[Any], running: list[Any]) -> int:
        ray, statuses, failed_at, is_told = self._ray, list[int](), 0.0, False
        nodes = len(_living_nodes(ray))
        while running:
            ended, running = ray.wait(running, timeout=_LOOK_SECONDS)
            for each in ended:
                try:
                    statuses.append(int(ray.get(each)))
                except ray.exceptions.RayError as error:
                    _say(f"[touchstone] lost a host: {type(error).__name__}: {error}")
                    return STOPPED if self._is_asked else HOST_LOST
            self._is_over = self._is_over or time.monotonic() > self._ends_at
            if (self._is_asked or self._is_over) and not is_told:
                is_told = True
                for actor in actors:
                    actor.stop.remote()
            # The others wait for a message of the one that failed; or it failed since one of them was lost.
            if any(statuses):
                failed_at = failed_at or time.monotonic()
                if time.monotonic() - failed_at > _OTHERS_SECONDS:
                    break
        if any(statuses) and len(_living_nodes(ray)) < nodes:
            return STOPPED if self._is_asked else HOST_LOST
        return self._status(statuses)

    def _status(self, statuses: list[int]) -> int:
        status = next((status for status in statuses if status), 0)
        if status == STOPPED or (status and (self._is_asked or self._is_over)):
            return TIME_OVER if self._is_over and not self._is_asked else STOPPED
        return status


def interface_of(address: str) -> str:
    """The network interface of this machine with that IPv4 address; empty where there is none.

    gloo takes the one of the host name, which on many machines is the loopback.
    """
    for _, name in socket.if_nameindex():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                packed = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:  # it has no address
                continue
        if socket.inet_ntoa(packed[20:24]) == address:
            return name
    return ""


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _living_nodes(ray: Any) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _in_words(resources: dict[str, float]) -> str:
    shown = {
        name: value for name, value in resources.items() if ":" not in name and name != "object_store_memory"
    }
    words = [
        f"{value / 2**30:.1f} GiB memory" if name == "memory" else f"{value:g} {name}"
        for name, value in sorted(shown.items())
    ]
    return ", ".join(words) or "nothing"


def main(arguments: Sequence[str]) -> int:
    try:
        import ray
        import ray.util.scheduling_strategies
    except ModuleNotFoundError:
        sys.stderr.write(f"{sys.executable} has no ray: install it on the nodes of the cluster.\n")
        return 2
    ray.init(address="auto", log_to_driver=True)
    training = RayTraining(ray, json.loads(arguments[0]), arguments[1:])
    signal.signal(signal.SIGTERM, training.ask_to_stop)  # after init, which has a handler too
    return training.run()


if __name__ == "__main__":
    from workers.launch.ray_driver import main as run_driver  # so that actors find the class by its module

    sys.exit(run_driver(sys.argv[1:]))
