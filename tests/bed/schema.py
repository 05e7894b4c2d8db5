# SPDX-License-Identifier: Apache-2.0
"""As much of JSON Schema (draft 2020-12) as the schemas of qscope use, for where python3-jsonschema is not; beside it,
tests/schemas.py compares the two. A keyword that it does not know is an error, never ignored."""

import json
import re

DIRECTORY = "/usr/share/qscope/schemas"
SILENT = {"$schema", "$id", "$defs", "title", "description", "then", "else"}
TYPES = {
    "null": lambda x: x is None,
    "boolean": lambda x: isinstance(x, bool),
    "integer": lambda x: is_number(x) and x == int(x),
    "number": lambda x: is_number(x),
    "string": lambda x: isinstance(x, str),
    "array": lambda x: isinstance(x, list),
    "object": lambda x: isinstance(x, dict),
}


def is_number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def length(kind):
    """Of a value of that kind, or None."""
    return lambda x: len(x) if isinstance(x, kind) else None


SIZES = {
    "minLength": (length(str), lambda n, limit: n >= limit),
    "maxLength": (length(str), lambda n, limit: n <= limit),
    "minItems": (length(list), lambda n, limit: n >= limit),
    "maxItems": (length(list), lambda n, limit: n <= limit),
    "minProperties": (length(dict), lambda n, limit: n >= limit),
    "maxProperties": (length(dict), lambda n, limit: n <= limit),
    "minimum": (lambda x: x if is_number(x) else None, lambda n, limit: n >= limit),
    "maximum": (lambda x: x if is_number(x) else None, lambda n, limit: n <= limit),
    "exclusiveMinimum": (lambda x: x if is_number(x) else None, lambda n, limit: n > limit),
}


class Schemas:
    def __init__(self, directory=DIRECTORY):
        self.documents = {}
        for kind in ("job", "policy", "receipt"):
            with open(f"{directory}/qscope.{kind}.v1.json", encoding="utf-8") as file:
                self.documents[f"qscope.{kind}.v1.json"] = json.load(file)

    def fault(self, kind, value):
        """The first thing that is wrong with a document, as a sentence; None."""
        name = f"qscope.{kind}.v1.json"
        return self.check(self.documents[name], value, name, kind)

    def check(self, schema, value, document, place):
        if schema is True:
            return None
        if schema is False:
            return f"{place}: is not known"
        for keyword, wanted in schema.items():
            if keyword in SILENT:
                continue
            if keyword in SIZES:
                measure, holds = SIZES[keyword]
                measured = measure(value)
                fault = measured is not None and not holds(measured, wanted) and f"{keyword} {wanted}"
            else:
                fault = getattr(self, "check_" + keyword.strip("$"))(wanted, value, document, place, schema)
            if fault:
                return fault if ": " in fault else f"{place}: {fault}"
        return None

    def check_ref(self, wanted, value, document, place, _schema):
        name, _, pointer = wanted.partition("#/")
        document = name or document
        schema = self.documents[document]
        for part in pointer.split("/"):
            schema = schema[part]
        return self.check(schema, value, document, place)

    def check_type(self, wanted, value, _document, _place, _schema):
        wanted = wanted if isinstance(wanted, list) else [wanted]
        return None if any(TYPES[name](value) for name in wanted) else f"is no {' or '.join(wanted)}"

    def check_enum(self, wanted, value, *_):
        return None if any(self.same(item, value) for item in wanted) else f"is none of {wanted}"

    def check_const(self, wanted, value, *_):
        return None if self.same(wanted, value) else f"is not {wanted!r}"

    @staticmethod
    def same(a, b):
        return a == b and isinstance(a, bool) == isinstance(b, bool)

    def check_pattern(self, wanted, value, *_):
        return "has another pattern" if isinstance(value, str) and not re.search(wanted, value) else None

    def check_required(self, wanted, value, *_):
        missing = [key for key in wanted if isinstance(value, dict) and key not in value]
        return f"lacks {missing[0]}" if missing else None

    def check_properties(self, wanted, value, document, place, _schema):
        for key, schema in wanted.items() if isinstance(value, dict) else ():
            fault = key in value and self.check(schema, value[key], document, f"{place}.{key}")
            if fault:
                return fault
        return None

    def check_patternProperties(self, wanted, value, document, place, _schema):  # pylint: disable=invalid-name
        for key in value if isinstance(value, dict) else ():
            for pattern, schema in wanted.items():
                fault = re.search(pattern, key) and self.check(schema, value[key], document, f"{place}.{key}")
                if fault:
                    return fault
        return None

    def check_additionalProperties(self, wanted, value, document, place, schema):  # pylint: disable=invalid-name
        for key in value if isinstance(value, dict) else ():
            if key in schema.get("properties", ()) or any(re.search(p, key) for p in schema.get("patternProperties", ())):
                continue
            fault = self.check(wanted, value[key], document, f"{place}.{key}")
            if fault:
                return fault
        return None

    def check_propertyNames(self, wanted, value, document, place, _schema):  # pylint: disable=invalid-name
        faults = (self.check(wanted, key, document, f"{place}.{key}") for key in (value if isinstance(value, dict) else ()))
        return next(filter(None, faults), None)

    def check_items(self, wanted, value, document, place, _schema):
        items = enumerate(value) if isinstance(value, list) else ()
        return next(filter(None, (self.check(wanted, item, document, f"{place}[{i}]") for i, item in items)), None)

    def check_allOf(self, wanted, value, document, place, _schema):  # pylint: disable=invalid-name
        return next(filter(None, (self.check(schema, value, document, place) for schema in wanted)), None)

    def check_oneOf(self, wanted, value, document, place, _schema):  # pylint: disable=invalid-name
        fitting = sum(self.check(schema, value, document, place) is None for schema in wanted)
        return None if fitting == 1 else f"fits {fitting} of the forms that it may have"

    def check_not(self, wanted, value, document, place, _schema):
        return None if self.check(wanted, value, document, place) else "is what it must not be"

    def check_if(self, wanted, value, document, place, schema):
        branch = "else" if self.check(wanted, value, document, place) else "then"
        return self.check(schema.get(branch, True), value, document, place)
