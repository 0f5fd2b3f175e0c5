"""Flags and environment of the server: what each is called, its default and its range."""
import os
import re

VERSION = "0.30.0"
MIN_TOKEN_BYTES = 24

BLOCKED_GLOBS = [
    ".git", ".git/**", "**/.git/**", "node_modules", "node_modules/**", "**/node_modules/**",
    ".env", ".env/**", ".env.*", ".env.*/**", "**/.env", "**/.env/**", "**/.env.*", "**/.env.*/**",
    "**/*.pem", "**/*.key", "**/id_rsa", "**/id_rsa.*", "**/id_ed25519", "**/id_ed25519.*", "**/.ssh/**",
] + [pattern for name in ("dist", "build", ".next", "coverage", ".cache") for pattern in (name, f"{name}/**", f"**/{name}/**")]

# attribute: (environment, default, lowest, highest)
LIMITS = {
    "max_read_bytes": ("CODEXPRO_MAX_READ_BYTES", 180000, 4000, 2000000),
    "max_write_bytes": ("CODEXPRO_MAX_WRITE_BYTES", 1000000, 1000, 10000000),
    "max_output_bytes": ("CODEXPRO_MAX_OUTPUT_BYTES", 120000, 4000, 2000000),
    "max_bash_timeout_ms": ("CODEXPRO_MAX_BASH_TIMEOUT_MS", 600000, 1000, 900000),
    "max_import_bytes": ("CODEXPRO_MAX_IMPORT_BYTES", 5000000, 1000, 50000000),
    "max_search_results": ("CODEXPRO_MAX_SEARCH_RESULTS", 200, 5, 2000),
    "max_http_sessions": ("CODEXPRO_MAX_HTTP_SESSIONS", 64, 1, 512),
    "http_session_ttl_ms": ("CODEXPRO_HTTP_SESSION_TTL_MS", 1800000, 60000, 86400000),
}

# attribute: (flag, environment, values, the one taken for anything else)
CHOICES = {
    "bash_mode": ("bash", "CODEXPRO_BASH_MODE", ("off", "safe", "full"), "safe"),
    "bash_transcript": ("bash-transcript", "CODEXPRO_BASH_TRANSCRIPT", ("compact", "full"), "compact"),
    "write_mode": ("write", "CODEXPRO_WRITE_MODE", ("off", "handoff", "workspace"), "workspace"),
    "tool_mode": ("tool-mode", "CODEXPRO_TOOL_MODE", ("minimal", "standard", "full"), "standard"),
}


class StartError(Exception):
    """Why the server does not start."""


def parse_flags(argv):
    """{flag: text or True}; allow-root collects a list. Words that are no flag are passed over."""
    flags, at = {}, 0
    while at < len(argv):
        word = argv[at]
        at += 1
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        if not equals:
            value = True
            if at < len(argv) and argv[at] and not argv[at].startswith("--"):
                value = argv[at]
                at += 1
        if name == "allow-root":
            flags.setdefault(name, []).append("true" if value is True else value)
        else:
            flags[name] = value
    return flags


