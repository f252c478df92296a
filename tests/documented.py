"""What commands print as JSON in this process, by output and path; an undocumented key fails the test at once."""

import re

from itembank.cli import render, session_run
from itembank.output_keys import outputs, source

seen = set()
"""Output, path and documented key of all that was printed so far."""
_versioned = render.versioned


def install(patch):
    """Look at everything that commands print."""
    for module in (render, session_run):
        patch.setattr(module, "versioned", _checked)


def _checked(content, schema):
    found = _versioned(content, schema)
    assert next(iter(found)) == "schema_version"
    _look(found, schema, "")
    return found


def _look(value, schema, path):
    for one in value if isinstance(value, list) else [value] if isinstance(value, dict) else []:
        if not isinstance(one, dict):
            continue
        known = outputs()[schema].keys[path]
        for key, inner in one.items():
            name = _documented(key, known)
            assert name is not None, f"describe {key!r} of {path!r} of {schema!r} in output_keys.json of its package"
            seen.add((schema, path, name))
            if source()["keys"][known[name]][0] in {"rows", "object"}:
                _look(inner, schema, f"{path}.{key}".strip("."))


def _documented(key, known):
    patterns = sorted((one for one in known if "{}" in one), key=len, reverse=True)
    fitting = (one for one in patterns if re.fullmatch(".+".join(map(re.escape, one.split("{}"))), key))
    return key if key in known else next(fitting, None)
