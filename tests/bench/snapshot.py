# SPDX-License-Identifier: Apache-2.0
"""A rival: what changed in a tree, by the SHA-256 of every file before and after.

Usage: snapshot.py take TREE FILE; snapshot.py compare BEFORE AFTER CHANGES, which fails when there are not as many."""

import hashlib
import json
import os
import sys


def digest(path):
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(65536):
            found.update(part)
    return found.hexdigest()


def take(tree, out):
    found = {}
    for directory, _, names in os.walk(tree):
        for name in names:
            path = os.path.join(directory, name)
            found[os.path.relpath(path, tree)] = [os.stat(path).st_size, digest(path)]
    with open(out, "w", encoding="utf-8") as file:
        json.dump(found, file)


def compare(before, after, wanted):
    with open(before, encoding="utf-8") as first, open(after, encoding="utf-8") as second:
        old, new = json.load(first), json.load(second)
    changed = [path for path in old.keys() | new.keys() if old.get(path) != new.get(path)]
    if len(changed) != int(wanted):
        sys.exit(f"{len(changed)} changes")


if __name__ == "__main__":
    {"take": take, "compare": compare}[sys.argv[1]](*sys.argv[2:])