def clamp(text, default, low, high):
    try:
        number = float(text) if text is not None and text is not True else None
    except ValueError:
        number = None
    if number is None or number != number or number in (float("inf"), float("-inf")):
        return default
    return max(low, min(high, int(number // 1)))


def is_true(text):
    return text is True or (isinstance(text, str) and text.lower() in ("1", "true", "yes", "y", "on"))


def real_directory(path):
    path = os.path.abspath(os.path.expanduser(path))
    if not os.path.exists(path):
        raise StartError(f"Directory does not exist: {path}")
    if not os.path.isdir(path):
        raise StartError(f"Not a directory: {path}")
    return os.path.realpath(path)


def context_directory(text):
    path = os.path.normpath((text or "").strip().replace("\\", "/") or ".ai-bridge")
    parts = path.split("/")
    if os.path.isabs(path) or ".." in parts or not parts[0].startswith(".") or path == ".":
        raise StartError("CODEXPRO_CONTEXT_DIR must be a relative directory below the workspace whose first part starts with a dot.")
    return path


class Settings:
    """What the server was started with."""

    def __init__(self, argv, environment):
        flags = parse_flags(argv)

        def text(flag, *names):
            value = flags.get(flag)
            found = [environment[name] for name in names if name in environment]
            return value if isinstance(value, str) else found[0] if found else None

        self.environment = environment
        self.root = real_directory(text("root", "CODEXPRO_ROOT") or os.getcwd())
        more = [part.strip() for part in environment.get("CODEXPRO_ALLOWED_ROOTS", "").split(":") if part.strip()]
        self.allowed_roots = list(dict.fromkeys([self.root] + [real_directory(path) for path in flags.get("allow-root", []) + more]))
        self.host = text("host", "CODEXPRO_HOST", "HOST") or "127.0.0.1"
        self.port = clamp(text("port", "CODEXPRO_PORT", "PORT"), 8787, 1, 65535)
        for name, (flag, variable, values, fallback) in CHOICES.items():
            value = text(flag, variable)
            setattr(self, name, value if value in values else fallback)
        for name, (variable, default, low, high) in LIMITS.items():
            setattr(self, name, clamp(environment.get(variable), default, low, high))
        self.inherit_env = environment.get("CODEXPRO_INHERIT_ENV") == "1"
        self.context_dir = context_directory(environment.get("CODEXPRO_CONTEXT_DIR"))
        self.blocked_globs = BLOCKED_GLOBS + [g.strip() for g in environment.get("CODEXPRO_BLOCKED_GLOBS", "").split(",") if g.strip()]
        self.logs_requests = environment.get("CODEXPRO_LOG_REQUESTS") == "1"
        self.logs_calls = self.logs_requests or environment.get("CODEXPRO_LOG_TOOL_CALLS") == "1"
        self.tool_cards = is_true(flags.get("tool-cards", environment.get("CODEXPRO_TOOL_CARDS")))
        self._take_bash_session(text("bash-session", "CODEXPRO_BASH_SESSION_ID"),
                                flags.get("require-bash-session", environment.get("CODEXPRO_REQUIRE_BASH_SESSION")))
        self._take_token(environment)

    def _take_bash_session(self, text, required):
        self.bash_session_id = (text or "").strip() or None
        if self.bash_session_id and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", self.bash_session_id):
            raise StartError("CODEXPRO_BASH_SESSION_ID must be 1 to 64 letters, digits, dots, underscores or dashes.")
        self.require_bash_session = is_true(required)
        if self.require_bash_session and not self.bash_session_id:
            raise StartError("CODEXPRO_REQUIRE_BASH_SESSION requires CODEXPRO_BASH_SESSION_ID or --bash-session.")

    def _take_token(self, environment):
        self.token = environment.get("CODEXPRO_HTTP_TOKEN") or None
        if self.token and len(os.fsencode(self.token)) < MIN_TOKEN_BYTES:
            raise StartError(f"CODEXPRO_HTTP_TOKEN must be at least {MIN_TOKEN_BYTES} bytes.")
        is_loopback = self.host in ("127.0.0.1", "localhost", "::1")
        if not self.token and not (is_loopback and is_true(environment.get("CODEXPRO_ALLOW_NO_HTTP_TOKEN"))):
            raise StartError("CODEXPRO_HTTP_TOKEN is required for this HTTP binding.")

    def health(self):
        return {
            "ok": True, "name": "CodexPro", "defaultRoot": self.root, "allowedRoots": self.allowed_roots, "bashMode": self.bash_mode,
            "bashTranscript": self.bash_transcript, "bashSessionId": self.bash_session_id, "requireBashSession": self.require_bash_session,
            "codexSessions": "off", "writeMode": self.write_mode, "toolMode": self.tool_mode, "widgetDomain": "https://standin.invalid",
            "contextDir": self.context_dir, "authEnabled": bool(self.token), "authRequired": bool(self.token),
        }

    def ready_lines(self):
        yield f"HTTP MCP listening on http://{self.host}:{self.port}/mcp"
        yield f"defaultRoot={self.root}"
        yield f"allowedRoots={', '.join(self.allowed_roots)}"
        yield f"bashMode={self.bash_mode}"
        yield f"writeMode={self.write_mode}"
        yield "widgetDomain=https://standin.invalid"
