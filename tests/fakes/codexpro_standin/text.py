"""Text as the server's language has it: UTF-16 inside, UTF-8 outside, U+FFFD for what is neither."""
import json


def well_formed(text):
    """Lone surrogates become U+FFFD, pairs the character they mean."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def to_utf8(text):
    try:
        return text.encode()
    except UnicodeEncodeError:
        return well_formed(text).encode()


def from_utf8(data):
    return data.decode("utf-8", "replace")


def to_json(value):
    """Compact JSON in UTF-8; a lone surrogate stays an escape."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
