"""Which tests go to one worker of xdist together."""

from xdist.scheduler import LoadGroupScheduling

from tests.groups import TOGETHER, WITH_TRAINERS

_TOGETHER = ("tests/faults/", *(f"tests/{name}" for name in TOGETHER))
_WITH_TRAINERS = tuple(f"tests/{name}" for name in WITH_TRAINERS)


class FilesTogether(LoadGroupScheduling):
    """A file under faults, and of groups.TOGETHER, is one unit: what its tests share is started once, and they are run
    in order. Those of groups.WITH_TRAINERS are one unit together.

    By the path and not by the mark `xdist_group`: xdist 3.8 passes the mark on in the node id, which pytest 9.2 no
    longer lets it change, and the tests are spread as if there were no mark.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        if path.startswith(_WITH_TRAINERS):
            return "files with trainers"
        return path if path.startswith(_TOGETHER) else super()._split_scope(nodeid)
