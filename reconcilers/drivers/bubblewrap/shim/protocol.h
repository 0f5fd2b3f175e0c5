// What the bubblewrap driver and `chat2shell-shim` agree on. It is a format that outlives one daemon: a later daemon may
// talk to a shim that an earlier version started, so both sides ignore members they do not know and refuse a version
// they do not know.
//
// One shim a sandbox. It is started with its configuration in a sealed memfd (never argv) and these descriptors:
//   SHIM_FD_CONFIG      one JSON object, below
//   SHIM_FD_CONTROLLER  SOCK_SEQPACKET to the daemon that starts it
//   SHIM_FD_DIRECTORY   the sandbox's runtime directory (0700). The shim holds a flock on "lock" in it as long as it or
//                       the sandbox's first process lives, and listens on "control.sock" (SOCK_SEQPACKET) in it.
//   SHIM_FD_IMAGE       the shim's own program in a sealed memfd: the net helper and the probe inside run from it
//   SHIM_FD_PROGRAMS    the directory that holds chat2shell-guest, which is bound read-only at GUEST_PATH_INSIDE
//   SHIM_FD_FIRST_MOUNT and following: directories that the configuration's "mounts" and "template" name
//
// Configuration:
//   {"version":1, "name":NAME, "flags":["ends-with-controller"], "identity":"auto"|"single",
//    "template":{"kind":"host"} | {"kind":"tree","fd":N},
//    "mounts":[{"fd":N,"target":"/abs","read_only":bool,"device":D,"inode":I}], (device,inode 0 = not checked)
//    "command":[ARG…], "environment":["NAME=value"…], "cwd":"/abs", "network":bool,
//    "limits":{"memory_bytes":N,"pids":N,"cpus_milli":N,"root_bytes":N,
//              "cgroups":[{"version":1|2,"controller":"memory"|"pids"|"cpu"|"all","path":"/sys/fs/cgroup/…"}]}}
// "ends-with-controller": the end of SHIM_FD_CONTROLLER ends the sandbox. Without it the sandbox lives on and another
// daemon may connect to control.sock.
//
// Messages, both sockets: one JSON object a message, at most SHIM_MESSAGE_MAX_BYTES, with "v":1. Requests carry "seq", a
// number that grows by at least one with each request of a connection; the answer carries the same.
//   {"op":"hello"} → {"ok":true,"version":1,"name":NAME,"state":"starting"|"running"|"ending"}
//   {"op":"stdio"} → {"ok":true,"fds":["stdin","stdout","stderr"]} with these three descriptors; may be repeated
//   {"op":"network"} → {"ok":true,"fds":["proxy","connector"]} as in "ready" below; only with "network"; may be repeated
//   {"op":"end"}   → {"ok":true}; kills everything inside; the shim ends when all of it is gone
//   a failure: {"ok":false,"error":SENTENCE}
// Events, on SHIM_FD_CONTROLLER only:
//   {"event":"ready","identity":"range"|"subuid"|"single","limits":[…],"missing_limits":[…],"warnings":[…],
//    "broken_rules":[…],"fds":["init","proxy","connector"]}  init: pidfd of the sandbox's first process; proxy and
//    connector (see controller/base/egress_protocol.h) only with "network"
//   {"event":"failed","error":SENTENCE,"hint":SENTENCE,"code":NAME of error_meaning()}  before ready; nothing is left
//   {"event":"exited","exit_code":N,"reason":SENTENCE,"last_words":TEXT}  last_words: unread bytes of its stderr
// Descriptors travel from the shim to the daemon only; those that are sent to the shim are closed.
//
// `chat2shell-shim purge NAME` removes NAME below SHIM_FD_DIRECTORY with the identity that made what is in it.
// `chat2shell-shim unpack NAME` unpacks the tar archive on stdin into a new NAME there with the identity of sandboxes.
// `chat2shell-shim check` says on stdout what this host can do: {"identity":"range"|"subuid"|"single","overlay":bool,
// "keeps_groups":bool,"idmapped":bool (root only)} or {"error":SENTENCE,"hint":SENTENCE}.
#pragma once

#define SHIM_PROTOCOL_VERSION 1
#define SHIM_MESSAGE_MAX_BYTES 16384
#define SHIM_CONFIG_MAX_BYTES (256 * 1024)
#define SHIM_MAX_MOUNTS 8
#define SHIM_MAX_CGROUPS 4
#define SHIM_START_DEADLINE_MS 30000
#define SHIM_LOCK_NAME "lock"
#define SHIM_SOCKET_NAME "control.sock"
#define SHIM_EXIT_NAME "exit.json"
#define SHIM_LAYERS_NAME "layers"

enum shim_fd {
    SHIM_FD_CONFIG = 3,
    SHIM_FD_CONTROLLER,
    SHIM_FD_DIRECTORY,
    SHIM_FD_IMAGE,
    SHIM_FD_PROGRAMS,
    SHIM_FD_FIRST_MOUNT,
};
