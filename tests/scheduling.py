"""Which tests go to one worker of xdist together."""

from xdist.scheduler import LoadGroupScheduling


class FaultFilesTogether(LoadGroupScheduling):
    """A file under faults is one unit: an installation is started once for all its tests, which are run in order.

    By the path and not by the mark `xdist_group`: xdist 3.8 passes the mark on in the node id, which pytest 9.2 no
    longer lets it change, and the tests are spread as if there were no mark.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if path.startswith("tests/faults/") else super()._split_scope(nodeid)
