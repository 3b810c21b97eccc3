"""The client is installable alone: neither torch nor Django, nor anything of the server."""

import subprocess
import sys

BLOCKED = ("torch", "django", "transformers", "numpy", "apps", "workers", "trl")
PROGRAM = f"""
import sys
for name in {BLOCKED!r}:
    sys.modules[name] = None
import touchstone_client
assert callable(touchstone_client.trl_reward("http://x", "e", "k"))
print(sorted(name for name in sys.modules if name.startswith("touchstone_client"))[0])
"""


def test_it_imports_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "touchstone_client"
