"""Which release does what. A version is a tuple of numbers; FEATURES says since when."""
import re

FEATURES = {
    "env_flags": (0, 39),           # -e/--env, --env-file on create and run
    "tcp4_default": (0, 42),        # published ports are tcp4; before: both families, protocol tcp
    "mountless": (0, 42),           # create without a path
    "json_everywhere": (0, 42),     # --json on version and other read-only commands
    "cloud": (0, 42),               # --cloud
    "times_in_ls": (0, 43),         # created_at, last_used_at
    "minimum_memory": (0, 43),      # 512 MiB
    "prune_filter": (0, 43),
    "stops_without_session": (0, 43),  # a sandbox that never had a session stops by itself too
    "decline_fails": (0, 45),       # a declined prompt exits non-zero
    "names_checked": (0, 45),       # before creation; + refused
    "no_exec_detach": (0, 45),
    "create_pull_skills": (0, 45),
    "inspect": (0, 45),
    "create_only_flags": (0, 46),   # refused on re-attach
    "run_detached": (0, 46),
    "static_mcp": (0, 46),
}
OLDEST = (0, 33)


def parse(text):
    """(0, 46, 0) of "0.46.0" or "v0.46"; None if it is none."""
    found = re.fullmatch(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text or "")
    return tuple(int(part or 0) for part in found.groups()) if found else None


def has(version, feature):
    return version >= FEATURES[feature]


def show(version):
    return "v" + ".".join(map(str, version))
