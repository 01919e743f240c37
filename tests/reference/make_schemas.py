"""JSON schemas as pydantic and zod generate them, with texts that fit them and texts that do not.

    python make_schemas.py             into ../golden/schemas
    python make_schemas.py --check F   F: texts that t_serve_schema wrote (HOLORUN_SCHEMA_TEXTS=F); each must fit
                                       its schema by jsonschema, less the keywords that the case says are ignored

Texts are spelled as json.dumps spells them.  "ignored" has the keywords that are noted and not enforced.
"""
import datetime
import enum
import ipaddress
import json
import os
import sys
import uuid
from typing import Annotated, Any, Dict, List, Literal, Optional, Set, Tuple, Union

import pydantic
from pydantic import BaseModel, Field

HERE = os.path.dirname(os.path.abspath(__file__))


class Colour(enum.Enum):
    red = "red"
    green = "green"


class Point(BaseModel):
    """A place on the screen."""
    x: int = Field(ge=0, le=1000, description="from the left")
    y: int = Field(ge=0, le=1000)


class Numbers(BaseModel):
    model_config = {"extra": "forbid"}
    share: float = Field(ge=0, le=1)
    above: float = Field(gt=0)
    below: float = Field(lt=-0.5, ge=-2.25)
    half: float = Field(ge=0.5, le=2.75)
    price: float = Field(multiple_of=0.01, ge=0, le=10)
    count: pydantic.PositiveInt
    level: int = Field(gt=3, lt=6)


class Kinds(BaseModel):
    colour: Colour
    word: Literal["a", "b"]
    only: Literal[3]
    maybe: Optional[int] = None
    either: Union[int, str]
    point: Point
    other: Optional[Point] = None
    when: datetime.datetime
    day: datetime.date
    key: uuid.UUID
    address: ipaddress.IPv4Address
    flag: bool = True


class Lists(BaseModel):
    names: List[str] = Field(min_length=1, max_length=3)
    pair: Tuple[int, str]
    many: Tuple[float, ...]
    some: Set[Literal["a", "b"]]
    counts: Dict[str, int]
    anything: Any
    free: Dict[str, Any]
    label: str = Field(min_length=2, max_length=4)


class Text(BaseModel):
    code: str = Field(pattern="^[a-z]+$")
    note: str = Field(max_length=2000)
    amount: float


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: List[str] = []


class Pet(BaseModel):
    pet: Annotated[Union[Cat, Dog], Field(discriminator="kind")]


class Tree(BaseModel):
    value: int
    children: List["Tree"] = []


class Chain(BaseModel):
    value: int
    next: Optional["Chain"] = None


def strict(schema):
    """As the openai package makes it for strict formats: every property required, no others."""
    from openai.lib._pydantic import to_strict_json_schema
    return to_strict_json_schema(schema)


P = {"x": 3, "y": 4}
KINDS = {"colour": "red", "word": "a", "only": 3, "either": "x", "point": P, "when": "2024-02-03T04:05:06Z", "day": "2024-12-31",
         "key": "123e4567-e89b-42d3-a456-426614174000", "address": "127.0.0.1"}
NUMBERS = {"share": 0.5, "above": 0.1, "below": -0.75, "half": 0.5, "price": 9.99, "count": 1, "level": 4}
LISTS = {"names": ["a"], "pair": [1, "b"], "many": [1.5], "some": ["a"], "counts": {"a": 1}, "anything": [1, "a", None], "free": {}, "label": "abc"}
SAFE = 9007199254740991
PATTERNS = [ # with texts that match and texts that do not
    ("^[a-z]+$", ["a", "zz"], ["", "A", "a1"]), ("abc", ["abc", "xabcx"], ["ab"]), ("^a|b$", ["ax", "xb"], ["xa", "bx"]),
    ("^(?:foo|ba[rz])(-\\d{2,3})?$", ["foo", "bar", "baz-12", "baz-123"], ["bat", "baz-1", "baz-1234"]), ("^\\d{3}-\\d{4}$", ["123-4567"], ["123-456"]),
    ("^\\w+@\\w+\\.com$", ["a@b.com"], ["a@bxcom"]), ("^[^,]$", ["é", "a"], [","]), ("^[^,\\s]+$", ["ab;"], ["a,b", "a b", ""]), ("^.*$", ["", "a b"], []), ("^.{2,4}?$", ["ab", "abcd"], ["a", "abcde"]),
    ("^#?[0-9a-fA-F]{6}$", ["#aabbcc", "AABBCC"], ["#abc"]), ("^[\\w.+-]+$", ["a.b+c-d"], ["a b"]), ("^\\S+$", ["ab"], ["a b"]), ("^\\/tmp\\/[^\\/]*$", ["/tmp/", "/tmp/a"], ["/tmp/a/b"]),
    ('^"q"$', ['"q"'], ["q"]), ("^a\\\\b$", ["a\\b"], ["ab"]), ("^a\\nb$", ["a\nb"], ["ab"]), ("^\\x41\\u0042$", ["AB"], ["ab"]), 
    ("^(a(b(c)?)?)?$", ["", "a", "ab", "abc"], ["ac"]), ("^-?(0|[1-9]\\d*)(\\.\\d+)?$", ["0", "-12.5"], ["01", "1."]), ("^[-a]+$", ["-a"], ["b"]), ("^(yes|no)$", ["yes"], ["maybe"])]


