"""What `get -o yaml` prints, `apply` takes back unchanged: asked of every daemon that a test ends in order, for every object it has then."""
import subprocess

ITEM = "- apiVersion: "  # the beginning of an item of a List, as chat2shell writes it


def items(text):
    """The items of a printed List that will still be there in a moment."""
    head, *rest = text.split("\n" + ITEM)
    return [ITEM + item.rstrip("\n") + "\n" for item in rest if "\n    deletionTimestamp:" not in item]


def gaps(daemon):
    """Sentences on what applying everything would change; none where the daemon does not answer any more."""
    try:
        printed = daemon.cli("get", "all", "-o", "yaml")
    except subprocess.TimeoutExpired:
        return []
    if printed.returncode == 7:
        return []
    shown = printed.stdout.decode()
    lasting = items(shown)
    if printed.returncode != 0 or not (lasting or "deletionTimestamp:" in shown or "\nitems: []\n" in shown):
        return [f"get all -o yaml ended with {printed.returncode} and printed no List: {shown[:300]!r} {printed.stderr.decode()[-600:]}"]
    if not lasting:
        return []
    text = "apiVersion: v1\nkind: List\nitems:\n" + "".join(lasting)
    for more in (["--dry-run=server"], []):
        done = daemon.cli("apply", "-f", "-", *more, stdin=text.encode())
        lines = done.stdout.decode().splitlines()
        if any(" created" in line for line in lines) or done.returncode == 7:
            return []  # it went away in between, or the daemon did
        odd = [line for line in lines if " unchanged" not in line]
        if odd or done.returncode != 0 or len(lines) != len(lasting):
            return [f"apply {' '.join(more)} of what get printed: {odd[:3]}, {len(lines)} of {len(lasting)} told, {done.stderr.decode()[-600:]}"]
    return []
