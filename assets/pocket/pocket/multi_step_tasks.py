"""Tasks of several steps about static screens: fields to fill, ticks to set, a button at the end.

A task names some elements of a screen. A number of its steps counts as done; the answer is the next step,
or the end. The conversation reports the steps done, and in AS_SHOWN of the tasks the picture shows them
too: filled fields were filled, ticked boxes were ticked. Episodes (sources/frames.py) teach real states;
these tasks teach any words, any order and any toolkit.
"""

from . import questions

FIELD = """type {t} into {n}|type {t} in {n}|type {t} into the field {n}|enter {t} in {n}|enter {t} into {n}
enter {t} into the {n} field|enter {t} as {n}|put {t} into {n}|put {t} in the field {n}
put {t} into the {n} box
write {t} into {n}|write {t} in the field {n}|set {n} to {t}|fill {n} with {t}|fill in {n} with {t}
fill {t} into {n}|make {n} {t}|change {n} to {t}|give {t} as {n}|for {n} enter {t}|in {n} type {t}
{n} should be {t}"""
TICK = """tick {n}|check {n}|turn on {n}|select {n}|mark {n}|put a tick at {n}|tick the box {n}|activate {n}
enable {n}|check the box {n}"""
UNTICK = "untick {n}|uncheck {n}|turn off {n}|clear {n}|take the tick off {n}|disable {n}|deselect {n}"
PICK = """pick {n}|choose {n}|select {n}|take {n}|pick the option {n}|choose the option {n}|set it to {n}
mark {n}"""
PRESS = """press {n}|click {n}|click on {n}|push {n}|hit {n}|press the {n} button|click the {n} button
press the button {n}|click on the button {n}|press on {n}|use {n}|confirm with {n}
finish with {n}|end with {n}
go on with {n}"""
OPEN = """open {n}|click {n}|click on {n}|go to {n}|press {n}|follow {n}|choose {n}|show {n}|switch to {n}"""
WORDINGS = {
    name: table.replace("\n", "|").split("|")
    for name, table in dict(field=FIELD, tick=TICK, untick=UNTICK, pick=PICK, press=PRESS, open=OPEN).items()
}
BEFORE = ["", "", "", "", "", "Please ", "In this window, ", "On this page ", "Now ", "Here: ", "Could you "]
JOINTS = (", then ", " and ", ", and ", " and then ", ", then ", ", ")
END = [("mark", "<done>")]
AS_SHOWN = 0.6  # fraction of tasks whose completed steps show in the picture, as in use
OUTER = ("button", "link", "tab", "item", "header")  # kinds of elements that end a task
ON = 1  # state bit of labels.js: ticked, chosen or open


def quoted(rng, text, how):
    return f'"{text}"' if how == 2 or (how == 1 and rng.random() < 0.5) else text


class Step:
    """A step: wording, verb, element (kind, state, box, name, places), typed text."""

    def __init__(self, wording, mark, thing, text=""):
        self.wording, self.mark, self.thing, self.text = wording, mark, thing, text

    def clause(self, rng, how, wording):
        return wording.format(n=quoted(rng, self.thing[3], how), t=quoted(rng, self.text, how))

    def pieces(self):
        kind, _, box, name, places = self.thing
        place = questions.aim(kind, box, places)
        out = [("mark", self.mark), ("copy", name, places), ("mark", "<at>"), place]
        return out + ([("copy", self.text, [None] * len(self.text))] if self.text else [])


def value(rng, lex):
    """Returns a text to type: words, names, numbers, codes."""
    return rng.choice(
        (
            lambda: lex.word(),
            lambda: lex.invented(),
            lambda: f"{lex.invented().capitalize()} {lex.invented().capitalize()}",
            lambda: f"{lex.word()} {lex.word()}",
            lambda: str(rng.randint(0, 10 ** rng.randint(1, 8))),
            lambda: f"{lex.invented().upper()[:4]}-{rng.randint(10, 9999)}",
            lambda: f"{lex.word()}{rng.randint(0, 99)}",
        )
    )()


def step_of(rng, lex, thing):
    kind, state = thing[0], thing[1]
    if kind in ("field", "area"):
        return Step("field", "<write>", thing, value(rng, lex))
    if kind == "check":
        return Step("untick" if state & ON else "tick", "<click>", thing)
    if kind == "radio":
        return Step("pick", "<click>", thing)
    return Step("press" if kind == "button" else "open", "<click>", thing)


