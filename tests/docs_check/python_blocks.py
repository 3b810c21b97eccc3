"""Runs the Python blocks of one page: each a line of JSON on standard input, its error a line on standard output."""

import json
import os
import signal
import sys
import traceback


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what blocks print is no answer
    names: dict[str, object] = {"__name__": "__main__"}
    for line in sys.stdin:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, request["limit"])  # ends the process
        error = ""
        try:
            exec(compile(request["code"], "block", "exec"), names)
        except BaseException:
            error = traceback.format_exc(limit=-4)
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(json.dumps({"error": error}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
