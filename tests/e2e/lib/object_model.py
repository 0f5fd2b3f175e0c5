"""What objects become by creates, replaces, patches, applies and deletes, and who owns what of them: Kubernetes' rules on
plain dictionaries, written without looking at the server. An object is {"labels": {}, "annotations": {}, "finalizers": []};
a field is ("labels", key), ("annotations", key), ("finalizers", text) or ("mode",)."""
import copy

MAPS = ("labels", "annotations")


class Refused(Exception):
    def __init__(self, status, conflicts=None):
        super().__init__(f"{status} {conflicts or ''}")
        self.status, self.conflicts = status, conflicts


def leaves(content):
    """Every field with its value."""
    found = {("mode",): "managed"}
    for part in MAPS:
        found.update({(part, key): value for key, value in content[part].items()})
    found.update({("finalizers", text): True for text in content["finalizers"]})
    return found


def empty():
    return {"labels": {}, "annotations": {}, "finalizers": []}


class Object:
    def __init__(self):
        self.content = empty()
        self.owners = {}  # (manager, operation) → set of fields
        self.is_deleting = False
        self.generation = 1

    def copy(self):
        return copy.deepcopy(self)

    def is_same(self, other):
        return (self.content, self.owners, self.is_deleting) == (other.content, other.owners, other.is_deleting)

    def _lose(self, fields, but=None):
        for owner in list(self.owners):
            if owner != but:
                self.owners[owner] -= fields
            if not self.owners[owner]:
                del self.owners[owner]

    def _check(self, content):
        if any(" " in value for value in content["labels"].values()):
            raise Refused(422)
        if self.is_deleting and set(content["finalizers"]) - set(self.content["finalizers"]):
            raise Refused(422)

    def update(self, content, manager, is_new=False):
        """POST, PUT and patches: what changes is the manager's from now on."""
        self._check(content)
        before = {} if is_new else leaves(self.content)
        after = leaves(content)
        changed = {field for field, value in after.items() if before.get(field) != value}
        gone = set(before) - set(after)
        self._lose(changed | gone)
        if changed:
            self.owners.setdefault((manager, "Update"), set()).update(changed)
        self.content = content

    def apply(self, config, manager, is_forced, is_new=False):
        mine = (manager, "Apply")
        named = {field: value for field, value in leaves(config).items() if field != ("mode",) or config.get("names_mode")}
        before = {} if is_new else leaves(self.content)
        if not self.owners and not is_new:  # somebody made it
            self.owners[("before-first-apply", "Update")] = set(before)
        others = {owner: fields for owner, fields in self.owners.items() if owner != mine}
        changed = {field for field, value in named.items() if before.get(field) != value}
        conflicts = {(owner[0], field) for owner, fields in others.items() for field in fields & changed}
        if conflicts and not is_forced:
            raise Refused(409, conflicts)
        merged = copy.deepcopy(self.content)
        abandoned = self.owners.get(mine, set()) - set(named)
        for fields in others.values():
            abandoned = abandoned - fields
        for part, key in abandoned - {("mode",)}:  # which has a default: it comes back as it was
            if part in MAPS:
                merged[part].pop(key, None)
            else:
                merged[part].remove(key)
        for part in MAPS:
            merged[part].update(config[part])
        merged["finalizers"] += [text for text in config["finalizers"] if text not in merged["finalizers"]]
        self._check(merged)
        self._lose(changed, but=mine)
        self.owners.pop(mine, None)
        if named:
            self.owners[mine] = set(named)
        self.content = merged


def merge_patch(target, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _steps(pointer):
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def json_patch(document, operations):
    """RFC 6902 on dictionaries and lists."""
    document = copy.deepcopy(document)

    def parent(pointer):
        *way, last = _steps(pointer)
        at = document
        for step in way:
            if not isinstance(at, dict) or step not in at:
                raise Refused(422)
            at = at[step]
        if not isinstance(at, dict):
            raise Refused(422)
        return at, last

    def get(pointer):
        at, last = parent(pointer)
        if last not in at:
            raise Refused(422)
        return copy.deepcopy(at[last])

    def add(pointer, value):
        at, last = parent(pointer)
        at[last] = value

    def remove(pointer):
        value = get(pointer)
        at, last = parent(pointer)
        del at[last]
        return value

    for operation in operations:
        kind, path = operation["op"], operation["path"]
        if kind == "add":
            add(path, operation["value"])
        elif kind == "remove":
            remove(path)
        elif kind == "replace":
            remove(path)
            add(path, operation["value"])
        elif kind == "move":
            add(path, remove(operation["from"]))
        elif kind == "copy":
            add(path, get(operation["from"]))
        elif get(path) != operation["value"]:
            raise Refused(422)
    return document
