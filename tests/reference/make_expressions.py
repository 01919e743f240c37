r"""Writes small Jinja templates, and their rendering by the environment of transformers' apply_chat_template.

    python make_expressions.py [--out ../golden/templates/expressions.json]

Each case has a group, a template, the variables that it reads and either "rendered" or "error" (the class and message of the
exception; a test compares the message for raise_exception only).  "now" is the time that strftime_now reads.

The environment: jinja2's ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks, loop controls, the generation tag, no
autoescape, keep_trailing_newline off (one newline at the end of the source is dropped), "\r\n" and "\r" of the source read as
"\n"; raise_exception, strftime_now; namespace refuses names that begin with "_"; dict() makes a dict.  Messages lose keys whose
value is None before the template sees them; reasoning_content takes the value of "thinking" or "reasoning" where it is
missing, and a message that has one of the three gets "thinking" as its first key.
tools and documents are None where none were given: they are defined.

tojson is transformers' own: json.dumps(x, ensure_ascii=False, indent, separators, sort_keys=False).  Unlike Jinja2's it
  - escapes no <, >, & or ', and is not marked as safe (which shows in "|escape" alone);
  - keeps the order of keys, where Jinja2 sorts them; sort_keys=true sorts by code points;
  - writes U+007F and characters beyond ASCII as they are, U+2028, U+2029 and U+FEFF too.  Escaped are \" \\ \n \r \t \b \f, and
    other characters below U+0020 as \u00xx with small hex digits.  "/" is not escaped;
  - separates with ", " and ": "; with indent (a number of spaces, or a string) items stand on lines of their own, the comma
    ends its line without a space, and an empty list or dict stays [] or {}.  indent=0 breaks lines and indents nothing;
  - takes its arguments in the order ensure_ascii, indent, separators, sort_keys: tojson(true) escapes everything but U+0020
    to U+007E, characters beyond U+FFFF as two \ud8xx\udcxx;
  - writes keys as strings: true, false, null, 1, 0.5.  Other keys, undefined, functions and namespaces are errors.
  A lone surrogate goes through unchanged.  The text then cannot be encoded as UTF-8, so that the tokenizer refuses it.  Only a
  literal "\ud800" of a template can make one, as JSON readers of servers refuse it.  The cases have none.

Numbers: a float is spelled with the fewest digits that read back as the same double; from 1e16 on and below 1e-4 with an
exponent of at least two digits and a sign (1e+16, 1e-07, 1.5e-05), else with a point (1.0, 0.1, 1000000000000000.0, -0.0).
tojson writes NaN, Infinity and -Infinity, "|string" nan, inf and -inf.  Integers have any number of digits: 2 ** 70 is exact.

A print statement, "|string", "~" and join use Python's str(): True, False, None, floats as above, lists [1, 'a', None], tuples
(1, 2) and (1,), dicts {'a': 1, 'b': [True]}.  Within these a string is its repr: single quotes, or double quotes when it has a
single and no double one; \\ \n \r \t, other characters that are not printable as \xhh, \uhhhh, \Uhhhhhhhh (U+00A0, U+2028, and
U+200B among them; the space is printable), the chosen quote as \'.

Made with transformers 5.24.0 and Jinja2 3.1.6 under Python 3.11.
"""
import argparse
import datetime
import json
import os
from importlib import metadata

from jinja2 import meta
from jinja2.sandbox import ImmutableSandboxedEnvironment
from transformers.utils import chat_template_utils

from expressions import CONTEXT, GROUPS

HERE = os.path.dirname(os.path.abspath(__file__))
NOW = datetime.datetime(2026, 2, 3, 14, 5, 9)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def variables(template):
    """Returns the variables of CONTEXT that a template reads; none if it does not parse."""
    parser = ImmutableSandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"])
    source = template.replace("generation %}", "filter trim %}").replace("endfilter trim", "endfilter")
    try:
        names = meta.find_undeclared_variables(parser.parse(source))
    except Exception:
        return {}
    return {k: v for k, v in CONTEXT.items() if k in names}


def render(template, context):
    try:
        text = chat_template_utils._compile_jinja_template(template).render(**context)
        text.encode()
        return {"rendered": text}
    except Exception as e:  # any exception of Python counts as a refusal
        return {"error": f"{type(e).__name__}: {e}"}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--out", default=os.path.join(HERE, "..", "golden", "templates", "expressions.json"))
    args = args.parse_args()
    chat_template_utils.datetime = Clock
    cases = []
    for group, templates in GROUPS.items():
        for t in templates:
            context = variables(t)
            cases.append({"group": group, "template": t, "context": context, **render(t, context)})
    root = {"generator": "make_expressions.py", "now": NOW.isoformat(), **{p: metadata.version(p) for p in ["jinja2", "transformers"]}}
    with open(args.out, "w", encoding="utf-8") as f:
        f.write("{\n" + "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in root.items()) + ' "cases": [\n' +
                ",\n".join("  " + json.dumps(c, ensure_ascii=True) for c in cases) + "\n ]\n}\n")
    print(len(cases), "templates,", sum("error" in c for c in cases), "refused,", len({c["template"] for c in cases}), "different")


if __name__ == "__main__":
    main()
