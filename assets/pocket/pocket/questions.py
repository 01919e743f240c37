"""Questions about a screen with their answers, and the source of every letter of an answer.

An answer is a list of pieces, so that its tokens and their sources are known without parsing:

    ("mark", "<click>")          one token of the dialect
    ("copy", text, places)       copied letters; places [(x, y) or None] of each on the screen
    ("place", x, y[, w, h])      four tokens, and the size of the element if it is known
    ("text", text)               anything else

`Screen` builds lines, words and named elements from stored letters and elements. A field or a tick is named
by the text next to it or above it.
"""

import collections
import functools
import re

from . import dialect
from .sources.store import KINDS

CLICK = (
    'Click on the "{}" {k}.|Click {}.|Press {}|Click on "{}".|Press the {} {k}|Push {}|'
    "Please click {}|Hit the {} {k}.|Choose {}|Select {}.|Go to {}|Open {}|Activate {}|"
    "Find and click on {}.|Click the {k} {}|Use {}"
).split("|")
TICK = (
    'Tick {}|Select {}.|Check {}|Choose {}|Mark {}|Put a tick at {}|Turn on {}|Click on the checkbox "{}".'
).split("|")
WRITE = (
    'Enter "{t}" into {}.|Type {t} into {}|Write "{t}" in the {} field.|Put {t} into {}|'
    "Fill {} with {t}|Set {} to {t}|Enter {t} as {}.|{}: {t}|The {} should be {t}."
).split("|")
FIND = ["Where is {}?", "Find {}", "Point at {}.", "Show me {}", 'Locate "{}".']
READ = "Read the line that begins with {}|What does the line with {} say?|Read the line {}".split("|")
THERE = (
    "Is there {}?|Can you see {}?|Does the screen show {}?|Is there a {k} {}?|Is there a {} {k}?|"
    'Is "{}" on the screen?|Is {} to be seen?|Is there a {k} {}: yes or no?|'
    'Is there a {k} called "{}"?'
).split("|")
SAYS = (
    "What does the {} say?|What is the message of the {}?|Read the text of the {}.|What does this {} tell me?"
).split("|")
WORD = dict(button="button", link="link", tab="tab", item="item", check="checkbox", radio="option")
WORD |= dict(header="section")
COMMON = """OK Cancel Close Save Apply Yes No Help Delete Open Send Next Back Submit Reset Search Login Finish
Retry Quit Continue Print Edit Add Remove Copy Paste Undo""".split()
# Occur in any task
PLAIN = set("a an the and or of to in on into from with for at is it as by then that this".split())
HOLDERS = ("button", "field", "area", "select")  # text inside these elements is not a label of others
FAR = 480  # pixels between a field and its name in the same row, at most
REACH = 20  # maximum distance in pixels from the edges of a field to its target point


def text_of(answer):
    out = ""
    for kind, *rest in answer:
        out += dialect.place(*rest[:2]) if kind == "place" else rest[0]
    return out


