"""What counts of a result and of the files left behind, and where two of them differ."""
import hashlib
import json
import os
import re
import stat

from contract import CONTRACT

MAX_SHOWN, MAX_ITEMS = 160, 12
IDS = re.compile(r"ws_[0-9a-z]{24,26}")
INSTANTS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
VOLATILE = ("durationMs", "key")  # a cache's key is the server's own
ISSUE = re.compile(r" at ([^ \n]+)$", re.M)


def plain_text(text, root, home):
    for found, name in ((root, "ROOT"), (home, "HOME")):
        if found:
            text = text.replace(found, name)
    return INSTANTS.sub("INSTANT", IDS.sub("WORKSPACE", text))


def plain(value, root, home):
    """The value without what two servers can never have in common: their directories, ids, instants and durations."""
    if isinstance(value, str):
        return plain_text(value, root, home)
    if isinstance(value, list):
        return [plain(item, root, home) for item in value]
    if isinstance(value, dict):
        return {key: 0 if key in VOLATILE else plain(item, root, home) for key, item in value.items()}
    return value


def failure(text):
    """What the contract fixes of a failure's words: the class, the system's code, the short sentences, the arguments named."""
    kind = re.match(r"(MCP error -32602: Input validation error|MCP error -32602: Tool|[A-Za-z]+Error|Error)\b", text)
    code = re.match(r"Error: ([A-Z0-9]{3,}): ", text)
    return {
        "class": kind.group(1) if kind else text[:60], "code": code.group(1) if code else None,
        "arguments": sorted(set(ISSUE.findall(text))) if text.startswith("MCP error") else None,
        "sentences": [sentence for sentence in CONTRACT["sentences"] if sentence in text],
    }


def content(item):
    return {"type": item.get("type"), **({} if item.get("type") == "text" else {key: item.get(key) for key in ("data", "mimeType")})}


def unordered(tool, structured):
    """The order of matches is free."""
    if tool == "search" and isinstance(structured.get("matches"), list):
        key = lambda match: (match.get("path", ""), match.get("line", 0), match.get("text", ""))  # noqa: E731
        structured["matches"] = sorted(structured["matches"], key=key)
    return structured


def seen(tool, result, root, home):
    """What of a result is compared."""
    items, structured = result.get("content", []), result.get("structuredContent")
    found = {"isError": bool(result.get("isError")), "content": [content(item) for item in items]}
    if found["isError"]:
        found["failure"] = failure(items[0].get("text", "") if items else "")
        found["structured"] = sorted(structured) if structured is not None else None
        if structured is not None:
            found["says_the_same"] = structured.get("error") == items[0].get("text")
    else:
        found["structured"] = unordered(tool, plain(structured or {}, root, home))
        found["structured"].pop("codexpro_title", None)
    return found


def differences(ours, theirs, path=""):
    """(path, sentence) where two values differ. What only ours has is told as such: the contract permits more fields."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            if key not in theirs:
                yield f"{path}/{key}", f"only ours: {short(ours[key])}"
            elif key not in ours:
                yield f"{path}/{key}", f"only theirs: {short(theirs[key])}"
            else:
                yield from differences(ours[key], theirs[key], f"{path}/{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and (ours or theirs):
        yield from list_differences(ours, theirs, path)
    elif ours != theirs or isinstance(ours, bool) != isinstance(theirs, bool):
        yield path, f"ours {short(ours, theirs)}, theirs {short(theirs, ours)}"


def key_of(item):
    """What makes an item of a list that item, whatever the rest of it."""
    if isinstance(item, dict):
        for names in (("path", "line", "name"), ("path", "line"), ("from", "to"), ("name", "path"), ("path",), ("id",), ("command",)):
            if all(name in item for name in names):
                return " ".join(str(item[name]) for name in names)
    return json.dumps(item, sort_keys=True, ensure_ascii=False)


def list_differences(ours, theirs, path):
    """Lists by their items: what one lacks, what differs within an item, and whether the order differs."""
    left, right = {key_of(item): item for item in ours}, {key_of(item): item for item in theirs}
    for key in left:
        if key in right:
            yield from differences(left[key], right[key], f"{path}[{key}]")
    for whose, these, others in (("ours", left, right), ("theirs", right, left)):
        lone = [key for key in these if key not in others]
        if len(lone) > MAX_ITEMS:
            yield path, f"only {whose}: {len(lone)} items: {', '.join(lone[:MAX_ITEMS])}"
        else:
            yield from ((f"{path}[{key}]", f"only {whose}") for key in lone)
    common = [key for key in left if key in right]
    if common != [key for key in right if key in left]:
        yield path, "in another order"
    elif left.keys() == right.keys() and len(ours) != len(theirs):
        yield path, f"ours has {len(ours)} items, theirs {len(theirs)}"


def short(value, other=None):
    """The value, from a little before the first character that differs from the other."""
    text, beside = (json.dumps(item, ensure_ascii=False) for item in (value, other))
    start = 0
    if other is not None and len(text) > MAX_SHOWN:
        start = max(0, len(os.path.commonprefix([text, beside])) - 40)
    return ("…" if start else "") + text[start:start + MAX_SHOWN] + ("…" if start + MAX_SHOWN < len(text) else "")


def file_seen(path, root, home):
    entry = os.lstat(path)
    mode = stat.filemode(entry.st_mode)
    if stat.S_ISLNK(entry.st_mode):
        return {"mode": mode, "target": os.readlink(path)}
    if not stat.S_ISREG(entry.st_mode):
        return {"mode": mode}
    with open(path, "rb") as file:
        data = file.read()
    if f"{os.sep}.ai-bridge{os.sep}" in path:
        return {"mode": mode, "text": plain_text(data.decode(errors="replace"), root, home).split("\n")}
    return {"mode": mode, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def files(root, home):
    """{name: what it is} of everything below the root but git's own files."""
    found = {}
    for base, directories, names in os.walk(root):
        if base == root and ".git" in directories:
            directories.remove(".git")
        for name in directories + names:
            path = os.path.join(base, name)
            found[os.path.relpath(path, root)] = file_seen(path, root, home)
    return found
