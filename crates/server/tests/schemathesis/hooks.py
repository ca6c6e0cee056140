"""What Schemathesis cannot know of the server."""

import json
import re

import schemathesis

SPAN = re.compile(r"\d+(ms|s|m|h)|\d+")


@schemathesis.hook
def before_call(context, case, kwargs):
    # Nobody waits: the time goes into more requests.
    if case.operation.path == "/jobs/{id}/wait" and isinstance(case.query, dict):
        case.query.setdefault("timeout", "5ms")
        shorten(case.query, "timeout")
    if case.operation.path == "/jobs" and isinstance(case.query, dict):
        shorten(case.query, "wait")
    if case.operation.path == "/work/lease" and isinstance(case.body, dict):
        shorten(case.body, "wait")
    case.body = whole(case.body)


def shorten(fields, name):
    """Only what is a span: what is wrong stays wrong."""
    given = fields.get(name)
    if isinstance(given, str) and SPAN.fullmatch(given):
        fields[name] = "5ms"
    elif isinstance(given, (int, float)) and not isinstance(given, bool) and given > 0:
        fields[name] = 0.005


def whole(value):
    """To JSON Schema 7.0 is an integer, to most readers of JSON it is none."""
    if isinstance(value, dict):
        return {key: whole(field) for key, field in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


@schemathesis.serializer("application/toml")
def toml(context, value):
    if isinstance(value, dict):
        value = "\n".join(f"{json.dumps(key)} = {inline(field)}" for key, field in value.items())
    return {"data": str(value).encode("utf-8", "replace"), "headers": {"Content-Type": "application/toml"}}


def inline(value):
    """TOML has no null; an empty text breaks the same rules."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {inline(field)}" for key, field in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps("" if value is None else value)
