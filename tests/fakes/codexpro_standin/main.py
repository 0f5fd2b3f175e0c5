"""The program: its start, and its failures to."""
import errno
import os
import signal
import sys

from .faults import Faults
from .guest import find_program
from .server import Server
from .sessions import Sessions
from .settings import VERSION, Settings, StartError
from .tools import Tools


def say(line):
    print(f"[CodexPro] {line}", file=sys.stderr, flush=True)


def serve(settings, beside):
    faults = Faults(settings.environment, settings.root)
    sessions = Sessions(settings, find_program(settings.environment, beside))
    try:
        server = Server(settings, faults, sessions, Tools(settings))
    except OSError as why:
        if why.errno != errno.EADDRINUSE:
            print(f"Error: listen {errno.errorcode.get(why.errno, 'EUNKNOWN')}: {why.strerror} {settings.host}:{settings.port}", file=sys.stderr)
            return 1
        server = None  # a flaw to be had: it is ready in its own eyes, and ends well
    for line in settings.ready_lines():
        say(line)
    if not server:
        return 0
    faults.start_clock()
    server.serve_forever(poll_interval=0.5)
    return 0


def run(argv, usage, beside):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if "--version" in argv or "-v" in argv or argv[:1] == ["version"]:
        print(VERSION)
        return 0
    if "--help" in argv or argv[:1] == ["help"]:
        print(usage)
        return 0
    try:
        settings = Settings(argv, dict(os.environ))
    except StartError as why:
        print(f"Error: {why}", file=sys.stderr)
        return 1
    return serve(settings, beside)
