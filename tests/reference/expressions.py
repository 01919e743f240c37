"""The templates of make_expressions.py by group, and the variables that they may read."""
from expressions_edges import EDGES
from expressions_flow import FLOW
from expressions_lists import LISTS
from expressions_values import VALUES

MESSAGES = [{"role": "system", "content": " Be brief. "},
            {"role": "user", "content": "Hello, w\u00f6rld"},
            {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHi!", "tool_calls": [
                {"type": "function", "function": {"name": "click", "arguments": {"x": 1, "y": 0.5, "why": None}}}]},
            {"role": "tool", "content": [{"type": "text", "text": "done"}, {"type": "image"}]},
            {"role": "user", "content": ""}]
CONTEXT = {
    "messages": MESSAGES, "t": True, "f": False, "none_value": None, "s": "Hello World", "empty": "", "zero": 0, "seven": 7,
    "half": 0.5,
    "pad": " \t\u00a0x y\u2003\r\n", "words": "a,b,,c", "lines": "one\ntwo\r\nthree\x0bfour\x85five\u2028six\n",
    "cjk": "\u6771\u4eac \U0001f642e\u0301",
    "ascii": ["a", "b", "c"], "numbers": [3, 1, 2, 10, -4], "mixed": [1, "1", 1.0, True, None, [], {}], "no_items": [],
    "no_keys": {},
    "d": {"b": 2, "a": 1, "C": [1, {"k": None}], "items": "shadow", "two words": "x"}, "nested": [1, [2, [3, []]], 4],
    "people": [{"name": "Ann", "age": 30, "in": {"city": "Rome"}}, {"name": "bob", "age": 25, "in": {"city": "Oslo"}},
               {"name": "Cyd", "age": 30, "in": {}}, {"name": "Dee", "age": None}],
    "quotes": "it's \"q\" \\ & <b>", "controls": "\x01\x08\t\n\x0b\x0c\r\x1f\x7f\x80\xa0\xad\u200b\u2028\u2029\ufeff\ue000\U000e0001",
    "floats": [0.0, -0.0, 1.0, 0.1, 1e-4, 1e-5, 1.5e-7, 123456789.125, 1e15, 1e16, 1.5e16, 1e22, 1e100, 1e300, 5e-324,
    0.30000000000000004, -2.5],
    "ints": [0, -1, 9007199254740993, 9223372036854775807, -9223372036854775808], "html": "<a href=\"x\">'&amp;</a>",
    "tool": {"name": "f", "description": "D\u00e9j\u00e0 <v>", "parameters": {"type": "object", "properties": {},
    "required": []}, "strict": True},
    "deep": {"a": {"b": {"c": [10, 20, {"d": "leaf"}]}}}, "caf\u00e9": "unicode name", "tree": [{"n": "1", "c": [{"n": "2",
    "c": [{"n": "3"}]}, {"n": "4"}]}, {"n": "5"}],
}

GROUPS = {**FLOW, **LISTS, **VALUES, **EDGES}