def but(value, **changes):
    return {k: v for k, v in dict(value, **changes).items() if v is not ...}


def cases():
    yield "bounds", Point, [P, {"x": 0, "y": 1000}], [{"x": -1, "y": 0}, {"x": 0, "y": 1001}, {"x": 0}, {"x": 1.5, "y": 0}, {}], []
    yield "bounds, strict", strict(Point), [P], [{"x": 3}], []
    yield "numbers", Numbers, [NUMBERS, but(NUMBERS, share=1, below=-2.25, half=2.75, price=10, above=0.0001, level=5),
                               but(NUMBERS, share=0.0, below=-0.500001, half=1)], [
        but(NUMBERS, **c) for c in ({"share": 1.1}, {"share": -0.1}, {"above": 0}, {"above": 0.0}, {"below": -0.5}, {"below": -2.26}, {"below": 1},
                                    {"half": 0.4}, {"half": 2.8}, {"half": 0.49}, {"price": 1.001}, {"count": 0}, {"level": 3}, {"level": 6}, {"level": 4.5})], []
    yield "kinds", Kinds, [KINDS, {k: but(KINDS, maybe=None, either=3).get(k) for k in ("colour", "word", "only", "maybe", "either", "point", "when", "day", "key", "address")}], [], []
    yield "kinds, values", Kinds, [], [but(KINDS, **c) for c in (
        {"colour": "blue"}, {"word": "c"}, {"only": 4}, {"either": 1.5}, {"point": {}}, {"when": "2024-02-30T04:05:06Z"}, {"day": "2024-13-01"},
        {"day": "2023-02-30"}, {"key": "123"}, {"address": "256.0.0.1"}, {"colour": ...})], []
    yield "lists", Lists, [LISTS, but(LISTS, names=["a", "b", "c"], many=[], counts={}, free={"a": {"b": [1]}}, anything=None)], [
        but(LISTS, **c) for c in ({"names": []}, {"names": ["a"] * 4}, {"pair": [1]}, {"pair": [1, 2]}, {"pair": [1, "b", 3]}, {"many": ["a"]}, {"some": ["c"]},
                                  {"counts": {"a": "b"}}, {"free": []}, {"label": "a"}, {"label": "abcde"})], ["uniqueItems"]
    yield "not enforced", Text, [{"code": "a", "note": "b", "amount": 1.5}, {"code": "ab", "note": "x" * 300, "amount": 2}], [
        {"code": 1, "note": "b", "amount": 1}, {"code": "A", "note": "b", "amount": 1}], ["maxLength above 256"]
    for pattern, fits, wrong in PATTERNS:
        yield "pattern " + pattern, {"type": "string", "pattern": pattern}, fits, wrong, []
    yield "pattern and lengths", {"type": "string", "pattern": "^a+$", "minLength": 2, "maxLength": 3}, ["aa"], ["b"], ["minLength beside pattern or format", "maxLength beside pattern or format"]
    for pattern in ("^(?=a)b$", "(a)\\1", "\\bx", "^\\p{L}+$", "[a-\u00e9]", "a{1000}", "(", "a**", "[z-a]", "x{2"):
        yield "pattern " + pattern, {"type": "string", "pattern": pattern}, ["x"], [3], ["pattern"]
    yield "discriminated", Pet, [{"pet": {"kind": "cat", "lives": 3}}, {"pet": {"kind": "dog"}}], [
        {"pet": {"kind": "cow"}}, {"pet": {"kind": "cat"}}, {"pet": {"lives": 3}}], []
    yield "tree", Tree, [{"value": 1}, {"value": 1, "children": [{"value": 2, "children": []}, {"value": 3}]}], [
        {"value": "a"}, {"value": 1, "children": [{"value": "a"}]}], []
    yield "chain, strict", strict(Chain), [{"value": 1, "next": None}, {"value": 1, "next": {"value": 2, "next": None}}], [
        {"value": 1}, {"value": 1, "next": {"value": 2}}], []
    # as zod writes them
    yield "safe integers", {"type": "object", "properties": {"n": {"type": "integer", "minimum": -SAFE, "maximum": SAFE}, "u": {"type": "integer", "exclusiveMinimum": 0, "maximum": SAFE}},
                            "required": ["n", "u"], "additionalProperties": False}, [{"n": -5, "u": 1}], [{"n": 1.5, "u": 1}, {"n": 1, "u": 0}], []
    yield "float bounds", {"type": "object", "properties": {"x": {"type": "integer", "minimum": 0.0, "maximum": 1000.0}}, "required": ["x"]}, [{"x": 1000}], [{"x": 1001}, {"x": -1}], []
    yield "integer between fractions", {"type": "integer", "minimum": 0.5, "maximum": 2.5}, [1, 2], [0, 3, 1.5], []
    yield "old exclusive bounds", {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 3, "exclusiveMaximum": True}, [1, 2], [0, 3], []
    yield "record of an enum", {"type": "object", "propertyNames": {"type": "string", "enum": ["a", "b"]}, "additionalProperties": {"type": "number"}, "required": ["a", "b"]}, [
        {"a": 1, "b": 2.5}], [{"a": 1}, {"a": "x", "b": 1}], []
    yield "partial record", {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "boolean"}}, [{}, {"a": True}], [{"c": True}, {"a": 1}], []
    yield "tuple without bounds", {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}, [["a", 1]], [["a"], [1, "a"]], []
    yield "tuple with a rest", {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, [["a"], ["a", 1, 2]], [["a", "b"], []], []
    yield "tuple of an earlier draft", {"type": "array", "items": [{"type": "string"}, {"type": "null"}], "additionalItems": False}, [["a", None]], [["a"], ["a", 1]], []
    yield "nullable", {"type": "object", "properties": {"a": {"type": "string", "nullable": True}}, "required": ["a"]}, [{"a": None}, {"a": "x"}], [{}, {"a": 1}], []
    yield "lists of types", {"type": "object", "properties": {"a": {"type": ["string", "null"], "minLength": 2}, "b": {"type": ["integer", "string"], "minimum": 0, "maxLength": 2},
                                                               "c": {"type": ["array", "null"], "items": {"type": "integer"}}}, "required": ["a", "b", "c"]}, [
        {"a": None, "b": "xy", "c": [1]}, {"a": "ab", "b": 3, "c": None}], [{"a": "a", "b": 1, "c": []}, {"a": None, "b": -1, "c": []}, {"a": None, "b": "abc", "c": []}], []
    yield "intersection", {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"$ref": "#/$defs/b"}],
                           "$defs": {"b": {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b"]}}}, [{"a": 1, "b": True}], [{"a": 1}, {"b": True}], []
    yield "reference with neighbours", {"type": "object", "properties": {"a": {"$ref": "#/definitions/x~1y", "description": "d", "default": 1}}, "required": ["a"],
                                        "definitions": {"x/y": {"type": "integer"}}}, [{"a": 1}], [{"a": "x"}], []
    yield "reference to a property", {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"$ref": "#/properties/a"}}, "required": ["a", "b"]}, [{"a": True, "b": False}], [{"a": True, "b": 1}], []
    yield "reference to the whole", {"type": "object", "properties": {"n": {"type": "integer"}, "sub": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["n", "sub"]}, [
        {"n": 1, "sub": None}, {"n": 1, "sub": {"n": 2, "sub": None}}], [{"n": 1}], []
    yield "constants with titles", {"oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}, ["a", "b"], ["c"], []
    yield "constant of null and of a number", {"anyOf": [{"const": None}, {"const": 1.5}]}, [None, 1.5], [1, "a"], []
    yield "overlapping alternatives", {"oneOf": [{"type": "integer"}, {"type": "number"}]}, [1, 1.5], ["a"], ["oneOf (read as anyOf)"]
    yield "enum of kinds", {"enum": ["a", 1, None, True]}, ["a", 1, None, True], ["b", 2, False], []
    yield "enum with a type", {"type": "string", "enum": ["a", "b"]}, ["a"], ["c"], []
    yield "any array", {"type": "array"}, [[], [1, "a", {"b": None}]], [{}, 1], []
    yield "any object", {"type": "object"}, [{}, {"a": [1]}], [[], 1], []
    yield "no properties", {"type": "object", "properties": {}}, [{}], [{"a": 1}], []
    yield "no type", {"properties": {"a": {"minimum": 1, "maximum": 5}}, "required": ["a"]}, [{"a": 2.5}], [{"a": 6}, {}], []
    yield "true and false", {"type": "object", "properties": {"a": True, "b": False}, "required": ["a"]}, [{"a": [1]}, {"a": None}], [{}, {"a": 1, "b": 1}], []
    yield "required and not listed", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", "b"]}, [{"a": 1, "b": "x"}], [{"a": 1}], []
    yield "properties and alternatives", {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"a": 1}], [{"a": "x"}], ["anyOf beside properties"]
    yield "words of editors", {"type": "object", "title": "T", "$schema": "x", "$id": "y", "x-order": 1, "properties": {"a": {"type": "string", "deprecated": True, "examples": ["x"], "readOnly": True}}, "required": ["a"]}, [{"a": "x"}], [{}], []
    yield "unknown keywords", {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}, "contains": {"const": 1}}}, "required": ["a"], "minProperties": 1, "not": {"required": ["z"]}}, [{"a": [2]}], [{}], ["minProperties", "not", "contains"]
    yield "steps", {"type": "object", "properties": {"a": {"type": "number", "multipleOf": 1}, "b": {"type": "integer", "multipleOf": 5}}, "required": ["a", "b"]}, [{"a": 3, "b": 5}], [{"a": 3.5, "b": 5}], ["multipleOf"]
    yield "email and time", {"type": "object", "properties": {"a": {"type": "string", "format": "email"}, "b": {"type": "string", "format": "time"}, "c": {"type": "string", "format": "uri"}}, "required": ["a", "b", "c"]}, [
        {"a": "ann.b@example.org", "b": "23:59:59Z", "c": "x"}], [{"a": "ann", "b": "23:59:59Z", "c": "x"}, {"a": "a@b.org", "b": "24:00:00Z", "c": "x"}], ["format uri"]