def chosen(rng, lex, things):
    """Returns random steps: fields and ticks, half in order down the page, then a button or link."""
    inner = [t for t in things if t[0] in ("field", "area", "check") or (t[0] == "radio" and not t[1] & ON)]
    outer = [t for t in things if t[0] in OUTER]
    some = rng.sample(inner, min(len(inner), rng.choices((0, 1, 2, 3, 5, 8), (2, 3, 5, 5, 2, 1))[0]))
    if rng.random() < 0.5:
        some.sort(key=lambda t: t[2][1])
    last = [rng.choice(outer)] if outer and (not some or rng.random() < 0.85) else []
    return [step_of(rng, lex, t) for t in some + last]


def shown(screen, thing):
    """Returns the step that set the shown state of an element, or None if it looks untouched."""
    kind, state, box = thing[:3]
    if kind in ("field", "area"):  # a hint in an empty field is not its text; only the page knows the text
        text = next(n for b, *_, n in screen.items if b is box)
        fits = 0 < len(text) <= 24 and not set(text) & set("<>\n")
        return Step("field", "<write>", thing, text) if fits else None
    if kind in ("check", "radio") and state & ON:
        return Step("tick" if kind == "check" else "pick", "<click>", thing)
    return None


def as_shown(rng, lex, screen, things):
    """Returns (steps, number done): filled fields and set ticks of the picture come first."""
    steps = [s for s in (shown(screen, t) for t in things) if s]
    done = rng.sample(steps, min(len(steps), rng.choices((0, 1, 2, 3, 4), (2, 4, 4, 2, 1))[0]))
    settled = {id(s.thing) for s in done}
    settled |= {id(t) for t in things if t[0] in ("check", "radio") and t[1] & ON}
    if any(s.thing[0] == "radio" for s in done):  # these may be in the same group
        settled |= {id(t) for t in things if t[0] == "radio"}
    if rng.random() < 0.5:
        done.sort(key=lambda s: s.thing[2][1])
    over = rng.choices(("no", "nearly", "yes"), (5, 4, 1))[0] if done else "no"
    left = [t for t in things if id(t) not in settled and (over == "no" or t[0] in OUTER)]
    return done + ([] if over == "yes" else chosen(rng, lex, left)), len(done)


def grouped(rng, steps):
    """Groups consecutive steps of one wording, 60 % of them into one clause."""
    out = []
    for s in steps:
        same = out and out[-1][0].wording == s.wording and rng.random() < 0.6
        out = [*out[:-1], [*out[-1], s]] if same else [*out, [s]]
    return out


def together(rng, how, steps):
    """Returns the clause of a group, such as `tick A, B and C`."""
    wording = rng.choice(WORDINGS[steps[0].wording])
    again = wording[wording.index("{") :]
    if len(steps) > 1:
        wording = wording.replace("the box ", "the boxes ").replace("a tick at", "ticks at")
    parts = [s.clause(rng, how, again if k else wording) for k, s in enumerate(steps)]
    last = ", and " if len(parts) > 2 and rng.random() < 0.3 else " and "
    return last.join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else parts[0]


def sentence(rng, steps):
    how = rng.choices((0, 1, 2), (6, 1, 3))[0]
    clauses = [together(rng, how, alike) for alike in grouped(rng, steps)]
    if len(clauses) > 1 and rng.random() < 0.15:
        text = ". ".join(c[0].upper() + c[1:] for c in clauses)
    elif len(clauses) > 1:
        text = ", ".join(clauses[:-1]) + rng.choice(JOINTS) + clauses[-1]
    else:
        text = clauses[0]
    text = rng.choice(BEFORE) + text
    return (text[0].upper() + text[1:] if rng.random() < 0.85 else text) + rng.choice(("", "", "."))


def task(screen, rng, lex):
    """Returns (task, earlier answers, pieces of the next answer), or None if no element has a name."""
    things, done = screen.named, None
    if rng.random() < AS_SHOWN:
        steps, done = as_shown(rng, lex, screen, things)
    else:
        steps = chosen(rng, lex, things)
    if not steps:
        return None
    absent = None
    if rng.random() < 0.2 and (done or 0) < len(steps):  # one of the elements is absent
        name = screen.absent(rng, lex)
        if name:
            absent = rng.randrange(done or 0, len(steps))
            kind, state, box, _, _ = steps[absent].thing
            steps[absent].thing = (kind, state, box, name, [None] * len(name))
            steps = steps[: absent + 1] if rng.random() < 0.3 else steps
    if done is None:  # the end is half as frequent as in use: an early end fails a task
        done = rng.randint(0, absent if absent is not None else len(steps) - (rng.random() < 0.5))
    said, history = sentence(rng, steps), [questions.text_of(s.pieces()) for s in steps[:done]]
    if done == absent:
        name = steps[done].thing[3]
        return said, history, [("mark", "<missing>"), ("copy", name, [None] * len(name))]
    return said, history, steps[done].pieces() if done < len(steps) else END
