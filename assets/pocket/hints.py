"""Where a copied letter comes from: targets for two attention heads, in training only.

Design.  Copying a word is a circuit of several layers of which no part pays alone; left to the
next-token loss it forms late, after a long plateau.  But the place every letter comes from is
known: the same letter in the task, or the image token that holds it.  So two heads are told where
to look (a cross entropy on their attention weights); the rest of the model then only has to use
what they bring.  Nothing of this is exported.

    TASK   at every letter copied from the user's text: the same letter there
    PAGE   at every letter read from the page: the image token that holds it

The heads are those that glyphs.py tells, so that training can go on from there.
"""
import tokenizer
from tokenizer import AT, BIN0, HEAD, IMAGE, USER

TASK, PAGE = range(2)
HEADS = {TASK: (6, 2), PAGE: (6, 0)}     # (layer, head) that is told


def find_in_cells(cells, words, near=None):
    """(row, column) of `words` standing alone on the page; with `near`, the closest to that point;
    without, only if it is the only one."""
    if not words.strip():
        return None
    places = []
    for r, row in enumerate(cells):
        c = row.find(words)
        while c >= 0:
            e = c + len(words)
            if (c == 0 or not row[c - 1].isalnum()) and (e >= len(row) or not row[e].isalnum()):
                places.append((r, c))
            c = row.find(words, c + 1)
    if near and places:
        x, y = near
        return min(places, key=lambda p: (p[0] + 0.5 - y / 4) ** 2
                   + ((p[1] + len(words) / 2 - x / 2) / 3) ** 2)
    return places[0] if len(places) == 1 else None


def collapsed(row):
    """The text of a row as it is read, runs of spaces being one, with the column of each letter."""
    text, at = "", []
    for c, ch in enumerate(row):
        if ch != " ":
            if text and row[c - 1] == " ":
                text += " "
                at.append(c)
            text += ch
            at.append(c)
    return text, at


class _Page:
    """Collects (query position, slot, key position) for one conversation."""
    def __init__(self, cells):
        self.cells, self.first, self.out, self.texts = cells, None, [], []

    def token(self, r, c):
        return self.first + r * 16 + min(c, 31) // 2

    def letters(self, at, words, r, c):
        for j in range(len(words)):
            self.out.append((at + j - 1, PAGE, self.token(r, c + j)))

    def copied(self, at, words):
        """words, at position `at` of the answer: from the current user text or the task's."""
        for text, start in (self.texts[-1], self.texts[0]):
            k = text.find(words.encode())
            if k >= 0 and words:
                self.out.extend((at + j - 1, TASK, start + k + j) for j in range(len(words)))
                return

    def answer(self, at, u, a):
        ids = tokenizer.spelled(a)
        if AT in ids:
            i = ids.index(AT)
            x, y = ids[i + 1] - BIN0, ids[i + 2] - BIN0
            verb = max((k for k in range(i) if ids[k] >= IMAGE), default=-1)
            element = tokenizer.decode(ids[verb + 1:i])
            if element.isascii():
                place = find_in_cells(self.cells, element, (x, y))
                self.copied(at + verb + 1, element)
                if place:
                    self.letters(at + verb + 1, element, *place)
            rest = tokenizer.decode(ids[i + 3:])
            if rest.isascii():
                self.copied(at + i + 3, rest)
        elif u.startswith("Read row ") and a != "nothing":
            r = int(u.split("\n")[0][9:]) - 1
            text, columns = collapsed(self.cells[r])
            if text == a:
                self.out.extend((at + j - 1, PAGE, self.token(r, c)) for j, c in enumerate(columns))
        elif u.startswith("What is in ") and a != "nothing" and a.isascii():
            place = find_in_cells(self.cells, a)
            if place:
                self.letters(at, a, *place)


def hints(turns, cells):
    """[(query, slot, key)] of a conversation laid out as tokenizer.conversation does."""
    page, at = _Page(cells), len(HEAD)
    for t in turns:
        said = tokenizer.user_turn(t["u"])
        before = t["u"].split("<image>")[0]
        page.texts.append((before.encode(), at + len(USER)))
        if "<image>" in t["u"]:
            page.first = at + said.index(IMAGE)
        at += len(said)
        if t["loss"] and page.first is not None:
            page.answer(at, t["u"], t["a"])
        at += len(tokenizer.spelled(t["a"])) + len(tokenizer.CLOSE) + 1
    return page.out
