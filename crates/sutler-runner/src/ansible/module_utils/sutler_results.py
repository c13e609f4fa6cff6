"""Writes results of a run: files in $SUTLER_RESULT_DIR.

Used by the modules in library/; playbooks do not use it. Works with Python 2.7 and 3.
"""

import json
import os
import tempfile

MISPLACED = (
    "SUTLER_RESULT_DIR is not set, so there is nowhere to put results. "
    "Run this playbook as a bundle: sutler bundle run ACTION FOLDER."
)


def folder():
    """The result directory of this run."""
    path = os.environ.get("SUTLER_RESULT_DIR")
    if not path:
        raise RuntimeError(MISPLACED)
    return path


def put(name, text):
    """Writes a file atomically."""
    where = folder()
    handle, aside = tempfile.mkstemp(prefix=".new-", dir=where)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(text.encode("utf-8"))
        os.rename(aside, os.path.join(where, name))
    except Exception:
        os.unlink(aside)
        raise


def append(name, text):
    """Adds a line to a file."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    handle = os.open(os.path.join(folder(), name), flags, 0o600)
    with os.fdopen(handle, "ab") as out:
        out.write((text + "\n").encode("utf-8"))


def merge(name, fields):
    """Adds keys to the object in a file. Returns whether anything changed."""
    path = os.path.join(folder(), name)
    there = {}
    if os.path.exists(path):
        with open(path) as kept:
            there = json.load(kept)
    merged = dict(there)
    merged.update(fields)
    if merged == there and os.path.exists(path):
        return False
    put(name, json.dumps(merged, sort_keys=True))
    return True


def attempt(module, work):
    """Ends the module with the result of the work, or with a sentence about its failure."""
    try:
        changed = work()
    except (EnvironmentError, RuntimeError, ValueError) as fault:
        module.fail_json(msg=str(fault))
    else:
        module.exit_json(changed=changed)
