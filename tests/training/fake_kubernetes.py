"""An API server of Kubernetes with a Job controller, on one machine: it validates what it is sent, and runs containers
as processes in folders of their own.

Validation is by the published schemas (kubernetes_schemas.json) and by the server's rules for names, labels, immutable
fields and references. Answers have the shapes of the API reference.
"""

import json
import os
import re
import signal
import subprocess
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema

TOKEN = "account-token"
_SCHEMAS = json.loads((Path(__file__).parent / "kubernetes_schemas.json").read_text())
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PATH = re.compile(
    r"/(?:api/v1|apis/[a-z.]+/v1)/namespaces/(?P<namespace>[^/]+)/(?P<kind>[a-z]+)(?:/(?P<rest>.+))?"
)
_SINGULAR = {"jobs": "Job", "pytorchjobs": "PyTorchJob", "services": "Service", "secrets": "Secret"}
_VARIABLE = re.compile(r"\$\((\w+)\)")


def schema_errors(manifest: dict[str, Any]) -> list[str]:
    schema = {"$ref": f"#/$defs/{_SCHEMAS['kinds'][manifest['kind']]}", "$defs": _SCHEMAS["$defs"]}
    found = jsonschema.Draft202012Validator(schema).iter_errors(manifest)
    return [f"{'.'.join(map(str, each.absolute_path))}: {each.message[:200]}" for each in found]


def rule_errors(manifest: dict[str, Any]) -> list[str]:
    """What the server checks beyond the schema."""
    wrong, spec = [], manifest.get("spec", {})
    name = manifest["metadata"]["name"]
    limit = 63 - len(str(spec.get("completions", 1))) - 1 if spec.get("completionMode") == "Indexed" else 63
    if not _NAME.fullmatch(name) or len(name) > limit:
        wrong.append(f"metadata.name: Invalid value: {name!r}")
    templates = [spec["template"]] if "template" in spec else []
    templates += [each["template"] for each in spec.get("pytorchReplicaSpecs", {}).values()]
    for labels in (
        manifest["metadata"].get("labels", {}),
        *(each["metadata"]["labels"] for each in templates),
    ):
        wrong += [
            f"labels: Invalid value: {value!r}" for value in labels.values() if not _LABEL.fullmatch(value)
        ]
    for template in templates:
        pod = template["spec"]
        if "podFailurePolicy" in spec and pod["restartPolicy"] != "Never":
            wrong.append("spec.template.spec.restartPolicy: only Never is supported with podFailurePolicy")
        volumes = {each["name"] for each in pod.get("volumes", [])}
        for container in pod["containers"]:
            wrong += [
                f"volumeMounts: Not found: {mount['name']!r}"
                for mount in container.get("volumeMounts", [])
                if mount["name"] not in volumes
            ]
            limits, requests = (container["resources"][each] for each in ("limits", "requests"))
            extended = [key for key in limits if "/" in key]
            wrong += [
                f"{key}: must be equal to its limit" for key in extended if requests.get(key) != limits[key]
            ]
    return wrong