def aim(kind, box, places=()):
    """Returns the piece ("place", x, y, w, h) of an element: its target point, and the size within which a
    point is right.

    A field is targeted near its upper left corner, since the middle of an empty field looks like any other
    area; a button or the like at its label, anything else in the middle.
    """
    x0, y0, x1, y1 = box
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    at = [p for p in places or () if p]
    if kind in ("field", "area"):
        x, y = min(x, x0 + REACH), min(y, y0 + REACH)
    elif kind in WORD and kind not in ("check", "radio") and at:
        x = min(max((min(p[0] for p in at) + max(p[0] for p in at)) / 2, x0), x1)
        y = min(max(sorted(p[1] for p in at)[len(at) // 2], y0), y1)
    return ("place", x, y, 2 * min(x - x0, x1 - x), 2 * min(y - y0, y1 - y))


def aimed(action, scale, places=()):
    """Returns an oracle's action with the target point of aim(), if it has the middle of its box."""
    x, y, w, h = (v * scale for v in action.get("box") or [0, 0, 0, 0])
    if not w or max(abs(action["x"] * scale - x - w / 2), abs(action["y"] * scale - y - h / 2)) > 2:
        return action
    _, px, py, pw, ph = aim(action.get("kind"), (x, y, x + w, y + h), places)
    return action | {"x": px / scale, "y": py / scale, "box": [*action["box"][:2], pw / scale, ph / scale]}


def altered(rng, name):
    """Returns a similar name: one letter replaced, omitted or doubled."""
    k, c = rng.randrange(len(name)), rng.choice("abcdefghijklmnopqrstuvwxyz")
    return name[:k] + rng.choice((c, "", 2 * name[k])) + name[k + 1 :]


def worded(form, name, kind):
    """Returns a question of THERE with this name."""
    for word, slot in ((name, " a {}"), (kind, " a {k}")):
        if word[0].lower() in "aeiou":
            form = form.replace(slot, slot.replace(" a ", " an "))
    return form.format(name, k=kind)


class Screen:
    def __init__(self, letters, items, names):
        self.lines, self.words = {}, {}
        for x0, y0, x1, y1, kind, line, word in letters.tolist():
            letter = ((x0 + x1) / 8, (y0 + y1) / 8, chr(kind + 32) if kind < 95 else "?", word)
            self.lines.setdefault(line, []).append(letter)
        self.lines = [sorted(e) for e in self.lines.values()]
        self.items = [([v / 4 for v in i[:4]], i[4], i[5], n) for i, n in zip(items, names)]

    def string(self, letters):
        """Returns (text, places) of letters, with a space between words."""
        text, places = "", []
        for k, (x, y, c, word) in enumerate(letters):
            if k and word != letters[k - 1][3]:
                text, places = text + " ", places + [None]
            text, places = text + c, places + [(x, y)]
        return text, places

    def spoken(self):
        """Returns [(word, places)] of all words that a task may mention, without punctuation around them."""
        out = []
        for line in self.lines:
            words = {}
            for x, y, c, word in line:
                words.setdefault(word, []).append((x, y, c))
            for letters in words.values():
                text = "".join(e[2] for e in letters)
                inner = text.strip(":.,;!?()\"'*#")
                k = text.find(inner)
                if inner and inner.lower() not in PLAIN:
                    out.append((inner, [e[:2] for e in letters[k : k + len(inner)]]))
        return out

    def inside(self, box):
        """Returns (text, places) within a box, line by line."""
        x0, y0, x1, y1 = box
        out = []
        for line in self.lines:
            out += [e for e in line if x0 - 1 <= e[0] <= x1 + 1 and y0 - 1 <= e[1] <= y1 + 1]
        return self.string(out)

    def where(self, text, near):
        """Returns the places of the letters of `text` in the line closest to `near` that has it, or None."""
        best = None
        for line in self.lines:
            whole, places = self.string(line)
            k = whole.find(text)
            if k >= 0 and text:
                x, y = places[k]
                away = (x - near[0]) ** 2 + (y - near[1]) ** 2
                if best is None or away < best[0]:
                    best = (away, places[k : k + len(text)])
        return best and best[1]

    @functools.cached_property
    def free(self):
        """Lines outside fields and buttons, the possible labels."""
        boxes = [b for b, kind, *_ in self.items if KINDS[kind] in HOLDERS]
        middles = ((line, *line[len(line) // 2][:2]) for line in self.lines)
        return [
            line for line, x, y in middles if not any(b[0] <= x <= b[2] and b[1] <= y <= b[3] for b in boxes)
        ]

    def far(self, line, box):
        """Returns whether a line may label a field at the other end of its row: nothing is between them."""
        left, (x0, y0, _, y1) = line[-1][0], box
        level = (b for b, *_ in self.items if b[1] < y1 and b[3] > y0)
        return not any(b[2] <= x0 + 2 and b[2] >= left for b in level)

    def label(self, kind, box):
        """Returns (text, places) of the label next to an element without text of its own, or None."""
        if kind in ("field", "area", "select"):
            return self.beside(box, False)
        # at the end of its row
        alone = not any(b is not box and b[1] < box[3] and b[3] > box[1] for b, *_ in self.items)
        return self.beside(box, True) or (self.beside(box, False, above=False) if alone else None)

    def beside(self, box, right, above=True):
        """Returns the text right of a tick, or left of or above a field (also far off in its row)."""
        x0, y0, x1, y1 = box
        best = None
        for line in self.free:
            a, b, y = line[0][0], line[-1][0], sum(e[1] for e in line) / len(line)
            level = y0 - 3 <= y <= y1 + 3
            if right and level:
                part = [e for e in line if e[0] > x1]
                gap = part[0][0] - x1 if part else 999
            elif not right and level and b < x0 + 4:
                part, gap = line, x0 - b
            elif above and not right and y < y0 + 2 and y0 - y < 40 and abs(a - x0) < 40:
                part, gap = line, 30 + y0 - y
            else:
                continue
            if not part or (best and gap >= best[0]):
                continue
            if gap < 160 or (gap < FAR and not right and level and self.far(line, box)):
                best = (gap, part)
        if not best:
            return None
        part = best[1]
        for k in range(1, len(part)):  # a tick's label ends where a gap is
            if right and part[k][0] - part[k - 1][0] > 40:
                part = part[:k]
                break
        text, places = self.string(part)
        cut = text.rstrip(":* ")
        return cut, places[: len(cut)]

    @functools.cached_property
    def named(self):
        """[(kind, state, box, name, places)] of elements with a unique name up to 24 letters."""
        out = []
        for box, kind, state, _ in self.items:
            kind = KINDS[kind]
            if kind in ("button", "link", "tab", "item", "header"):
                found = self.inside(box)
            elif kind in ("check", "radio", "field", "area", "select"):
                found = self.label(kind, box)
            else:
                found = None
            if found and 0 < len(found[0]) <= 24 and "<" not in found[0] and ">" not in found[0]:
                out.append((kind, state, box, *found))
        count = collections.Counter(o[3] for o in out)
        return [o for o in out if count[o[3]] == 1]

    # ---- turns

    def click(self, rng, thing):
        kind, _, box, name, places = thing
        words = TICK if kind in ("check", "radio") else CLICK
        u = rng.choice(words).format(name, k=WORD.get(kind, "thing"))
        return u, [("mark", "<click>"), ("copy", name, places), ("mark", "<at>"), aim(kind, box, places)]

    def write(self, rng, thing, text):
        kind, _, box, name, places = thing
        verb = "<append>" if rng.random() < 0.1 else "<write>"
        u = rng.choice(WRITE).format(name, t=text) if verb == "<write>" else f"Add {text} to {name}"
        typed = ("copy", text, [None] * len(text))
        return u, [("mark", verb), ("copy", name, places), ("mark", "<at>"), aim(kind, box), typed]

    def find(self, rng):
        line = rng.choice(self.lines)
        words = {}
        for e in line:
            words.setdefault(e[3], []).append(e)
        letters = rng.choice(list(words.values()))
        text, places = self.string(letters)
        if "<" in text or ">" in text or sum(text in self.string(e)[0] for e in self.lines) != 1:
            return None
        mid, wide = (letters[0][0] + letters[-1][0]) / 2, letters[-1][0] - letters[0][0]
        return rng.choice(FIND).format(text), [("mark", "<at>"), ("place", mid, letters[0][1], wide + 8, 20)]

    def read(self, rng):
        text, places = self.string(rng.choice(self.lines))
        text = text[:40].rstrip()
        places = places[: len(text)]
        first = text.split()[0]
        if "<" in text or ">" in text or sum(self.string(e)[0].startswith(first) for e in self.lines) != 1:
            return None
        return rng.choice(READ).format(first), [("copy", text, places)]

    def absent(self, rng, lex):
        """Returns a random name that is not on the screen; None if the drawn one is."""
        how = rng.random()
        if how < 0.25 and self.named:
            name = altered(rng, rng.choice(self.named)[3])
        else:
            name = rng.choice(COMMON) if how < 0.7 else lex.label(12)
        shown = " ".join(self.string(e)[0] for e in self.lines).lower()
        return None if not name or name.lower() in shown else name

    def there(self, rng, lex):
        """Returns a question about the presence of an element or word, or None if no name was found."""
        words = [w for w, _ in self.spoken() if len(w) <= 24 and "<" not in w and ">" not in w]
        form, kind, answer = rng.choice(THERE), "field", "yes"
        if rng.random() < 0.5:
            name, answer = self.absent(rng, lex), "no"
            kind = rng.choice(list(WORD.values()))
        elif self.named and (rng.random() < 0.6 or "{k}" in form):
            kind, _, _, name, _ = rng.choice(self.named)
            kind = WORD.get(kind, "field")
        else:
            name = rng.choice(words) if words and "{k}" not in form else None
        return (worded(form, name, kind), [("text", answer)]) if name else None

    def missing(self, rng, absent):
        u = rng.choice(CLICK + TICK).format(absent, k="button")
        return u, [("mark", "<missing>"), ("copy", absent, [None] * len(absent))]

    def ticked(self, rng, thing):
        question = rng.choice(("Is {} ticked?", "Is {} selected?", "Is {} on?")).format(thing[3])
        return question, [("text", "yes" if thing[1] & 1 else "no")]

    def says(self, rng):
        """Returns a question about the message of a screen: its only line of four words or more, or None."""
        long = [line for line in self.free if self.string(line)[0].count(" ") > 2]
        if len(long) != 1:
            return None
        x, y = long[0][0][:2]
        # perhaps the text continues there
        more = any(0 < e[0][1] - y < 40 and abs(e[0][0] - x) < 12 for e in self.free)
        text, places = self.string(long[0])
        if more or len(text) > 60 or set(text) & set("<>"):
            return None
        question = rng.choice(SAYS).format(rng.choice(("dialog", "window", "page", "screen")))
        return question, [("copy", text, places)]

    def asked(self, rng, lex):
        """Returns a question about presence, state or text, as a user asks it of a screen, or None."""
        how, ticks = rng.random(), [t for t in self.named if t[0] in ("check", "radio")]
        if how < 0.25 and ticks:
            on = rng.random() < 0.5  # few are ticked, and "no" would be a good answer
            return self.ticked(rng, rng.choice([t for t in ticks if bool(t[1] & 1) == on] or ticks))
        if how < 0.7 or not self.lines:
            return self.there(rng, lex)
        return (self.says(rng) if how > 0.9 else None) or self.read(rng)

    def turns(self, rng, lex, most):
        """Returns up to `most` different turns [(user text, answer pieces)]; words of `lex` are not on the
        screen.
        """
        things, out = self.named, []
        clicks = [t for t in things if t[0] in WORD]
        fields = [t for t in things if t[0] in ("field", "area")]
        ticks = [t for t in things if t[0] in ("check", "radio")]
        for t in rng.sample(clicks, min(5, len(clicks))):
            out.append(self.click(rng, t))
        for t in rng.sample(fields, min(3, len(fields))):
            texts = lex.word(), lex.invented(), f"{lex.word()} {lex.invented()}", str(rng.randint(0, 9999))
            out.append(self.write(rng, t, rng.choice(texts)))
        for t in rng.sample(ticks, min(2, len(ticks))):
            out.append(self.ticked(rng, t))
        for absent in (a for a in (self.absent(rng, lex) for _ in range(2)) if a):
            if things and rng.random() < 0.8:
                out.append(self.missing(rng, absent))
        if self.lines:
            some = [self.find(rng) for _ in range(3)] + [self.read(rng) for _ in range(2)]
            out += [t for t in some + [self.there(rng, lex) for _ in range(4)] if t]
        rng.shuffle(out)
        seen = set()
        return [t for t in out if not (t[0] in seen or seen.add(t[0]))][:most]


OLD = re.compile(r"([^<]*)<(click|write)>([^<]*)<at><(\d+)><(\d+)>(.*)", re.S)
OLD_PLACE = re.compile(r"<at><(\d+)><(\d+)>")


def kiosk(turn, screen):
    """Returns (user text, answer pieces) of a turn of kiosk_pages.py, whose places are 64ths of 640x480."""

    def point(a, b):
        return (int(a) + 0.5) * 10, (int(b) + 0.5) * 7.5

    u, a = turn["u"], turn["a"]
    m = OLD.fullmatch(a)
    if m:
        x, y = point(m[4], m[5])
        label = dialect.plain(m[3])
        pieces = [("text", m[1])] if m[1] else []
        copied = ("copy", label, screen.where(label, (x, y)) or [None] * len(label))
        pieces += [("mark", f"<{m[2]}>"), copied, ("mark", "<at>"), ("place", x, y)]
        return u, pieces + ([("copy", m[6], [None] * len(m[6]))] if m[6] else [])
    m = OLD_PLACE.fullmatch(a)
    if m:
        return u, [("mark", "<at>"), ("place", *point(m[1], m[2]))]
    thought, done, text = a.partition("<done>")
    if done:
        parts = [("text", thought), ("mark", done), ("text", text)]
        return u, [p for p in parts if p[1]]
    return u, [("copy", a, screen.where(a, (320, 240)) or [None] * len(a))]


def played(record, screen):
    """Returns (earlier answers, user text, answer pieces) of a state of an episode (sources/episodes.py)."""
    scale, action = record["scale"], record["action"]
    history = [dialect.spell(aimed(h, scale) if h.get("box") else h, scale) for h in record["history"]]
    verb = action["verb"]
    if verb not in dialect.POINTED:
        rest = dialect.spell(action, scale).split(">", 1)[1]
        pieces = [("mark", f"<{verb}>")] + ([("copy", rest, [None] * 99)] if rest else [])
        return history, record["said"], pieces

    def target(a):
        """Returns (action with its target point, pieces of its label and place)."""
        name, places = dialect.plain(a.get("label", "")), None
        if name and a.get("box"):
            x, y, w, h = (v * scale for v in a["box"])
            text, where = screen.inside((x, y, x + w, y + h))
            k = text.find(name)
            places = where[k : k + len(name)] if k >= 0 else None
        if a is action and verb != "drag":
            a = aimed(a, scale, places)
        if name and not places:  # a field is named by the text next to it or above it
            places = screen.where(name, (a["x"] * scale, a["y"] * scale))
        place = ("place", a["x"] * scale, a["y"] * scale, *(v * scale for v in (a.get("box") or [0] * 4)[2:]))
        return a, ([("copy", name, places or [None] * len(name))] if name else []) + [("mark", "<at>"), place]

    done, pieces = target(action)
    pieces = [("mark", f"<{verb}>")] + pieces
    if verb == "drag":
        pieces += [("mark", "<to>")] + target(action["to"])[1]
    said = dialect.spell(done, scale)
    rest = said[len(text_of(pieces)) :]
    if rest:
        pieces.append(("copy", rest, [None] * len(rest)))
    assert text_of(pieces) == said, (text_of(pieces), said)
    return history, record["said"], pieces