def all_cases():
    for name, schema, fits, wrong, ignored in cases():
        model = isinstance(schema, type)
        yield {"name": name, "schema": schema.model_json_schema() if model else schema, "fits": [json.dumps(v, ensure_ascii=False) for v in fits],
               "wrong": [json.dumps(v) for v in wrong], "ignored": ", ".join("schema: " + i for i in ignored)}, schema if model else None


def check(path):
    import jsonschema
    models = {c["name"]: (c, m) for c, m in all_cases()}
    n = 0
    with open(path, encoding="utf-8") as f:
        for line in f:
            line = json.loads(line)
            c, model = models[line["name"]]
            value = json.loads(line["text"])
            loose = json.loads(json.dumps(c["schema"]))

            def strip(s):
                if isinstance(s, dict):
                    for k in [k for k in s if f"schema: {k}" in c["ignored"] or k == "multipleOf" or (k == "exclusiveMinimum" and isinstance(s[k], bool))]:
                        del s[k]
                    s.pop("nullable", None) and s.update(type=[s["type"], "null"])
                    for v in s.values():
                        strip(v)
                elif isinstance(s, list):
                    for v in s:
                        strip(v)
            strip(loose)
            if name_of_draft(c):
                continue
            jsonschema.Draft202012Validator(loose, format_checker=jsonschema.FormatChecker()).validate(value)
            if model and not c["ignored"]:
                model.model_validate_json(line["text"])
            n += 1
    print(n, "texts fit")


def name_of_draft(c):
    return c["name"] in ("old exclusive bounds", "tuple of an earlier draft")


def main():
    if sys.argv[1:2] == ["--check"]:
        return check(sys.argv[2])
    folder = os.path.join(HERE, "..", "golden", "schemas")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "schemas.json"), "w", encoding="utf-8") as f:
        f.write('{"made": "make_schemas.py, pydantic %s",\n "cases": [\n' % pydantic.__version__)
        f.write(",\n".join(json.dumps(c) for c, _ in all_cases()) + "\n]}\n")


if __name__ == "__main__":
    main()
