// What the control plane and the in-sandbox tool server `chat2shell-guest` agree on.
//
// Transport: the stdio of the one foreground process in the sandbox. JSON-RPC 2.0, one message a line, UTF-8,
// no message over GUEST_MESSAGE_MAX_BYTES in either direction. Any number of requests up to
// GUEST_MAX_IN_FLIGHT may be under way; answers come in any order. The guest's end is end-of-file.
//
// Standard MCP: initialize (2025-11-25), ping, tools/list, tools/call, notifications/initialized,
// notifications/cancelled {requestId} (ends a wait or a tool; the cancelled request is answered with error
// code GUEST_ERROR_CANCELLED). The `initialize` answer carries capabilities.experimental
// ["chat2shell.dev/sessions"] = {"version": 1} for the methods below. Their errors are JSON-RPC errors with a
// sentence in `message`: -32602 wrong params, GUEST_ERROR_UNKNOWN_SESSION, GUEST_ERROR_LIMIT, -32603 others.
//
//   chat2shell/bash_start {session_id, command, cwd?, timeout_ms?} → {}
//       Starts `/bin/bash -lc COMMAND` detached in its own session and process group, stdin /dev/null, stdout
//       and stderr in one log. session_id is the control plane's ("bash_" + 32 hex digits). cwd follows the path
//       rules of the file tools. timeout_ms >= 1000 or absent (no limit): SIGTERM to the group (exit code 124),
//       SIGKILL 2 s later (137).
//   chat2shell/bash_read {session_id, wait: "none"|"output"|"exit", wait_ms: 0–60000, max_bytes: 1–60000} →
//       {session_id, status: "running"|"exited", exit_code: integer|null, output, has_more_output}
//       Waits (without occupying anything) until the condition, exit or wait_ms; "output" also ends at once when
//       unread bytes exist. Returns only bytes not given before, at most max_bytes (a held-back piece of a UTF-8
//       character is not counted), never splitting a character; bad bytes become U+FFFD. Reads of one session
//       queue: no byte is lost or given twice. exit_code is 128+N for death by signal N. May be repeated after exit.
//       With _meta.progressToken (a string) a wait for "exit" says while it lasts how much the command has printed
//       since its start: notifications/progress {progressToken, progress: bytes}, at most once a second.
//   chat2shell/bash_stop {session_id} → as bash_read with wait "none"
//       SIGTERM to the process group, SIGKILL to it if it lives 1.5 s later, then the snapshot. Idempotent.
//   chat2shell/exec_start {exec_id, argv: [..], cwd?, env?: {..}, tty?: {columns?, rows?, term?}} → {}
//       Starts argv (no shell; PATH search) with three pipes, for the operator's `exec`, `cp` and `export`. With tty: on a
//       terminal of its own, whose output is "stdout" (CodexPro sessions refuse that).
//   chat2shell/exec_write {exec_id, data: base64, eof: bool} → {}       answers when the bytes are in the pipe
//   chat2shell/exec_read {exec_id, wait_ms: 0–60000} → {stdout: base64, stderr: base64, exited: bool,
//       exit_code: integer|null}     at most GUEST_EXEC_CHUNK_BYTES a stream; waits for bytes or the end;
//       exited is true only when both streams are drained and the process is gone (code 126/127 as a shell has it)
//   chat2shell/exec_signal {exec_id, signal: integer} → {}               to the process group
//   chat2shell/exec_resize {exec_id, columns, rows: 0–65535} → {}       the terminal's window; 0: not known
//   chat2shell/exec_end {exec_id} → {}                                   kills what is left and forgets it; a terminal is hung up
//       (SIGHUP), and what its session still has 2 s later is killed
//   chat2shell/git_unsaved {} → {is_repository, changed_files: integer, unexported_commits: integer}
//       Uncommitted changes (porcelain lines) and commits on branches that no remote-tracking branch has.
#pragma once

#define GUEST_MESSAGE_MAX_BYTES (24 * 1024 * 1024)
#define GUEST_MAX_IN_FLIGHT 1280
#define GUEST_MAX_BASH_SESSIONS 1024
#define GUEST_MAX_EXECS 64
#define GUEST_EXEC_CHUNK_BYTES (45 * 1024) // as text below 64 KiB: a message that needs no memory map of its own
#define GUEST_SESSIONS_CAPABILITY "chat2shell.dev/sessions"
#define GUEST_ERROR_CANCELLED (-32800)
#define GUEST_ERROR_UNKNOWN_SESSION (-32810)
#define GUEST_ERROR_LIMIT (-32811)

// Where things are inside a sandbox (set by the bubblewrap driver).
#define GUEST_PATH_INSIDE "/run/chat2shell/chat2shell-guest" // also linked as /usr/local/bin/sudo (argv[0] decides)
#define GUEST_PROXY_PORT 3128                                // 127.0.0.1 inside: the egress listener
