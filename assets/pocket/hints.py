"""Where an answer's words come from: targets for a few attention heads, in training only.

Design.  Finding a word on a page, and copying one, are circuits of several layers of which no part
pays alone; left to the next-token loss they form late, after a long plateau.  But the place every
answer comes from is known: the control's token, the label's last letter on the page, the letter in
the task.  So three heads are told where to look (a cross entropy on their attention weights); the
rest of the model then only has to use what they bring.  Nothing of this is exported.

    LABEL  at a point's two bins: the image token with the last letter of the element's label
    TASK   at every copied letter: the same letter in the user's text
    PAGE   at a point's two bins: the image token of the point; at a letter read from the page: the
           image token that holds it
"""
import tokenizer
from tokenizer import AT, BIN0, HEAD, IMAGE, USER

LABEL, TASK, PAGE = range(3)
HEADS = {LABEL: (6, 0), TASK: (10, 0), PAGE: (10, 2)}        # (layer, head) that is told


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

    def point(self, at, x, y, label):
        for q in (at, at + 1):
            self.out.append((q, PAGE, self.first + y // 4 * 16 + x // 4))
        place = find_in_cells(self.cells, label, (x, y))
        if place:
            key = self.token(place[0], place[1] + len(label) - 1)
            self.out.extend((q, LABEL, key) for q in (at, at + 1))
        return place

    def answer(self, at, u, a):
        ids = tokenizer.spelled(a)
        if AT in ids:
            i = ids.index(AT)
            x, y = ids[i + 1] - BIN0, ids[i + 2] - BIN0
            verb = max((k for k in range(i) if ids[k] >= IMAGE), default=-1)
            element = tokenizer.decode(ids[verb + 1:i])
            label = element or u.split("\n")[0].removeprefix("Find ")
            place = self.point(at + i, x, y, label)
            if element.isascii():
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