class FakeKubernetes:
    def __init__(self, folder: Path, *, has_operator: bool = False) -> None:
        self.folder, self.has_operator = folder, has_operator
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.created: list[str] = []
        self.is_down = False
        self.lock = threading.RLock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        for process in self.processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self.server.shutdown()
        self.server.server_close()

    def lose_node(self, pod: str) -> None:
        """It lost its power: the pod's processes end, and its controller is told that the pod was disrupted."""
        with self.lock:
            self.pods[pod]["status"]["conditions"] = [
                {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
            ]
        os.killpg(self.processes[pod].pid, signal.SIGKILL)

    def create(self, kind: str, manifest: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        name = manifest["metadata"]["name"]
        wrong = schema_errors(manifest) + rule_errors(manifest)
        if wrong:
            return 422, _status(422, "Invalid", f'{manifest["kind"]} "{name}" is invalid: {"; ".join(wrong)}')
        with self.lock:
            if (kind, name) in self.objects:
                return 409, _status(409, "AlreadyExists", f'{kind} "{name}" already exists')
            self.objects[kind, name] = manifest | {"status": {}}
            self.created.append(f"{kind}/{name}")
        if kind in ("jobs", "pytorchjobs"):
            threading.Thread(target=self._control, args=(kind, name), daemon=True).start()
        return 201, manifest

    def delete(self, kind: str, name: str, options: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self.lock:
            if kind == "pods":
                with suppress(KeyError, ProcessLookupError):
                    os.killpg(self.processes[name].pid, signal.SIGKILL)
                return 200, {}
            found = self.objects.get((kind, name))
            if found is None:
                return 404, _status(404, "NotFound", f'{kind} "{name}" not found')
            found["metadata"]["deletionTimestamp"] = _now()
            if kind not in ("jobs", "pytorchjobs") or options.get("propagationPolicy") == "Background":
                del self.objects[kind, name]
        threading.Thread(target=self._end_pods, args=(kind, name), daemon=True).start()
        return 200, found

    def _end_pods(self, kind: str, job: str) -> None:
        mine = [pod for pod, each in self.pods.items() if each["job"] == job]
        for sent in (signal.SIGTERM, signal.SIGKILL):
            for pod in mine:
                with suppress(ProcessLookupError, KeyError):
                    if sent == signal.SIGTERM:
                        self.processes[pod].terminate()
                    else:
                        os.killpg(self.processes[pod].pid, sent)
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and any(self.processes[pod].poll() is None for pod in mine):
                time.sleep(0.05)
        with self.lock:
            self.objects.pop((kind, job), None)
            for pod in mine:
                self.pods.pop(pod, None)

    def _control(self, kind: str, name: str) -> None:
        """What the controller of Jobs, or that of PyTorchJobs, does."""
        job = self.objects[kind, name]
        if kind == "jobs":
            hosts = job["spec"]["completions"]
            templates = [job["spec"]["template"]] * hosts
        else:
            replicas = job["spec"]["pytorchReplicaSpecs"]
            templates = [each["template"] for each in replicas.values() for _ in range(each["replicas"])]
        variables = {"MASTER_ADDR": "127.0.0.1"} if kind == "pytorchjobs" else {}
        pods = [self._start(kind, name, n, template, variables) for n, template in enumerate(templates)]
        while pods:
            time.sleep(0.05)
            with self.lock:
                if (kind, name) not in self.objects or "deletionTimestamp" in job["metadata"]:
                    return
            for pod in list(pods):
                status = self.processes[pod].poll()
                if status is None:
                    continue
                pods.remove(pod)
                self._ended(pod, status)
                is_lost = any(
                    each["type"] == "DisruptionTarget" for each in self.pods[pod]["status"]["conditions"]
                )
                if is_lost and "podFailurePolicy" in job["spec"]:
                    pods.append(self._start(kind, name, len(self.pods), templates[0], variables))
                elif status:
                    self._finish(
                        job, "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
                    )
                    return
        self._finish(job, "Complete" if kind == "jobs" else "Succeeded", "", "")

    def _start(
        self, kind: str, job: str, number: int, template: dict[str, Any], variables: dict[str, str]
    ) -> str:
        (container,) = template["spec"]["containers"]
        pod = f"{job}-{number}-{len(self.pods):05d}"
        disk = self.folder / pod
        disk.mkdir(parents=True)
        environment = dict(variables) | {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        environment["OMP_NUM_THREADS"] = "1"  # of the image
        for each in container["env"]:
            environment[each["name"]] = self._value(each)
        environment |= {"HOME": str(disk), "TMPDIR": str(disk)}
        command = [*container["command"], *container["args"]]
        command = [_VARIABLE.sub(lambda found: environment[found[1]], word) for word in command]
        command = [re.sub(rf"^{job}-0\.{job}:", "127.0.0.1:", word) for word in command]  # the cluster's DNS
        command = [str(disk) if word == "/scratch" else word for word in command]
        if container["image"].startswith("missing"):
            command = ["sleep", "60"]
        with self.lock:
            label = "batch.kubernetes.io/job-name" if kind == "jobs" else "training.kubeflow.org/job-name"
            state: dict[str, Any] = {"phase": "Running", "conditions": [], "containerStatuses": []}
            if container["image"].startswith("missing"):
                waiting = {
                    "reason": "ImagePullBackOff",
                    "message": f'Back-off pulling image "{container["image"]}"',
                }
                state |= {"phase": "Pending", "containerStatuses": [{"state": {"waiting": waiting}}]}
            self.pods[pod] = {
                "job": job,
                "metadata": {"name": pod, "labels": {label: job}, "creationTimestamp": _now()},
                "status": state,
            }
            with (self.folder / f"{pod}.log").open("wb") as log:
                self.processes[pod] = subprocess.Popen(
                    command, env=environment, cwd=disk, stdout=log, stderr=log, start_new_session=True
                )
        return pod

    def _value(self, variable: dict[str, Any]) -> str:
        source = variable.get("valueFrom")
        if source is None:
            return str(variable["value"])
        if "fieldRef" in source:
            return "127.0.0.1"
        reference = source["secretKeyRef"]
        return str(self.objects["secrets", reference["name"]]["stringData"][reference["key"]])

    def _ended(self, pod: str, status: int) -> None:
        with self.lock:
            state = self.pods[pod]["status"]
            state["phase"] = "Failed" if status else "Succeeded"
            code = status if status >= 0 else 128 - status
            state["containerStatuses"] = [{"state": {"terminated": {"exitCode": code, "reason": "Error"}}}]

    def _finish(self, job: dict[str, Any], kind: str, reason: str, message: str) -> None:
        with self.lock:
            job["status"]["conditions"] = [
                {"type": kind, "status": "True", "reason": reason, "message": message}
            ]


def _status(code: int, reason: str, message: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _handler(cluster: FakeKubernetes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def do_DELETE(self) -> None:
            self._answer("DELETE")

        def _answer(self, method: str) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            url = urlsplit(self.path)
            code, found = self._found(method, url.path, parse_qs(url.query), body)
            content = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _found(self, method: str, path: str, query: dict[str, list[str]], body: dict[str, Any]) -> Any:
            if cluster.is_down:
                return 503, _status(503, "ServiceUnavailable", "the server is currently unable to handle it")
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                return 401, _status(401, "Unauthorized", "Unauthorized")
            if path == "/version":
                return 200, {"gitVersion": "v1.34.1"}
            if path.endswith("/selfsubjectaccessreviews"):
                return 201, {"status": {"allowed": True}}
            if path == "/apis/kubeflow.org/v1":
                known = [{"name": "pytorchjobs"}] if cluster.has_operator else []
                return (200, {"resources": known}) if known else (404, _status(404, "NotFound", "not found"))
            place = _PATH.fullmatch(path)
            if place is None:
                return 404, _status(404, "NotFound", "the server could not find the requested resource")
            kind, rest = place["kind"], place["rest"]
            if method == "POST":
                if body["kind"] != _SINGULAR[kind] or body["metadata"]["namespace"] != place["namespace"]:
                    return 400, _status(400, "BadRequest", "the object does not match the address")
                return cluster.create(kind, body)
            if method == "DELETE":
                return cluster.delete(kind, rest, body)
            if kind == "pods" and rest:
                return 200, (cluster.folder / f"{rest.removesuffix('/log')}.log").read_bytes()
            with cluster.lock:
                if kind == "pods":
                    label, _, value = query["labelSelector"][0].partition("=")
                    pods = [p for p in cluster.pods.values() if p["metadata"]["labels"].get(label) == value]
                    return 200, {"items": json.loads(json.dumps(pods))}
                found = cluster.objects.get((kind, rest))
            return (200, found) if found else (404, _status(404, "NotFound", f'{kind} "{rest}" not found'))

    return Handler
