"""States of the kiosk pages (assets/demo) and tasks for them.

A state is the input of the page's scripts; positions on the screen are unknown here. kiosk_pages.py makes
training screens of the states, tests/scripts/demo_cases.py tests with held-out words. A state shows the
effect of the steps so far and, in some, of an earlier user.
"""

from . import tasks, words

PAGE_OF = """search search search search offers passenger passenger done""".split()
FIELD = {"from": "city", "to": "city", "date": "date", "name": "person"}
COMPLAINTS = {
    "search": ("Please fill in every field", "Some fields are empty", "All fields are needed"),
    "passenger": ("Please give a name", "The name is missing", "A name is needed"),
}


# ---- flights --------------------------------------------------------------------------------------


def flight_task(rng, lex, seed):
    offered = tasks.times(seed)
    time_ = rng.choice(offered)
    return tasks.flight(rng, lex.city(), lex.city(), lex.date(), time_, lex.person()), offered.index(time_)


def flight_state(rng, lex, seed, task, offer, done):
    """Returns the state of the kiosk after `done` steps of the task."""
    page = PAGE_OF[done]
    state = {"seed": seed, "page": page, "offer": offer, "message": "", "focus": ""}
    state["carriers"] = [lex.carrier() for _ in range(5)]
    used = rng.random() < 0.25  # an earlier user has left texts
    for k, step in enumerate(task.steps):
        if step.verb == "write":
            left = getattr(lex, FIELD[step.element])() if used and rng.random() < 0.7 else ""
            state[step.element] = step.text if k < done else left
    last = task.steps[done - 1] if done else None
    if last and last.verb == "write":
        state["focus"] = last.element
    if page in COMPLAINTS:
        if not state["focus"] and rng.random() < 0.15:
            state["focus"] = rng.choice(("from", "to", "date")) if page == "search" else "name"
        if rng.random() < 0.06:
            state["message"] = rng.choice(COMPLAINTS[page])
    return state


# ---- dialogs --------------------------------------------------------------------------------------


def dialog_text(rng, lex, labels):
    """Returns a sentence, or none in 55 %; 10 % mention a label."""
    kind = rng.random()
    if kind < 0.1:
        form = rng.choice(("{1} {0} first", "{0} is for {1}", "Do not forget {0}", "{0} {1} {2}"))
        return form.format(rng.choice(labels), *(lex.listed(words.PROSE) for _ in range(2)))
    return lex.sentence() if kind < 0.45 else ""


def blank_dialog(rng, lex, seeds, kind):
    """Returns a dialog without any input."""
    n = {"buttons": (3, 6), "ticks": (3, 5), "options": (3, 5), "fields": (1, 3)}[kind]
    count = rng.randint(*n)
    closing = [rng.choice(words.CLOSING) if rng.random() < 0.6 else lex.label(10)]
    if rng.random() < 0.4:
        closing.append(rng.choice(words.DISMISS) if rng.random() < 0.6 else lex.label(8))
    while True:
        labels = lex.labels(count)
        if len({name.lower() for name in labels + closing}) == count + len(closing):
            break
        closing = [lex.label(10) for _ in closing]
    s = {"seed": rng.randint(*seeds), "kind": kind, "labels": labels}
    s["title"] = rng.choice((lex.label(18), lex.until(lambda: lex.sentence(1, 3), 24), ""))
    s |= {"text": dialog_text(rng, lex, labels), "buttons": [] if kind == "buttons" else closing}
    return s | {"on": [], "values": [""] * count, "pressed": "", "focus": -1}


def dialog_task(rng, lex, s, button):
    """Returns a task for this dialog that avoids ticked boxes."""
    free = [label for k, label in enumerate(s["labels"]) if k not in s["on"]]
    if s["kind"] == "buttons":
        return tasks.press(rng, rng.choice(s["labels"]))
    if s["kind"] == "ticks":
        some = rng.sample(free, min(len(free), rng.choices((1, 2, 3), (5, 4, 1))[0]))
        return tasks.tick(rng, some, button)
    if s["kind"] == "options":
        return tasks.choose(rng, rng.choice(free), button)
    some = rng.sample(s["labels"], rng.randint(1, len(s["labels"])))
    if rng.random() < 0.7:
        some.sort(key=s["labels"].index)
    return tasks.fill(rng, [(name, lex.typed()) for name in some], button)


def leave(rng, lex, s):
    """Applies the input of an earlier user: ticks, texts, a pressed button."""
    if s["kind"] == "ticks":
        s["on"] = [k for k in range(len(s["labels"])) if rng.random() < 0.25][: len(s["labels"]) - 2]
    if s["kind"] == "options" and rng.random() < 0.4:
        s["on"] = [rng.randrange(len(s["labels"]))]
    if s["kind"] == "fields":
        s["values"] = [lex.typed() if rng.random() < 0.3 else "" for _ in s["labels"]]
        s["focus"] = rng.randrange(len(s["labels"])) if rng.random() < 0.15 else -1
    if rng.random() < 0.12:
        s["pressed"] = rng.choice(s["buttons"] or s["labels"])


def do(s, step):
    """Applies a step to the dialog's state."""
    s["focus"] = -1
    if step.verb == "write":
        k = s["labels"].index(step.element)
        s["values"][k], s["focus"] = step.text, k
    elif step.element in s["buttons"] or s["kind"] == "buttons":
        s["pressed"] = step.element
    elif s["kind"] == "ticks":
        s["on"].append(s["labels"].index(step.element))
    else:
        s["on"] = [s["labels"].index(step.element)]


# ---- dense text -----------------------------------------------------------------------------------


def text_rows(rng, lex):
    """Returns rows of words that fill the screen, some in frames or on a colour."""
    rows, free = [], 0
    spread = rng.choice((0.0, 0.0, 0.25))
    while free < 16:
        if rng.random() < spread:
            free += 1
            continue
        look = rng.choices(
            ("", "light", "alarm", "accent", "field", "focus", "button", "main", "offer"),
            (60, 8, 4, 4, 5, 3, 4, 4, 4),
        )[0]
        framed = look in ("button", "main", "offer")
        free += framed
        col = rng.choice((0, 0, rng.randint(0, 12))) + (2 if framed or look in ("field", "focus") else 0)
        room, line = (30 if framed else 31 if look in ("field", "focus") else 32) - col, ""
        if rng.random() < 0.2:
            room = rng.randint(2, room)
        while True:
            token = lex.token()
            gap = "" if not line else " " * rng.choices((1, 2, 3), (8, 1, 1))[0]
            if len(line) + len(gap) + len(token) > room:
                break
            line += gap + token
        if line and free < 16 - framed:
            rows.append({"row": free, "col": col, "text": line, "look": look})
        free += 1 + framed
    return rows
