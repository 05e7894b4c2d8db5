#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas against real files: what qscope takes they take, and what it refuses they refuse. The small check
that the beds' tests use must be of one mind with python3-jsonschema about each of them."""

import copy
import glob
import json
import os
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)

SOURCE = os.environ.get("QSCOPE_SOURCE", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

sys.path.insert(0, f"{SOURCE}/tests/bed")
sys.dont_write_bytecode = True

import schema as small  # noqa: E402

# What only the reader tells: it takes several keys together, or knows more than a pattern can say.
READER_ONLY = {
    "job": """files-absolute-no-cwd files-absolute-outside files-absolute-self files-below-file files-twice
        expect-matches expect-egress-prefix deep duplicate-escaped huge-integer huge-number""",
    "policy": "default-network default-posture no-name name-path properties-owned properties-limit properties-exec"
    " properties-unknown properties-value properties-type properties-null default-exit",
    "receipt": "",
}


def load_schemas():
    directory = f"{SOURCE}/src/schemas"
    schemas = {}
    for kind in ("job", "policy", "receipt"):
        with open(f"{directory}/qscope.{kind}.v1.json", encoding="utf-8") as file:
            schemas[kind] = json.load(file)
    return schemas


def validators(schemas):
    store = {schema["$id"]: schema for schema in schemas.values()}
    made = {}
    for kind, schema in schemas.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        resolver = jsonschema.RefResolver(schema["$id"], schema, store=store)
        made[kind] = jsonschema.Draft202012Validator(schema, resolver=resolver)
    return made


def without_comments(text):
    """JSON with // comments: out of strings they go, up to the end of the line."""
    out, in_string, i = [], False, 0
    while i < len(text):
        if not in_string and text.startswith("//", i):
            i = text.find("\n", i)
            if i < 0:
                break
        if in_string and text[i] == "\\":
            out.append(text[i])
            i += 1
        elif text[i] == '"':
            in_string = not in_string
        out.append(text[i])
        i += 1
    return "".join(out)


def unique(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a key is given twice")
    return dict(pairs)


def load(path, comments=False):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    document = json.loads(without_comments(text) if comments else text, object_pairs_hook=unique)
    json.dumps(document, ensure_ascii=False).encode()  # lone surrogates are no text
    if "\\u0000" in json.dumps(document):
        raise ValueError("NUL")
    return document


class Check:
    def __init__(self):
        self.validators = validators(load_schemas())
        self.small = small.Schemas(f"{SOURCE}/src/schemas")
        self.count = self.failed = 0

    def fault(self, kind, document):
        """The first thing that is wrong, or None."""
        error = next(self.validators[kind].iter_errors(document), None)
        other = self.small.fault(kind, document)
        if (error is None) != (other is None):
            self.say(f"{kind}: the two checks differ: {error}, {other}")
        return error and f"{'.'.join(map(str, error.absolute_path)) or kind}: {error.message[:200]}"

    def say(self, sentence):
        self.count += 1
        if sentence:
            self.failed += 1
            print(sentence)

    def good(self, kind, path):
        fault = self.fault(kind, load(path, comments=kind == "policy"))
        self.say(fault and f"{path}: {fault}")

    def bad(self, kind, path):
        name = os.path.basename(path).removesuffix(".json")
        try:
            refused = self.fault(kind, load(path, comments=kind == "policy"))
        except (ValueError, RecursionError):
            refused = "not JSON"
        if name in READER_ONLY[kind].split():
            return
        self.say(None if refused else f"{path}: the schema takes it, and qscope does not")

    def variants(self, kind, path):
        """A good file with one thing wrong, for every key of it."""
        document = load(path, comments=kind == "policy")
        for key in document:
            if key.startswith("x_"):
                continue
            for wrong in (0.5, ["\x1b[31m", 7], {"<b>": 1}):
                self.variant(kind, f"{path}: {key} = {wrong}", {**document, key: wrong})
        self.variant(kind, f"{path}: a key that is not known", {**document, "zzz": 1})
        self.variant(kind, f"{path}: a list", [document])
        for key in self.validators[kind].schema.get("required", []):
            less = copy.copy(document)
            less.pop(key)
            self.variant(kind, f"{path}: without {key}", less)

    def variant(self, kind, name, document):
        # A number may be a time, and "meta" takes any object.
        if not name.endswith(("timeout_sec = 0.5", "meta = {'<b>': 1}")):
            self.say(None if self.fault(kind, document) else f"{name}: the schema takes it")


def files(*patterns):
    found = sorted(path for pattern in patterns for path in glob.glob(f"{SOURCE}/{pattern}"))
    if not found:
        sys.exit(f"no file is called {patterns}")
    return found


def check_tree(check):
    for path in files("examples/*.json", "tests/corpus/job/good/*.json", "tests/golden/plan/*.job.json"):
        check.good("job", path)
    for path in files("policies/*.json", "tests/corpus/policy/good/*.json", "tests/golden/plan/*.policy.json"):
        check.good("policy", path)
    for path in files("tests/golden/receipt/*.json"):
        check.good("receipt", path)
    for kind in check.validators:
        for path in files(f"tests/corpus/{kind}/bad/*.json"):
            check.bad(kind, path)
    check.variants("job", f"{SOURCE}/tests/corpus/job/good/everything.json")
    check.variants("policy", f"{SOURCE}/tests/corpus/policy/good/everything.json")
    check.variants("receipt", f"{SOURCE}/tests/golden/receipt/many-causes.json")
    check.variants("receipt", f"{SOURCE}/tests/golden/receipt/files.json")


def main():
    check = Check()
    check_tree(check)
    print(f"{check.count - check.failed} passed, {check.failed} failed")
    return check.failed > 0 or check.count == 0


if __name__ == "__main__":
    sys.exit(main())
