"""Other ways to say what a page asks for: paraphrase.py [check FILE.jsonl | show PAGE SENTENCE].

Design.  The phrasings are data (phrases.txt): for each family of pages the pattern of its sentences, whose
groups are the slots, and templates in a small grammar of alternatives.  A slot is copied letter by letter.
Around a phrasing may stand what people say around any request (`WRAPS`).  A sentence that no pattern knows
stays as it is: such are those that people wrote for the mail pages.  Training uses these; evaluation uses
the pages' own sentences.

    say(page, sentence, rng)     one sentence, by chance; a share of them stays the page's own
    count(page, sentence)        how many there are, wraps and quotes not counted
"""

import collections
import json
import pathlib
import random
import re
import sys

PHRASES = pathlib.Path(__file__).with_name("phrases.txt")
OWN = 0.3  # share of sentences that are left as the page says them
QUOTES = ('"{}"', "'{}'", "{}", "{}")
WRAPS = (
    ("{0}", 12),
    ("{1}", 3),
    ("Please {2}.", 2),
    ("{0} Thank you.", 1),
    ("Can you {2}?", 1),
    ("Could you {2}, please?", 1),
    ("I want you to {2}.", 1),
    ("Now {2}.", 1),
    ("You should {2}.", 1),
    ("Your task: {2}.", 1),
    ("Next, {2}.", 1),
)

Family = collections.namedtuple("Family", "pages pattern templates")


def families(path=PHRASES):
    out, pages, pattern = [], None, None
    for line in re.sub(r"\n +", " ", path.read_text()).splitlines():
        if line.startswith("= "):
            pages = set(line[2:].split())
        elif line.startswith("? "):
            pattern = re.compile(line[2:])
            out.append(Family(pages, pattern, []))
        elif line and not line.startswith("#"):
            out[-1].templates.append(parse(line))
    return out


# ---- the grammar: a template is a list of strings and of tuples of templates ------------------------


def parse(text):
    def sequence(at):
        parts, options, now = [], [], ""
        while at < len(text) and text[at] != ")":
            c = text[at]
            if c == "\\":
                now, at = now + text[at + 1], at + 2
            elif c == "(":
                if now:
                    parts.append(now)
                now = ""
                group, at = sequence(at + 1)
                parts.append(tuple(group))
                at += 1
            elif c == "|":
                options.append(parts + ([now] if now else []))
                parts, now, at = [], "", at + 1
            else:
                now, at = now + c, at + 1
        options.append(parts + ([now] if now else []))
        return options, at

    options, end = sequence(0)
    if end != len(text) or len(options) != 1:
        raise ValueError(f"unbalanced: {text}")
    return options[0]


def size(template):
    n = 1
    for part in template:
        if isinstance(part, tuple):
            n *= sum(size(option) for option in part)
    return n


def draw(template, rng):
    return "".join(part if isinstance(part, str) else draw(rng.choice(part), rng) for part in template)


# ---- sentences ---------------------------------------------------------------------------------------------

FAMILIES = families()


def known(page, sentence):
    for family in FAMILIES:
        if page in family.pages:
            match = family.pattern.fullmatch(sentence)
            if match:
                return family, match.groupdict()
    return None, {}


def count(page, sentence):
    family, _ = known(page, sentence)
    return sum(size(t) for t in family.templates) if family else 0


def fill(text, slots, rng):
    def slot(match):
        value = slots[match[1] or match[2]]
        return value if match[1] else rng.choice(QUOTES).format(value)

    text = re.sub(r"\{(\w+)\}|<(\w+)>", slot, text)
    vowel = r"\ban\? (?=[\"']?[aeiouAEIOU])"
    return re.sub(r"\ban\? ", "a ", re.sub(vowel, "an ", text))


def say(page, sentence, rng, own=OWN):
    family, slots = known(page, sentence)
    if not family or rng.random() < own:
        return sentence
    template = rng.choices(family.templates, [size(t) ** 0.5 for t in family.templates])[0]
    drawn = tidy(draw(template, rng))
    text = fill(drawn, slots, rng)
    plain = text[:-1] if drawn.endswith(".") else text
    fixed = slots_begin(plain, slots) or plain.startswith("I ") or not plain[0].isalpha()
    lower = plain if fixed else plain[0].lower() + plain[1:]
    wrap = rng.choices([w for w, _ in WRAPS], [n for _, n in WRAPS])[0]
    if (
        fixed or "?" in drawn or ":" in drawn
    ):  # what is more than one request is not put into another sentence
        wrap = "{0}"
    return re.sub(r"\s+", " ", wrap.format(text, lower, lower)).strip()


def tidy(text):
    """No blanks before a comma, and no "choose on"."""
    text = re.sub(r" +(?=[,.?:])", "", re.sub(r" +", " ", text))
    return re.sub(
        r"\b(choose|pick|select|open|follow|hit|push|mark|use) on (?!the post)", r"\1 ", text, flags=re.I
    )


def slots_begin(text, slots):
    """A sentence that begins with a slot keeps its first letter: the slot is not to be changed."""
    return any(v and text.lstrip("\"'").startswith(v) for v in slots.values())


# ---- by hand -----------------------------------------------------------------------------------------------


def check(name):
    """Every sentence of an oracle's run: is it known, in how many ways can it be said, do its slots stay?"""
    seen, least, unknown = collections.Counter(), {}, collections.Counter()
    rng = random.Random(1)
    for line in open(name):
        r = json.loads(line)
        page, said = r["page"], r["said"]
        if not said:
            continue
        seen[page] += 1
        n = count(page, said)
        least[page] = min(n, least.get(page, n))
        if not n:
            unknown[page] += 1
            continue
        slots = known(page, said)[1]
        for _ in range(20):
            new = say(page, said, rng, 0)
            lost = [v for v in slots.values() if v and v not in new]
            if lost:
                raise SystemExit(f"{page}: {new!r} has lost {lost}")
    for page in sorted(seen):
        print(f"{page:30} {seen[page]:4} sentences, {unknown[page]} unknown, at least {least[page]} ways")
    print(
        f"{sum(seen.values()) - sum(unknown.values())} of {sum(seen.values())} sentences are known; "
        f"{sum(v >= 15 for v in least.values())} of {len(least)} pages have 15 ways or more"
    )


def main():
    if sys.argv[1:2] == ["check"]:
        check(sys.argv[2])
    elif sys.argv[1:2] == ["show"]:
        rng = random.Random()
        for _ in range(20):
            print(say(sys.argv[2], sys.argv[3], rng, 0))
    else:
        raise SystemExit(__doc__.split("\n")[0])


if __name__ == "__main__":
    main()
