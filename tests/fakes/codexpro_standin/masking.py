"""Secrets in answers become [REDACTED_SECRET]: the shapes, their order, and the placeholders that are left alone."""
import functools
import re

MARK = "[REDACTED_SECRET]"
FLAGS = re.ASCII | re.IGNORECASE
# What counts as blank there, beyond ASCII.
BLANK = "[\\s\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
NAME = r"[A-Za-z0-9_]{0,64}(?:API[_-]?KEY|TOKEN|SECRET|PASSWORD|PRIVATE[_-]?KEY)[A-Za-z0-9_]{0,64}"


def value(quoted, bare):
    """A quoted value of at least `quoted` characters, or a bare one of at least `bare`."""
    quotes = "|".join(f"{q}[^{q}\\r\\n]{{{quoted},512}}{q}" for q in "\"'`")
    return f"(?:{quotes}|[A-Za-z0-9_./+=-]{{{bare},512}})"


PLACEHOLDERS = (
    MARK.lower(), "replace-me", "replace-with-long-random-token", "keep-this-codexpro-token-stable", "keep-this-stable-token",
    "your-ngrok-token", "your-token", "your-api-key-here", "<openai_api_key>", "process.env.", "import.meta.env.", "os.environ", "getenv(",
)


def is_placeholder(text):
    text = text.lower()
    return any(word in text for word in PLACEHOLDERS) or text == "sk-..." or text.endswith("=sk-...")


def keep_prefix(match):
    return match.group(1) + MARK


def keep_prefix_of_secrets(match):
    return match.group(0) if is_placeholder(match.group(0)) else keep_prefix(match)


def whole(match):
    return match.group(0) if is_placeholder(match.group(0)) else MARK


def assignment(match):
    text = match.group(0)
    return text if is_placeholder(text) else f"{text[:text.index('=')].rstrip()}= {MARK}"


OPTIONS = rf"((?:\bngrok{BLANK}+config{BLANK}+add-authtoken|\bcloudflared{BLANK}+service{BLANK}+install|--(?:token|access-token|auth-token|api[_-]?key|authtoken))"

# What stands in every text that a shape fits, in small letters: what has none of it needs no search, and a program that masks nothing
# need not compile the shape, which takes longer than its whole start.
SECRET_NAMES = ("key", "token", "secret", "password")
SHAPES = (
    (("codexpro_token",), rf"\b(codexpro_token{BLANK}*={BLANK}*){value(8, 8)}", FLAGS, keep_prefix),
    (("codexpro_token",), rf"([\"']?codexpro_token[\"']?{BLANK}*:{BLANK}*){value(8, 8)}", FLAGS, keep_prefix),
    (("ngrok", "cloudflared", "--"), rf"{OPTIONS}(?:=|{BLANK}+))[A-Za-z0-9._~+/=-]{{8,}}", FLAGS, keep_prefix_of_secrets),
    (SECRET_NAMES, rf"\b{NAME}{BLANK}*={BLANK}*{value(12, 20)}", FLAGS, assignment),
    (SECRET_NAMES, rf"([\"']?{NAME}[\"']?{BLANK}*:{BLANK}*){value(12, 20)}", FLAGS, keep_prefix_of_secrets),
    (("authorization",), rf"\b(Authorization{BLANK}*:{BLANK}*Bearer{BLANK}+)[A-Za-z0-9._~+/=-]{{12,}}", FLAGS, keep_prefix),
    (("token=", "key="), rf"([?&](?:codexpro_token|token|access_token|auth_token|api[_-]?key)=)(?:(?!{BLANK})[^&\"'`<>]){{8,}}", FLAGS, keep_prefix),
    (("sk-",), r"\bsk-[A-Za-z0-9_-]{10,}\b", re.ASCII, whole),
    (("sk-ant-", "gho_", "ghp_", "ghs_", "ghr_", "ghu_", "github_pat_", "npm_"),
     r"\b(?:sk-ant-[A-Za-z0-9_-]{10,}|gh[opsru]_[A-Za-z0-9_]{20,}|github_pat_[A-Za-z0-9_]{20,}|npm_[A-Za-z0-9_-]{20,})\b", re.ASCII, whole),
)
compiled = functools.cache(re.compile)


def mask(text):
    small = text.lower()  # what a replacement brings, no shape fits: a bracket follows its SECRET
    for words, pattern, flags, replacement in SHAPES:
        if any(word in small for word in words):
            text = compiled(pattern, flags).sub(replacement, text)
    return text


def mask_all(value_, depth=0):
    """Every string in a JSON value, to a depth of eight."""
    if depth > 8:
        return value_
    if isinstance(value_, str):
        return mask(value_)
    if isinstance(value_, list):
        return [mask_all(item, depth + 1) for item in value_]
    if isinstance(value_, dict):
        return {key: mask_all(item, depth + 1) for key, item in value_.items()}
    return value_


def mask_result(result):
    """A tool's result: its text items and its structured content."""
    for item in result.get("content", []):
        if isinstance(item.get("text"), str):
            item["text"] = mask(item["text"])
    if "structuredContent" in result:
        result["structuredContent"] = mask_all(result["structuredContent"])
    return result
