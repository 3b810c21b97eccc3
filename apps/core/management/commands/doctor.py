from dataclasses import asdict
from typing import Any

from apps.core.commands import CommandFailed, TouchstoneCommand
from apps.core.health import examine


class Command(TouchstoneCommand):
    help = "Check database, broker, artifact store, disk, backbones and GPU, and suggest fixes."
    requires_system_checks = "__all__"
    needs_database = False

    def run(self) -> dict[str, Any]:
        findings = []
        for finding in examine():
            findings.append(finding)
            mark = self.style.ERROR("FAIL")
            if finding.ok:
                mark = self.style.WARNING("note") if finding.fix else self.style.SUCCESS("ok  ")
            self.say(f"{mark} {finding.name}: {finding.says}")
            if finding.fix:
                self.say(f"     {finding.fix}")
        # The older name of `fix`, for scripts that read it.
        checks = [asdict(each) | {"mend": each.fix} for each in findings]
        result = {"ok": all(each.ok for each in findings), "checks": checks}
        if not result["ok"]:
            raise CommandFailed("Some checks need attention.", result=result)
        return result
