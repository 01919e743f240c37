"""Plans kiosk screens (assets/demo) and the conversations about them.

A plan is a pair: the screen to draw, and a function from the browser's report to (kind, turns), so the
places in answers are always those of the document. A turn is {"u": user text, "a": answer, "loss": bool}.
The first turn with a loss is a step of a task: the task, the earlier steps without their pictures, the
newest picture, the next step. In some, the last step is reported to have changed nothing and the answer
repeats it. Later turns ask about the same picture: other tasks, where something is, the text of a row.
"""

from . import kiosk_states, tasks

RECOVERY = 0.08  # probability that the last step of a task was lost or repeated
QUESTIONS = 12  # turns after the first, at most
TRAIN_SEEDS = (0, 999_999)
EVAL_SEEDS = (2_000_000, 2_999_999)  # the test suites begin at 1000000


# ---- turns ----------------------------------------------------------------------------------------


def in_use(rng, task, where, at, outcome):
    """Returns the turns of a task after `at` steps; `where` returns a step's (label, box).

    outcome of the last step: "done"; "lost", it had no effect and is due again; "again", it was repeated.
    """
    said = [tasks.spell(s, *where(s)) for s in task.steps] + [task.end]
    past = said[:at] + ([said[at - 1]] if outcome == "again" else [])
    turns, before = [], task.sentence + "\n"
    for step in past:
        turns.append({"u": before + "-", "a": step, "loss": False})
        before = ""
        if step is not past[-1] and rng.random() < 0.02:  # an earlier step without effect, repeated
            turns.append({"u": "no change\n-", "a": step, "loss": False})
    before += "" if outcome == "done" else "no change\n"
    turns.append({"u": before + "<image>", "a": said[at - (outcome == "lost")], "loss": True})
    return turns


def draw_outcome(rng, at, share=RECOVERY):
    if at == 0 or rng.random() > share:
        return "done"
    return "lost" if rng.random() < 0.8 else "again"


def ask(question, answer):
    return {"u": question, "a": answer, "loss": True}


def first_step(task, elements):
    step = task.steps[0]
    return ask(task.sentence, tasks.spell(step, step.element, elements[step.element]["box"]))


def read_row(rng, cells):
    """Returns a question about a row, 93 % of them with text."""
    full = [k for k, row in enumerate(cells) if row.strip()]
    k = rng.choice(full) if rng.random() < 0.93 else rng.randrange(16)
    return ask(f"Read row {k + 1}", " ".join(cells[k].split()) or "nothing")


def find_word(rng, cells, taken=()):
    """Returns a question for a word that occurs once and is not the name of an element, or None."""
    found = {}
    for r, row in enumerate(cells):
        for word in dict.fromkeys(row.split()):
            found.setdefault(word, []).append((r, row.find(word), row.count(word)))
    words = [w for w, p in found.items() if len(p) == 1 and p[0][2] == 1 and len(w) > 1 and w not in taken]
    once = [w for w in words if not any(w != o and w in o for o in found)]
    if not once:
        return None
    word = rng.choice(once)
    r, c, _ = found[word][0]
    return ask(f"Find {word}", tasks.at((20 * c, 30 * r, 20 * len(word), 30)))


def questions(rng, report, fresh, reads=3):
    """Returns up to QUESTIONS turns on a page; `fresh` are tasks of the page with their first step."""
    elements, cells = report["elements"], report["cells"]
    finds = [ask(f"Find {e['label']}", tasks.at(e["box"])) for e in elements]
    fields = [e for e in elements if e["kind"] == "field"]
    values = [ask(f"What is in {e['label']}?", e["value"] or "nothing") for e in fields]
    out = list(fresh) + rng.sample(finds, min(len(finds), 4)) + rng.sample(values, min(len(values), 2))
    out += [read_row(rng, cells) for _ in range(reads)]
    names = {w for e in elements for w in e["label"].split()} | {e["label"] for e in elements}
    word = find_word(rng, cells, names)
    out += [word] if word else []
    rng.shuffle(out)
    seen = set()
    return [t for t in out if not (t["u"] in seen or seen.add(t["u"]))][:QUESTIONS]


