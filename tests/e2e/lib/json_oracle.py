"""JSON texts by chance, right and broken ones, and what Python's reader says about them: an opinion that is not ours on what is
JSON, which id a message has, and whether it keeps to the limits."""
import json
import math
import sys

sys.set_int_max_str_digits(0)
KEYS = ['"id"', '"params"', '"_meta"', '"progressToken"', '"requestId"', r'"\u0069d"', r'"i\u0064"', '"x"', '"y"', '""']
PIECES = ["a", "é", "😀", "\u2028", r"\n", r"\u0000", r"\u0069", r"\ud83d\ude00", r"\ud800", r"\udc00", r"\\", r"\"", r"\/", "}", "{", "]", ",", ":", " ", "\x7f"]
NUMBERS = ["-0", "0", "1", "-1", "1.5", "1.0", "1e0", "1.5E+3", "1e400", "-1e-400", str(2**63), str(2**63 - 1), str(-(2**63) - 1), str(10**19), "9" * 300,
           "9" * 310, "8" * 1024, "8" * 1025]
INSERTS = rb'{}[]",:\u0123e.-+ ' + b"\n\0\xff\xc3\xed"


# ---- texts ------------------------------------------------------------------------------------------------------------------
class Texts:
    """random: a random.Random, so that a run can be had again."""

    def __init__(self, random):
        self.random = random

    def blank(self):
        return self.random.choice(["", "", "", " ", "\n", "\t\r "])

    def string(self):
        return '"' + "".join(self.random.choices(PIECES, k=self.random.choice([0, 1, 2, 3, 9]))) + '"'

    def number(self):
        return self.random.choice(NUMBERS) if self.random.random() < 0.5 else str(self.random.randint(-(2**70), 2**70))

    def value(self, depth=0):
        kind = self.random.random()
        if kind < 0.25 or depth > 4:
            return self.number()
        if kind < 0.45:
            return self.string()
        if kind < 0.55:
            return self.random.choice(["true", "false", "null"])
        if kind < 0.7:
            return "[" + ",".join(self.blank() + self.value(depth + 1) + self.blank() for _ in range(self.random.randint(0, 3))) + "]"
        return self.object(depth)

    def object(self, depth=0, first=()):
        count = self.random.randint(0, 4)
        keys = self.random.sample(KEYS, count) if self.random.random() < 0.9 else self.random.choices(KEYS, k=count)
        members = [*first, *((key, self.object(depth + 1) if key in KEYS[1:3] else self.value(depth + 1)) for key in keys)]
        self.random.shuffle(members)
        return "{" + ",".join(f"{self.blank()}{key}{self.blank()}:{self.blank()}{value}{self.blank()}" for key, value in members) + "}"

    def broken(self, data):
        """The text with some of its bytes changed."""
        data = bytearray(data)
        for _ in range(self.random.choice([1, 1, 2, 4])):
            at = self.random.randrange(len(data)) if data else 0
            data[at:at + self.random.randint(0, 1)] = self.random.choice([b"", bytes([self.random.choice(INSERTS)]), data[at:at + self.random.randint(1, 9)]])
        return bytes(data)


# ---- opinions ---------------------------------------------------------------------------------------------------------------
class Members(list):
    """An object as its pairs, in their order and with doubles."""

    def all(self, key):
        return [value for name, value in self if name == key]


class Number(str):
    """As it was written."""

    def is_integer(self):
        return not set(self) & set(".eE")


def no_constant(word):
    raise ValueError(word)


def read(data):
    """The value, with Members and Numbers; ValueError if it is no JSON."""
    text = data.decode("utf-8")
    if text.startswith("\ufeff"):
        raise ValueError("a byte order mark")
    return json.loads(text, parse_constant=no_constant, object_pairs_hook=Members, parse_int=Number, parse_float=Number)


def is_half(text):
    return any(0xD800 <= ord(character) <= 0xDFFF for character in text)


def is_number_beyond(number, is_part):
    if len(number) > 1024:
        return True
    if number.is_integer():
        return not is_part and abs(int(number)) >= 2**1024 - 2**970
    return math.isinf(float(number))


PARTS = {("id",), ("params", "requestId"), ("params", "_meta", "progressToken")}


def breaks_limit(value, path=()):
    if isinstance(value, Number):
        return is_number_beyond(value, path in PARTS)
    if isinstance(value, str):
        return is_half(value)
    if isinstance(value, Members):
        names = [name for name, _ in value]
        return len(path) >= 64 or len(set(names)) < len(names) or any("\0" in name or is_half(name) for name in names) or any(
            breaks_limit(member, (*path, name)) for name, member in value)
    return isinstance(value, list) and (len(path) >= 64 or any(breaks_limit(item, (*path, 0)) for item in value))


def legal_id(value):
    """The id that an answer must carry; None: none."""
    ids = value.all("id") if isinstance(value, Members) else []
    if len(ids) != 1:
        return None
    if isinstance(ids[0], Number):
        return ids[0] if ids[0].is_integer() and len(ids[0]) <= 1024 else None
    return ids[0] if isinstance(ids[0], str) and not is_half(ids[0]) else None
