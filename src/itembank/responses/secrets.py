"""Secrets among the arguments of models: tokens, keys, passwords and home folders, which no table should keep."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

HIDDEN: Final = "***"
"""Stands in place of a secret."""
HOME: Final = "~"
"""Stands in place of a home folder, whose name is a user's."""

_ALWAYS = {
    *("password", "passwd", "passphrase", "secret", "secrets", "credential", "credentials", "authorization"),
    *("apikey", "bearer", "cookie"),
}
_LAST = {"token", "key", "keys", "auth", "pwd", "pw"}
_OF_TOKENIZERS = {*("bos", "eos", "pad", "unk", "sep", "cls", "mask", "stop", "end", "start", "image", "prefix")}
"""What comes before `token` in the name of a piece of text that models read."""
_PLAIN = {"", "true", "false", "none", "null", HIDDEN}
"""Values that are no secret whatever they are called: `token=True` says that the machine's own is used."""

_NAME = re.compile(r"""(?<![\w.-])(?P<name>[A-Za-z_][\w.-]*)[\\"']*\s*[=:]\s*""")
_VALUE = re.compile(r"""\*\*\*|\\*"(?:[^"\\]|\\[^"])*\\*"|'(?:[^'\\]|\\.)*'|[^,&\n]*""")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_BY_SHAPE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|sk-[\w-]{16,}|gsk_\w{16,}|nvapi-[\w-]{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}"
    r"|glpat-[\w-]{16,}|xox[a-z]-[\w-]{8,}|AKIA[0-9A-Z]{12,}|AIza[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]+)"
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{4,}", re.IGNORECASE)
_USER_OF_ADDRESS = re.compile(r"(?<=://)[^/\s@\"']+@")
_FOLDER = r"""[^\\/\s,;:"'&}\])]+"""
_HOMES = re.compile(
    # /home/alice, C:\Users\alice, and below a mounted disk: /mnt/home/alice
    rf"(?:(?<![\w.~-])(?:/|[A-Za-z]:[\\/]+)|(?<![^=,\"'\s(\[{{])(?:/[\w.-]+){{1,3}}/)(?:home|users)[\\/]+{_FOLDER}"
    r"|(?<![\w.~/-])/root(?![\w.-])",
    re.IGNORECASE,
)


def without_secrets(arguments: Any) -> str:
    """Return arguments as text ``key=value,...`` without secrets and home folders.

    Hidden are the values of arguments that are called token, key, password or the like, `Authorization`, the user's
    part of an address, and what has the shape of a provider's token. A home folder becomes `~`.
    """
    return without_homes(arguments_text(arguments))


def arguments_text(arguments: Any) -> str:
    """Return arguments as text without secrets; home folders stay, which may tell two models apart."""
    if isinstance(arguments, Mapping):
        arguments = ",".join(f"{key}={value}" for key, value in _hidden(arguments).items())
    text = str(arguments)
    parts, done = [], 0
    for found in _NAME.finditer(text):
        if found.start() < done or not is_secret(found["name"]):
            continue
        value = _VALUE.match(text, found.end())
        end = found.end() if value is None else value.end()
        if text[found.end() : end].strip("\"' ").lower() not in _PLAIN:
            parts += [text[done : found.end()], HIDDEN]
            done = end
    text = "".join([*parts, text[done:]])
    text = _BEARER.sub(rf"\1 {HIDDEN}", _BY_SHAPE.sub(HIDDEN, text))
    return _USER_OF_ADDRESS.sub(f"{HIDDEN}@", text)


def without_homes(text: str) -> str:
    """Replace home folders by `~`."""
    return _HOMES.sub(HOME, text)


def _hidden(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if is_secret(str(key)) and str(one).lower() not in _PLAIN else _hidden(one)
            for key, one in value.items()
        }
    return [_hidden(one) for one in value] if isinstance(value, list | tuple) else value


def is_secret(name: str) -> bool:
    """Whether an argument of this name holds a secret: its words say so."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return False
    is_of_tokenizer = words[-1] == "token" and len(words) > 1 and words[-2] in _OF_TOKENIZERS
    is_key = not {("api", "key"), ("access", "key")}.isdisjoint(pairwise(words))
    return is_key or not _ALWAYS.isdisjoint(words) or (words[-1] in _LAST and not is_of_tokenizer)