# ---- pages ----------------------------------------------------------------------------------------


def flight_page(rng, lex, seeds):
    seed = rng.randint(*seeds)
    task, offer = kiosk_states.flight_task(rng, lex, seed)
    at = rng.choices(range(8), (10, 10, 10, 10, 14, 10, 9, 7))[0]
    outcome = draw_outcome(rng, at)
    if outcome == "again" and task.steps[at - 1].verb == "click":  # a second click leaves the page
        outcome = "done"
    state = kiosk_states.flight_state(rng, lex, seed, task, offer, at - (outcome == "lost"))
    plans = [["flight", {**state, "page": p}] for p in ("search", "offers", "passenger")]

    def turns(report):
        named = {e["label"]: e for e in report["elements"]}
        every = [e for plan in report["plans"] for e in plan] + report["elements"]
        known = {e["key"] or e["label"]: (e["label"], e["box"]) for e in every}
        fresh = []
        for e in rng.sample(report["elements"], min(4, len(report["elements"]))):
            if e["kind"] == "field":
                own = tasks.fill(rng, [(e["label"], lex.typed(12))])
            else:
                how = rng.choice((tasks.choose, tasks.press)) if e["kind"] == "offer" else tasks.press
                own = how(rng, e["label"])
            fresh.append(first_step(own, named))
        for _ in range(2 if state["page"] == "search" else 0):
            other, _ = kiosk_states.flight_task(rng, lex, rng.randint(*seeds))
            fresh.append(ask(other.sentence, tasks.spell(other.steps[0], *known["from"])))
        main = in_use(rng, task, lambda s: known[s.element], at, outcome)
        return "flight-" + state["page"], main + questions(rng, report, fresh)

    return ["flight", state, plans], turns


def dialog_page(rng, lex, seeds):
    kind = rng.choices(("buttons", "ticks", "options", "fields"), (30, 22, 18, 30))[0]
    s = kiosk_states.blank_dialog(rng, lex, seeds, kind)
    kiosk_states.leave(rng, lex, s)
    button = rng.choice(s["buttons"][:1] * 3 + s["buttons"]) if s["buttons"] and rng.random() < 0.7 else ""
    task = kiosk_states.dialog_task(rng, lex, s, button)
    if s["pressed"] == task.steps[-1].element:
        s["pressed"] = ""
    at = rng.choice(list(range(len(task.steps))) * 3 + [len(task.steps)])
    outcome = draw_outcome(rng, at, 2 * RECOVERY)
    if outcome == "again" and kind == "ticks":  # a second click clears the box
        outcome = "done"
    for step in task.steps[: at - (outcome == "lost")]:
        kiosk_states.do(s, step)

    def turns(report):
        named = {e["label"]: e for e in report["elements"]}
        if kind == "buttons":
            some = rng.sample(s["labels"], min(4, len(s["labels"])))
            fresh = [first_step(tasks.press(rng, b), named) for b in some]
        else:
            fresh = [first_step(tasks.press(rng, b), named) for b in s["buttons"]]
            for _ in range(4 if kind != "ticks" or len(s["on"]) < len(s["labels"]) else 0):
                other = kiosk_states.dialog_task(rng, lex, s, rng.choice(s["buttons"] + [""]))
                fresh.append(first_step(other, named))
        main = in_use(rng, task, lambda step: (step.element, named[step.element]["box"]), at, outcome)
        return "dialog-" + kind, main + questions(rng, report, fresh, 2)

    return ["dialog", s, []], turns


def text_page(rng, lex, seeds):
    rows = kiosk_states.text_rows(rng, lex)

    def turns(report):
        asked, out = set(), []
        for k in range(40):
            turn = read_row(rng, report["cells"]) if k % 2 else find_word(rng, report["cells"])
            if turn and turn["u"] not in asked and len(out) < QUESTIONS + 1:
                asked.add(turn["u"])
                out.append(turn)
        out[0] = {**out[0], "u": out[0]["u"] + "\n<image>"}
        return "text", out

    return ["rows", {"rows": rows}, []], turns


MAKERS = {"flight": flight_page, "dialog": dialog_page, "text": text_page}
