"""The sandboxes' lives: created, started by need, stopped by command or 30 s after the last session, removed. A record says what
survives; a Sandbox here is what lives while the daemon does."""
import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time

from . import clone, egress, ports, runtime, versions
from .errors import CliError, not_found
from .relay import GUEST_ADDRESS
from .store import new_id, now
from .udp import UdpRelay


class Sandbox:
    """lock guards all but sessions and idle_since, which the manager's own lock guards."""

    def __init__(self, name):
        self.name, self.lock, self.runtime = name, threading.RLock(), None
        self.sessions, self.idle_since, self.opened, self.removed, self.egress = 0, None, {}, False, None

    @property
    def is_running(self):
        running = self.runtime
        return running is not None and running.is_alive()


class Sandboxes:
    def __init__(self, daemon):
        self.daemon, self.store, self.lock = daemon, daemon.store, threading.Lock()
        self.live = {name: Sandbox(name) for name in self.store.data["sandboxes"]}
        self.creating = {}
        self.init = runtime.compile_init(self.store.directory)
        self.directory = os.path.join(self.store.directory, "sandboxes")
        os.makedirs(self.directory, exist_ok=True)
        self.sweep()

    def sweep(self):
        """Root directories whose sandbox is not in the records: left by a daemon that was killed."""
        known = {record["id"] for record in self.store.data["sandboxes"].values()}
        for name in set(os.listdir(self.directory)) - known:
            remove_tree(os.path.join(self.directory, name))

    def root_of(self, record):
        return os.path.join(self.directory, record["id"])

    def get(self, name):
        with self.lock:
            found = self.live.get(name)
        if not found:
            raise not_found(name)
        return found

    # ---- create -------------------------------------------------------------------------------------------------------
    def reserve(self, name, record):
        with self.lock:
            if name in self.creating:
                raise CliError(f"failed to create sandbox: request failed: 409 Conflict: sandbox '{name}' already exists")
            if name in self.live or name in self.store.data["half_created"]:
                raise CliError(f"failed to create sandbox: sandbox '{name}' already exists")
            self.creating[name] = record

    def unreserve(self, name):
        with self.lock:
            self.creating.pop(name, None)

    def prepare(self, record, image, call):
        """A sandbox that runs and that nobody knows yet; commit or abandon it."""
        root, box = self.root_of(record), Sandbox(record["name"])
        os.mkdir(root, 0o700)
        try:
            os.mkdir(root + "/fs")
            if image:
                subprocess.run(["cp", "-a", "--reflink=auto", image + "/.", root + "/fs"], check=True, stdin=subprocess.DEVNULL, timeout=300)
            runtime.make_root(root + "/fs", record["name"])
            self.boot(box, record, call)
        except Exception:
            self.abandon(box, record)
            raise
        return box

    def commit(self, box, record, rules):
        with self.store.lock:
            self.store.data["sandboxes"][box.name] = record
            self.store.data["policy"]["rules"] += rules
            self.store.save()
        with self.lock:
            box.idle_since = time.monotonic()
            self.live[box.name] = box

    def abandon(self, box, record):
        with box.lock:
            self.halt(box)
        clone.forget_remote(record)
        remove_tree(self.root_of(record))

    # ---- start and stop ------------------------------------------------------------------------------------------------
    def ensure_running(self, box, call):
        """Called with box.lock held."""
        if box.removed:
            raise not_found(box.name)
        if box.is_running:
            return
        self.halt(box)
        hits = self.daemon.faults.take(["start"], ["start", box.name])
        call.faults += hits
        if call.fault("start-fails"):
            raise CliError(call.fault("start-fails").get("text", runtime.START_FAILED))
        time.sleep(call.settings["start_delay_ms"] / 1000)
        record = self.store.sandbox(box.name)
        self.boot(box, record, call)
        if record.get("clone"):
            clone.point_remote(record, self.live_row(box, ports.GIT_PORT))
        with self.lock:
            box.idle_since = time.monotonic()

    def boot(self, box, record, call):
        for path, _ in record["mounts"]:
            why = runtime.check_mount(path)
            if why:
                self.daemon.log(f"{record['name']}: cannot be mounted: {why}")
                raise CliError(runtime.START_FAILED)
        root = self.root_of(record) + "/fs"
        runtime.write_etc(root, record["name"])
        box.runtime = runtime.Runtime(root, record, self.daemon.package_mounts() + clone.mounts(record), self.init,
                                      self.daemon.log_file)
        box.egress = egress.Egress(self.daemon, record["name"], box.runtime)
        if record.get("clone"):
            clone.prepare(box.runtime, record)
        for row in list(record["ports"]):
            self.open_again(box, record, row, call)

    def open_again(self, box, record, row, call):
        """After a start: explicit host ports stay, ephemeral ones get a new number; one that is taken now is not there."""
        if call.fault("ports-lost"):
            record["ports"].remove(row)
            return
        explicit = row["host_port"] and not call.fault("ports-renumber")
        try:
            self.open_row(box, row, row["host_port"] if explicit else None, call)
        except CliError as why:
            if not row.get("started"):
                raise
            call.warn(f"WARNING: {why.text}")
        row["started"] = True

    def open_row(self, box, row, port, call):
        for other in self.live_rows():
            if port and other["host_port"] == port and overlap(other, row):
                shown = ports.show_address(row["host_ip"], port)
                raise CliError(f"publish port: port {shown}/{row['protocol'].rstrip('46')} is already published")
        listener = ports.listen(row, port)
        row["key"] = row.get("key") or new_id()
        live = {**row, "host_port": listener.getsockname()[1]}
        running = box.runtime
        if listener.type == socket.SOCK_DGRAM:
            handle = UdpRelay(listener, lambda: running.socket(socket.AF_INET, socket.SOCK_DGRAM), row["sandbox_port"])
        else:
            handle = self.daemon.relay.add(listener, lambda: connecting(running, row["sandbox_port"]))
        box.opened[row["key"]] = (live, handle)
        if call.fault("ports-dead") and listener.type == socket.SOCK_STREAM:
            self.daemon.relay.run_there(lambda: listener.shutdown(socket.SHUT_RDWR))

    def close_row(self, box, key):
        _, handle = box.opened.pop(key)
        if isinstance(handle, UdpRelay):
            handle.close()
        else:
            self.daemon.relay.remove(handle)

    def halt(self, box):
        """Called with box.lock held: no process and no open port is left."""
        for key in list(box.opened):
            self.close_row(box, key)
        if box.egress:
            box.egress.close()
            box.egress = None
        if box.runtime:
            box.runtime.close()
            box.runtime = None

    def remove(self, box):
        with box.lock:
            if box.removed:
                raise not_found(box.name)
            self.halt(box)
            box.removed = True
            with self.lock:
                self.live.pop(box.name, None)
            with self.store.lock:
                record = self.store.data["sandboxes"].pop(box.name)
                policy = self.store.data["policy"]
                policy["rules"] = [rule for rule in policy["rules"] if rule.get("scope") != f"sandbox:{box.name}"]
                self.store.data["secrets"] = [secret for secret in self.store.data["secrets"] if secret.get("sandbox") != box.name]
                self.store.save()
        clone.forget_remote(record)
        remove_tree(self.root_of(record))

    # ---- what others ask -------------------------------------------------------------------------------------------------
    def live_rows(self):
        with self.lock:
            boxes = list(self.live.values())
        return [live for box in boxes for live, _ in list(box.opened.values())]

    @staticmethod
    def rows(box):
        return [live for live, _ in list(box.opened.values())] if box.is_running else []

    def live_row(self, box, sandbox_port):
        return next((row for row in self.rows(box) if row["sandbox_port"] == sandbox_port), None)

    @contextlib.contextmanager
    def session(self, box, call):
        """While it is open the sandbox stays up. Starts the sandbox."""
        with box.lock:
            self.ensure_running(box, call)
            with self.lock:
                box.sessions += 1
            running = box.runtime
        try:
            self.touch(box)
            yield running
        finally:
            with self.lock:
                box.sessions -= 1
                box.idle_since = time.monotonic()

    def touch(self, box):
        with self.store.lock:
            record = self.store.sandbox(box.name)
            if record:
                record["last_used_at"], record["had_session"] = now(), True
                self.store.save()

    def stop_idle(self):
        """The auto-stop; called every second or so."""
        seconds = self.daemon.settings["auto_stop_s"]
        with self.lock:
            idle = [box for box in self.live.values() if box.is_running and box.sessions == 0 and seconds and time.monotonic() - box.idle_since >= seconds]
        for box in idle:
            record = self.store.sandbox(box.name) or {}
            if not record.get("had_session") and not versions.has(self.daemon.version, "stops_without_session"):
                continue
            if not box.lock.acquire(blocking=False):
                continue
            try:
                if box.sessions == 0 and time.monotonic() - box.idle_since >= seconds:
                    self.daemon.log(f"{box.name}: no session for {seconds} s: stopped")
                    self.halt(box)
            finally:
                box.lock.release()

    def stop_all(self):
        with self.lock:
            boxes = list(self.live.values())

        def stop(box):
            with box.lock:
                self.halt(box)
        threads = [threading.Thread(target=stop, args=(box,), daemon=True) for box in boxes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)


def connecting(running, port):
    made = running.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setblocking(False)
    made.connect_ex((GUEST_ADDRESS, port))
    return made


def overlap(one, other):
    if ports.family_of(one["host_ip"]) != ports.family_of(other["host_ip"]) or one["protocol"][:3] != other["protocol"][:3]:
        return False
    return one["host_ip"] == other["host_ip"] or {one["host_ip"], other["host_ip"]} & {"0.0.0.0", "::"} != set()


def remove_tree(path):
    """Directories that the guest made unreadable are made readable first."""
    def open_up(function, where, _):
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(where), 0o700)
            os.chmod(where, 0o700)
            if os.path.isdir(where) and not os.path.islink(where):
                shutil.rmtree(where, ignore_errors=True)
            else:
                os.unlink(where)
    shutil.rmtree(path, onerror=open_up)
