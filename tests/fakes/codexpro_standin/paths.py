"""Paths of the workspace: what is inside, what is blocked."""
import functools
import os
import re


class ToolError(Exception):
    """A call that failed; its text is what the caller sees."""


class PathError(ToolError):
    def __init__(self, text):
        super().__init__(f"CodexProError: {text}")


@functools.lru_cache(maxsize=None)
def compile_glob(glob):
    """`**/` is any number of directories, `/**` what is below, `*` and `?` stay within a part."""
    pattern, at = "", 0
    while at < len(glob):
        if glob.startswith("**/", at):
            pattern, at = pattern + "(?:[^/]+/)*", at + 3
        elif glob.startswith("**", at):
            pattern, at = pattern + ".+", at + 2
        elif glob[at] == "*":
            pattern, at = pattern + "[^/]*", at + 1
        elif glob[at] == "?":
            pattern, at = pattern + "[^/]", at + 1
        else:
            pattern, at = pattern + re.escape(glob[at]), at + 1
    return re.compile(pattern, re.DOTALL)


def is_blocked(relative, globs):
    if relative in ("", "."):
        return False
    last = os.path.basename(relative)
    return any(compile_glob(glob).fullmatch(relative) or compile_glob(glob).fullmatch(last) for glob in globs)


def relative_to(path, root):
    return os.path.relpath(path, root)


def is_inside(path, root):
    """A name that begins with two dots counts as outside, as the server has it."""
    relative = relative_to(path, root)
    return relative == "." or not relative.startswith("..")


def resolve_for_reading(root, given, globs):
    """(absolute path, path relative to the root), or PathError."""
    if "\0" in given:
        shown = os.path.join(root, given).replace("\0", "\\x00")
        raise ToolError(f"TypeError: The property 'options.cwd' must be a string, Uint8Array, or URL without null bytes. Received '{shown}'")
    expanded = os.path.expanduser(given) if given == "~" or given.startswith("~/") else given
    path = os.path.normpath(os.path.join(root, expanded or "."))
    real = os.path.realpath(path) if os.path.exists(path) else None
    if not is_inside(path, root):
        if not real or not is_inside(real, root):
            raise PathError(f"Path escapes workspace root: {given}")
        path = real
    relative = relative_to(path, root)
    if is_blocked(relative, globs):
        raise PathError(f"Path is blocked by safety rules: {relative}")
    if real:
        if not is_inside(real, root):
            raise PathError(f"Path resolves outside workspace root through a symlink: {given}")
        if is_blocked(relative_to(real, root), globs):
            raise PathError(f"Path is blocked by safety rules: {relative_to(real, root)}")
    return path, relative
