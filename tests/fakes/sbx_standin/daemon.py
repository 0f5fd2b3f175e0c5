"""sandboxd of the stand-in. Usage: daemon.py STATE READY; READY is the descriptor that is told when it listens, or -.

Main thread: accepts, and looks after itself every second (the auto-stop; its state directory, without which it ends). One thread
for each call. All state is in files, so that it survives; sandboxes do not survive their daemon."""
import json
import os
import resource
import signal
import socket
import sys
import threading
import time

if __name__ == "__main__":
    STATE = sys.argv[1]
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from sbx_standin import call as calls, commands, effects, faults, policy, relay, sandboxes, settings, store, versions, wire  # noqa: E402
from sbx_standin.errors import ClientGone, CliError  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD_LIMIT = 64 << 20  # bytes of calls.jsonl
BAD_SETTINGS = 97
TICK_SECONDS = 0.5


class Daemon:
    def __init__(self, state):
        self.state, self.stopping, self.serving = state, threading.Event(), True
        self.log_file = open(os.path.join(state, "daemon.log"), "a", buffering=1)
        self.settings, self.faults = settings.Settings(state), faults.Faults(state)
        self.version = commands.client_version(self.settings, os.environ)
        self.record_lock, self.record_size, self.number = threading.Lock(), 0, 0
        self.thieves, self.end_after = [], None
        directory = os.path.join(state, "standin")
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self.store = store.Store(directory)
        self.relay = relay.Relay(self.log)
        self.sandboxes = sandboxes.Sandboxes(self)
        if os.environ.get("SBX_STANDIN_START_POLICY") and not self.store.data["policy"]["initialized"]:
            policy.initialize(self.store.data, os.environ["SBX_STANDIN_START_POLICY"])
            self.store.save()

    def log(self, text):
        self.log_file.write(f"{store.now()} {text}\n")

    def pause(self, seconds):
        """A delay that the daemon's end cuts short."""
        if seconds > 0 and self.stopping.wait(seconds):
            raise ClientGone

    def package_mounts(self):
        """What npm inside a sandbox installs: the CodexPro stand-in, its modules and the tool server's binary."""
        fakes, target = os.path.dirname(HERE), "/run/sandbox/standin/packages/codexpro/"
        guest = os.environ.get("SBX_STANDIN_GUEST") or self.settings["guest"] or self.built_guest()
        found = [(os.path.join(fakes, "codexpro"), "codexpro"), (os.path.join(fakes, "codexpro_standin"), "codexpro_standin"), (guest, "chat2shell-guest")]
        return [(source, target + name) for source, name in found if source and os.path.exists(source)] + self.real_codexpro()

    @staticmethod
    def real_codexpro():
        """SBX_STANDIN_CODEXPRO names a real one (a directory with dist/http.js): npm installs that instead. Its dependencies are in it, or
        beside it in node_modules."""
        found = os.environ.get("SBX_STANDIN_CODEXPRO")
        if not found or not os.path.isfile(os.path.join(found, "dist/http.js")):
            return []
        found = os.path.realpath(found)
        parent, name = os.path.split(found)
        is_beside = os.path.basename(parent) == "node_modules" and name == "codexpro"
        return [(parent, "/run/sandbox/standin/real/node_modules")] if is_beside else [(found, "/run/sandbox/standin/real/node_modules/codexpro")]

    @staticmethod
    def built_guest():
        root = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
        paths = [os.path.join(root, "build", build, "chat2shell-guest") for build in ("release", "dev")]
        return next((path for path in paths if os.path.exists(path)), "")

    # ---- serving -------------------------------------------------------------------------------------------------------
    def listen(self):
        os.chdir(self.state)
        if os.path.lexists("sandboxd.sock"):
            os.unlink("sandboxd.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind("sandboxd.sock")
        os.chmod("sandboxd.sock", 0o600)
        self.listener.listen(512)
        self.listener.settimeout(TICK_SECONDS)
        self.inode = os.stat("sandboxd.sock").st_ino
        with open("sandboxd.pid", "w") as file:
            file.write(str(os.getpid()))
        self.log(f"listening, playing {versions.show(self.version)}")

    def serve(self):
        looked = time.monotonic()
        while not self.stopping.is_set():
            try:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.answer, args=(connection,), daemon=True).start()
            except TimeoutError:
                pass
            except OSError:
                self.stopping.wait(TICK_SECONDS)
            if time.monotonic() - looked >= TICK_SECONDS:
                looked = time.monotonic()
                self.look_after()
        self.end()

    def look_after(self):
        try:
            is_ours = os.stat(os.path.join(self.state, "sandboxd.sock")).st_ino == self.inode
        except OSError:
            is_ours = False
        if not is_ours and self.serving:
            self.stopping.set()
            return
        try:
            self.settings.refresh()
        except settings.BadSettings as why:
            self.log(str(why))
        self.sandboxes.stop_idle()

    def stop_serving(self):
        """New calls start another daemon from here on."""
        self.serving = False
        try:
            os.unlink(os.path.join(self.state, "sandboxd.sock"))
        except OSError:
            pass

    def end(self):
        if self.serving:
            self.stop_serving()
        self.sandboxes.stop_all()
        os._exit(0)

    # ---- one call ------------------------------------------------------------------------------------------------------
    def answer(self, connection):
        message, descriptors = wire.receive(connection)
        if message is None or len(descriptors) != 3:
            return connection.close()
        call = calls.Call(self, connection, message, descriptors)
        status = None
        number = self.record_start(call)
        try:
            status = self.run(call)
        except ClientGone:
            pass
        except Exception as why:  # noqa: BLE001 - one call must not end the daemon
            import traceback
            self.log("".join(traceback.format_exception(why)))
            status = 1
            self.tell(call, 1, "", f"ERROR: request failed: 500 Internal Server Error: {type(why).__name__}: {why}\n")
        self.record_end(number, status)
        call.close()
        try:
            if status is not None:
                connection.send(bytes([status & 255]))
        except OSError:
            pass
        connection.close()
        if self.end_after is call:
            self.stopping.set()
        return None

    def run(self, call):
        """The exit status."""
        try:
            self.settings.refresh()
            call.version = commands.client_version(self.settings, call.environment)
            call.faults = self.faults.take(self.command_words(call), call.argv)
        except (settings.BadSettings, faults.BadFaults) as why:
            return self.tell(call, BAD_SETTINGS, "", f"ERROR: stand-in: {why}\n")
        try:
            effects.act(call, "before")
            self.ask_for_restart(call)
            status = commands.execute(call)
            effects.act(call, "after")
        except effects.Finished as why:
            return self.tell(call, why.status, why.out, why.err)
        except CliError as why:
            call.warn(f"ERROR: {why.text}")
            status = why.code
        return self.tell(call, *effects.bend(call, status, "".join(call.out), "".join(call.err)))

    @staticmethod
    def command_words(call):
        try:
            return commands.find(call.argv, (999,))[0].split()
        except Exception:  # noqa: BLE001 - the command itself will say what is wrong
            return call.argv[:1]

    def ask_for_restart(self, call):
        """A newer client meeting an older daemon."""
        if call.version[:2] <= self.version[:2] or self.command_words(call)[:1] in (["version"], ["daemon"], ["diagnose"]):
            return
        text = (f"Client version: {versions.show(call.version)}\nDaemon version: {versions.show(self.version)}\n"
                "Docker Sandboxes has been updated and needs to restart. All running sandboxes will be stopped.\n")
        call.write(1, text.encode())
        if call.confirm("Restart now? (y/N): ", "the daemon must be restarted to go on"):
            self.sandboxes.stop_all()
            self.version = call.version

    @staticmethod
    def tell(call, status, out, err):
        if call.descriptors:
            call.write(1, out.encode("utf-8", "surrogateescape"))
            call.write(2, err.encode("utf-8", "surrogateescape"))
        return status

    # ---- calls.jsonl ---------------------------------------------------------------------------------------------------
    def record_start(self, call):
        with self.record_lock:
            self.number += 1
            number = f"{os.getpid()}-{self.number}"
        self.record({"event": "start", "id": number, "argv": call.argv, "environment": sorted(call.environment), "cwd": call.cwd, "client_pid": call.pid,
                     "stdin": calls.kind_of(call.descriptors[0], 0 in call.closed), "stdout": calls.kind_of(call.descriptors[1], 1 in call.closed),
                     "stderr": calls.kind_of(call.descriptors[2], 2 in call.closed), "time": time.time()})
        return number

    def record_end(self, number, status):
        """status null: the client was killed before the end."""
        self.record({"event": "end", "id": number, "status": status, "time": time.time()})

    def record(self, line):
        data = json.dumps(line) + "\n"
        with self.record_lock:
            self.record_size += len(data)
            if self.record_size < RECORD_LIMIT:
                try:
                    with open(os.path.join(self.state, "calls.jsonl"), "a") as file:
                        file.write(data)
                except OSError:
                    pass  # the state directory is gone, and so will the daemon be


def main():
    threading.stack_size(512 << 10)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # whatever the first caller had blocked
    os.umask(0o022)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        daemon = Daemon(STATE)
    except (settings.BadSettings, CliError) as why:
        sys.stderr.write(f"ERROR: stand-in: {why}\n")
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: daemon.stopping.set())
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    daemon.listen()
    if sys.argv[2] != "-":
        os.write(int(sys.argv[2]), b"%d\n" % os.getpid())
        os.close(int(sys.argv[2]))
    daemon.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
