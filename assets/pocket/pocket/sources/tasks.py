"""Task sentences of the kiosk and the steps that complete them.

A step has a thought (its place in the plan), a verb and the name of an element; the place is filled in from
a screen. `spell` writes it as an answer. The first phrasing of every list is the demo's.
"""

from dataclasses import dataclass, field

BINS, W, H = 64, 640, 480


@dataclass
class Step:
    thought: str
    verb: str  # click | write
    element: str  # the label on the screen; for flights, the key of the element
    text: str = ""


@dataclass
class Task:
    sentence: str
    steps: list = field(default_factory=list)
    end: str = "finished<done>Done."


def at(box):
    """Returns the centre of a box in 64ths of the screen."""
    x, y, w, h = box
    return f"<at><{int((x + w / 2) * BINS / W)}><{int((y + h / 2) * BINS / H)}>"


def spell(step, label, box):
    return f"{step.thought}<{step.verb}>{label}{at(box)}{step.text}"


def _listed(items):
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def _plan(acts):
    """Returns the steps of [(verb, element, text)] with their thoughts."""
    n = len(acts)
    return [Step("only step" if n == 1 else f"step {k + 1} of {n}", *a) for k, a in enumerate(acts)]


def _then(rng, button):
    forms = ", then press {}| and press {}|, then click {}|, then click the {} button|. Then press {}"
    return rng.choices(forms.split("|"), (5, 1, 2, 1, 1))[0].format(button) if button else ""


def press(rng, label):
    form = rng.choice(
        ("Press {}", "Press {}", "Click {}", "Click the {} button", "Press the {} button", "Please press {}")
    )
    return Task(form.format(label), _plan([("click", label, "")]))


def tick(rng, labels, button=""):
    boxes = "Tick the box {}" if len(labels) == 1 else "Tick the boxes {}"
    form = rng.choice(("Tick {}", "Tick {}", boxes, "Check {}", "Please tick {}"))
    acts = [("click", label, "") for label in labels] + ([("click", button, "")] if button else [])
    return Task(form.format(_listed(labels)) + _then(rng, button), _plan(acts))


def choose(rng, label, button=""):
    form = rng.choice(("Choose {}", "Choose {}", "Select {}", "Pick {}", "Choose the option {}"))
    acts = [("click", label, "")] + ([("click", button, "")] if button else [])
    return Task(form.format(label) + _then(rng, button), _plan(acts))


def fill(rng, pairs, button=""):
    """Returns a task for [(label, text)], in the order of writing."""
    first, rest = rng.choice(
        (
            ("Type {1} into {0}", "{1} into {0}"),
            ("Type {1} into {0}", "{1} into {0}"),
            ("Enter {1} in {0}", "{1} in {0}"),
            ("Write {1} into {0}", "{1} into {0}"),
            ("Set {0} to {1}", "{0} to {1}"),
            ("Put {1} into the field {0}", "{1} into {0}"),
        )
    )
    parts = [(first if k == 0 else rest).format(*p) for k, p in enumerate(pairs)]
    acts = [("write", label, text) for label, text in pairs] + ([("click", button, "")] if button else [])
    return Task(_listed(parts) + _then(rng, button), _plan(acts))


FLIGHT = (
    "Book the {time} flight from {origin} to {destination} on {date} for {name}|"
    "Book a flight from {origin} to {destination} on {date} at {time} for {name}|"
    "Please book {name} on the {time} flight from {origin} to {destination} on {date}|"
    "On {date} {name} flies from {origin} to {destination} at {time}. Book it"
).split("|")


def flight(rng, origin, destination, date, time, name):
    form = rng.choices(FLIGHT, (6, 2, 1, 1))[0] if rng else FLIGHT[0]
    v = dict(origin=origin, destination=destination, date=date, time=time, name=name)
    fields = [("origin", "from", origin), ("destination", "to", destination), ("date", "date", date)]
    steps = [Step(thought, "write", key, text) for thought, key, text in fields]
    steps += [Step("search", "click", "search"), Step("offer", "click", time)]
    steps += [Step("passenger", "write", "name", name), Step("confirm", "click", "confirm")]
    return Task(form.format(**v), steps, "booked<done>Booked.")


def stream(seed, name):
    """Yields the random numbers of kiosk.js for a seed and a name."""
    mask = 0xFFFFFFFF
    h = 0x811C9DC5
    for c in name.encode():
        h = (h ^ c) * 0x01000193 & mask
    a = h ^ (seed + 1) * 0x9E3779B1 & mask
    while True:
        a = a + 0x6D2B79F5 & mask
        t = (a ^ a >> 15) * (a | 1) & mask
        t ^= t + ((t ^ t >> 7) * (t | 61) & mask) & mask
        yield ((t ^ t >> 14) & mask) / 4294967296


def times(seed):
    """Returns the departure times that flight.html offers for a seed."""
    r = stream(seed, "offers")

    def below(n):
        return int(next(r) * n)

    n, out = 4 + below(2), []
    while len(out) < n:
        if out and next(r) < 0.35:
            t = out[below(len(out))] + (5, -5, 10, 600, -600)[below(5)]
        else:
            t = (5 + below(18)) * 60 + below(12) * 5
        if 300 <= t < 1435 and t not in out:
            out.append(t)
    if next(r) < 0.7:
        out.sort()
    return [f"{t // 60}:{t % 60:02}" for t in out]
