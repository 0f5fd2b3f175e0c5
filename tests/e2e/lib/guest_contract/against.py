"""The comparison with another server of the contract: the stand-in, and a real CodexPro where CHAT2SHELL_E2E_CODEXPRO names one."""
import os
import subprocess
import sys

import bench
from c2s import ROOT, Skip, check, test
from codexpro import REAL, TOKEN, Server

RUNNER = os.path.join(ROOT, "tests/conformance/codexpro")


# The stand-in hands file tools to the guest itself: there the comparison's own workings are what is tried.
SAMPLE = "^(server_config|read (paths|files)|tree paths|search$|write (target|options) 1|patch [a-d]|bash|changes once|wait$|misfits)"


def compare_with(is_real):
    with Server(is_real) as server:
        line = [sys.executable, RUNNER, "--against", f"http://127.0.0.1:{server.port}/mcp", "--token", TOKEN, "--home", server.home, "--guest", bench.GUEST]
        line += [] if is_real else ["--only", SAMPLE]
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900, text=True)
        check(done.returncode == 0, f"exit status {done.returncode}: {done.stdout[-3000:]}")


@test
def nothing_unwanted_differs_from_the_stand_in():
    compare_with(False)


@test
def nothing_unwanted_differs_from_a_real_codexpro():
    if not REAL:
        raise Skip("CHAT2SHELL_E2E_CODEXPRO names no real CodexPro")
    compare_with(True)
