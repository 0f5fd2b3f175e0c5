"""The guest program behind the file tools: JSON-RPC, one message a line, on its stdin and stdout."""
import json
import os
import shutil
import subprocess
import threading

from .paths import ToolError
from .text import to_json

PROGRAM = "chat2shell-guest"
MAX_LINE = 64 * 1024 * 1024
CALL_TIMEOUT_S = 610


def find_program(environment, beside):
    named = environment.get("CODEXPRO_STANDIN_GUEST")
    here = os.path.join(beside, PROGRAM)
    return named or (here if os.path.exists(here) else shutil.which(PROGRAM, path=environment.get("PATH")))


class Waiting:
    """A request whose answer has not come."""

    def __init__(self):
        self.answered = threading.Event()
        self.answer = None


class Guest:
    """One running guest program. Started with the first call, and again if it ended."""

    def __init__(self, program, root):
        self.program, self.root = program, root
        self.lock = threading.Lock()  # guards what follows
        self.child = None
        self.waiting = {}
        self.last_id = 0
        self.is_closed = False

    def _start(self):
        if not self.program:
            raise ToolError(f"Error: the stand-in found no {PROGRAM}: set CODEXPRO_STANDIN_GUEST to it")
        try:
            self.child = subprocess.Popen([self.program, "--root", self.root, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as why:
            raise ToolError(f"Error: the stand-in cannot start {self.program}: {why.strerror}") from why
        threading.Thread(target=self._read_answers, args=(self.child,), daemon=True).start()
        self._send({"jsonrpc": "2.0", "id": 0, "method": "initialize",
                    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "codexpro", "version": "0"}}})

    def _send(self, message):
        self.child.stdin.write(to_json(message) + b"\n")
        self.child.stdin.flush()

    def _read_answers(self, child):
        while line := child.stdout.readline(MAX_LINE):
            try:
                answer = json.loads(line)
            except ValueError:
                break
            with self.lock:
                waiting = self.waiting.pop(answer.get("id"), None)
            if waiting:
                waiting.answer = answer
                waiting.answered.set()
        child.kill()
        child.wait()
        self._abandon(child)

    def _abandon(self, child):
        """Nobody will answer what this child was asked."""
        with self.lock:
            if self.child is not child:
                return
            self.child = None
            left, self.waiting = list(self.waiting.values()), {}
        for waiting in left:
            waiting.answered.set()

    def _ask(self, method, params):
        with self.lock:
            if self.is_closed:
                raise ToolError("Error: the session has ended")
            if not self.child:
                self._start()
            self.last_id += 1
            waiting = self.waiting[self.last_id] = Waiting()
            try:
                self._send({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
            except OSError:
                pass  # the reader sees the end
        waiting.answered.wait(CALL_TIMEOUT_S)
        if not waiting.answer:
            raise ToolError(f"Error: {PROGRAM} ended or did not answer")
        return waiting.answer

    def tool_names(self):
        return {tool["name"] for tool in self._ask("tools/list", {}).get("result", {}).get("tools", [])}

    def call(self, name, arguments):
        """The tool's result."""
        answer = self._ask("tools/call", {"name": name, "arguments": arguments})
        if "result" not in answer:
            raise ToolError(f"Error: {answer.get('error', {}).get('message', 'no result')}")
        return answer["result"]

    def close(self):
        """The guest ends with its stdin."""
        with self.lock:
            self.is_closed = True
            child = self.child
        if child:
            try:
                child.stdin.close()
            except OSError:
                pass
