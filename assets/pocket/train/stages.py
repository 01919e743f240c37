"""All stages one after the other, unattended: each goes on where it stopped, the next begins when a gate
holds.

    python stages.py [--until eyes]     POCKET_STATE is where data, runs and logs are
    python stages.py --keep                             what the runs have made so far, into ../wide

Design.  A stage is a command with a budget of core minutes and a gate.  When the budget is used up the gate
is measured on screens of gate seeds and held-out words.  Does it fail, the stage gets more time, a few
times; after that everything stops, since a gate that fails is answered with another design, not with more
hours. What happened is in stages.log, the newest state in STAGES.  SIGTERM goes on to the stage, which
saves.

A machine may be lost between two sessions, so what a stage has made goes into the tree (weights.py): by itself
when its gate holds, by --keep at any time.  On a machine that has no run of a stage, a kept file whose gate
held stands for the run, and another one is gone on from.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import weights

HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE.parent / "wide"
STATE = pathlib.Path(os.environ.get("POCKET_STATE", HERE.parents[2] / "build" / "pocket"))
DATA, ROWS = STATE / "data", STATE / "rows"
FAMILIES = {"Liberation Sans": "liberation", "DejaVu Sans": "dejavu", "Noto Sans": "noto"}  # of the gates
FONTS = [str(DATA / f"gate-{f}") for f in FAMILIES.values()]
TUNABLES = "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=8589934592"  # large buffers are kept, not returned


# The pages that come first: one kind of step, or two, with click, write and key; answers stand in the sentence
# or on the page.
EASY = """click-button click-button-sequence click-checkboxes click-checkboxes-transfer click-checkboxes-soft
click-collapsible click-color click-dialog click-dialog-2 click-link click-option click-shape click-tab click-tab-2
click-test click-test-2 click-test-transfer click-widget enter-date enter-password enter-text enter-text-2
enter-text-dynamic enter-time focus-text focus-text-2 grid-coordinate identify-shape login-user login-user-popup
multi-layouts multi-orderings navigate-tree read-table search-engine simple-arithmetic text-transform
use-autocomplete""".split()

# The other pages of the suite but three: airports and colour wheels are out of reach, and no script opens a popup.
MORE = """bisect-angle buy-ticket choose-date choose-date-easy choose-date-medium circle-center
click-checkboxes-large click-collapsible-2 click-menu click-menu-2 click-pie click-shades click-tab-2-easy
click-tab-2-hard click-tab-2-medium copy-paste copy-paste-2 count-shape count-sides daily-calendar drag-box
drag-circle drag-items drag-items-grid drag-shapes drag-shapes-2 drag-single-shape drag-sort-numbers draw-line
email-inbox email-inbox-delete email-inbox-forward email-inbox-forward-nl email-inbox-forward-nl-turk
email-inbox-important email-inbox-nl-turk email-inbox-noscroll email-inbox-reply email-inbox-star-reply
find-midpoint find-word form-sequence form-sequence-2 form-sequence-3 generate-number guess-number
highlight-text highlight-text-2 number-checkboxes odd-or-even order-food phone-book read-table-2 resize-textarea
right-angle scroll-text scroll-text-2 sign-agreement simple-algebra social-media social-media-all
social-media-some terminal text-editor tic-tac-toe use-slider use-slider-2 use-spinner visual-addition""".split()

# Pages on which hands that are scripts (world/hands.js) leave other states than a person's, so that the oracle's next word is
# often the same again: they are played in a real browser, world/episodes.py.
BY_HAND = """click-menu click-menu-2 click-pie click-shades copy-paste copy-paste-2 daily-calendar enter-time form-sequence-3
generate-number highlight-text highlight-text-2 order-food resize-textarea scroll-text scroll-text-2 terminal text-editor
use-slider use-slider-2""".split()


def kept_of(run):
    return KEPT / f"{run.name}.safetensors"


def held(path):
    """The stages whose gates a kept file has behind it."""
    return weights.load(str(path))["figures"].get("held", []) if path.exists() else []


def made(run):
    """What later stages take: the run of this machine, or what the tree keeps of it."""
    return run if (run / "last.pt").exists() or not kept_of(run).exists() else kept_of(run)


def reading_gate(run):
    import score

    p, c, reader, _, _ = score.load(str(run))
    out, holds = {}, True
    for folder in FONTS:
        f = score.figures(score.score(p, c, reader, folder, 160)[0])
        out[pathlib.Path(folder).name] = {k: round(v, 3) for k, v in f.items()}
        g = score.GATE
        holds &= (
            f["letters"] >= g["letters"]
            and f["words"] >= g["words"]
            and f["ghosts"] <= g["ghosts"]
            and f["distance"] <= g["distance"]
        )
    return holds, out


def there(_):
    """A renderer's own check: it throws away what has no ink, and ends with an error when a browser fails
    three times."""
    return True, {}


def cached(_):
    return any(ROWS.glob("*/*.npz")), {}


def steps_gate(pages, share, rows="gate-miniwob"):
    """A gate: at least so many pages of played episodes at which so large a share of steps is right."""

    def gate(run):
        import argparse
        import language

        a = argparse.Namespace(
            table=str(run), gate=[str(ROWS / rows)], gate_screens=600, turns=0, sigma=0.5
        )
        if not any((ROWS / rows).glob("*.npz")):
            return False, {"missing": f"rows/{rows}: records of played episodes with gate seeds"}
        t = language.table(a)[rows]
        shares = {
            k[:-2]: t[f"{k[:-2]} right"] / t[k]
            for k in t
            if k.endswith(" n") and not k.startswith(("<", "all", "text"))
        }
        good = sum(v >= share for v in shares.values())
        return good >= pages, {
            f"pages at {share}": good,
            "of": len(shares),
            "all": round(t["all right"] / max(1, t["all n"]), 3),
        }

    return gate


# Every table is {name: (command, the run's folder, first budget, more, most, gate)}; a command is words.


PLAIN = "plain"  # screens as the suite shows them
PAGES, OTHERS = "pages", "read"  # at all scales and in all fonts: MiniWoB++, and the other worlds


def eyes_are_kept():
    """Whether the tree has eyes whose last gate held, and this machine no run of its own."""
    run = STATE / "eyes"
    return not (run / "last.pt").exists() and "eyes-again" in held(kept_of(run))


def world_stages():
    """Real pages as the suite shows them, for the first reading; then all worlds, fonts and scales, with the gates.  Where the
    eyes are there already, only what language is taught on."""
    render, out, eyes = "../world/render.py", {}, not eyes_are_kept()

    def add(name, world, folder, *more):
        out[f"world-{name}"] = ([render, world, "--out", DATA / folder, *more], DATA, 0, 0, 0, there)

    if eyes:
        add("plain", "miniwob", PLAIN, "--plain", "--screens", 256, "--shards", 24)
        add("forms", "forms", PLAIN, "--plain", "--screens", 256, "--shards", 4)
        add("gate-plain", "miniwob", "gate-plain", "--plain", "--screens", 128, "--gate")
        add("wide-miniwob", "miniwob", PAGES, "--shards", 8)
    for world, shards in (("kiosk", 10), ("forms", 10), ("gtk", 4), ("qt", 4), ("tk", 4)):
        add(f"wide-{world}", world, OTHERS, "--shards", shards)
    for family, name in FAMILIES.items() if eyes else ():
        add(f"gate-{name}", "miniwob", f"gate-{name}", "--gate", "--screens", 160, "--families", family)
    for world in ("forms", "kiosk", "gtk", "qt", "tk") if eyes else ("forms",):
        add(f"gate-{world}", world, f"gate-{world}", "--gate", "--screens", 96)
    return out


def eye_stages(workers):
    """Reading and elements at once, on crops of 156 patches: one font at one scale first, then everything."""
    run, out = STATE / "eyes", {}
    command = ["elements.py", "--run", run, "--kept", kept_of(run), "--workers", workers, "--parts", 4, "--every", 10]
    command += ["--tokens", 156, "--boxes", 0, "--weight", 0.3, "--where", 0.2, "--data", DATA / PLAIN]
    out["eyes"] = (command + ["--gate", DATA / "gate-plain"], run, 30, 15, 90, plain_gate)
    wide = command + [DATA / PAGES, DATA / OTHERS, "--large", 0.3, "--horizon", tuned("horizon-eyes", 220)]
    wide += ["--gate", *FONTS, *(DATA / f"gate-{w}" for w in ("plain", "forms", "gtk", "qt", "tk", "kiosk"))]
    out["eyes-wide"] = (wide, run, 220, 40, 380, reading_gate)
    again = wide + ["--since", 381, "--horizon", tuned("horizon-again", 461), "--muon", 1.5e-3, "--adam", 1e-3]
    out["eyes-again"] = (again, run, 461, 0, 461, reading_gate)  # small screens enlarged, forms and windows oftener
    return out


def plain_gate(run):
    import elements
    import score

    p, c, reader, _, views = score.load(str(run))
    f = score.figures(score.score(p, c, reader, str(DATA / "gate-plain"), 128)[0])
    finder = elements.Elements(None).load_heads(views, c)["head.find"]
    t = elements.score_items(p, c, finder, str(DATA / "gate-plain"), 128)
    g, out = score.GATE, {k: round(v, 3) for k, v in f.items()}
    out |= {k: round(t[k] / max(1, t["n"]), 3) for k in ("kind", "right")}
    right = f["letters"] >= g["letters"] and f["words"] >= g["words"] and f["ghosts"] <= g["ghosts"]
    return right and f["distance"] <= g["distance"], out


def episodes(pages, tail, shards, seeds, workers, eyes, first=0):
    """Episodes of some pages: played in frames to train on, or where scripts are no hands in a browser of its own; for the
    gate (`seeds` of them a page, if any) in a real browser; the tower's rows of all."""
    names, out = ["--pages", ",".join(pages)], {}
    played, gate = f"played{tail}", f"gate-{tail[1:] or 'easy'}"
    quick, slow = (["--pages", ",".join(p for p in pages if (p in BY_HAND) == by)] for by in (False, True))
    cache = ["cache.py", "--run", made(eyes), "--workers", workers]
    play = ["../world/frames.py", "--out", DATA / played, *quick, "--shards", shards, "--first", first]
    records = DATA / f"records{tail or '-easy'}"
    hands = ["../world/episodes.py", "records", "--out", records, *slow, "--first", 100 * first, "--seeds", 2 * shards]
    real = ["../world/episodes.py", "records", "--out", DATA / f"records-{gate}", *names]
    real += ["--first", 900_000, "--seeds", seeds, "--missing", 0]
    out[f"play{tail}"] = (play, DATA, 0, 0, 0, there)
    out[f"hands{tail}"] = (hands, DATA, 0, 0, 0, there)
    out[f"shards{tail}"] = (["../world/episodes.py", "shards", records, "--out", DATA / played], DATA, 0, 0, 0, there)
    out[f"rows-{played}"] = ([*cache, "--data", DATA / played, "--out", ROWS / played], eyes, 0, 0, 0, cached)
    if not seeds:
        return out
    out[f"play-gate{tail}"] = (real, DATA, 0, 0, 0, there)
    gated = ["--records", DATA / f"records-{gate}", "--cut", "--out", ROWS / gate]
    out[f"rows-{gate}"] = ([*cache[:3], *gated], eyes, 0, 0, 0, cached)
    return out


def language_stages(workers):
    """The language model on cached rows of episodes; the gate is of episodes in a real browser.  It goes on from what the tree
    keeps; where there is nothing it begins with the model of one theme that pocket.mk makes first (its first 12 sub-layers).  Then
    states that the model itself gets into."""
    eyes, run = STATE / "eyes", STATE / "language20"
    cache = ["cache.py", "--run", made(eyes), "--workers", workers]
    others = [*cache, "--data", DATA / OTHERS, "--out", ROWS / "read"]
    forms = [*cache, "--data", DATA / "gate-forms", "--out", ROWS / "gate-forms"]
    still = {"read": others, "gate-forms": forms}
    out = {f"rows-{n}": (c, eyes, 0, 0, 0, cached) for n, c in still.items()}
    out |= episodes(EASY, "", 8, 4, workers, eyes) | episodes(MORE, "-more", 12, 1, workers, eyes)
    out |= episodes(EASY + MORE, "-all", 12, 0, workers, eyes, 1000)
    rows = [ROWS / f"played{tail}" for tail in ("", "-more", "-all")]

    def train(*rows):
        command = ["language.py", "--run", run, "--kept", kept_of(run), "--layers", 20, "--shipped", STATE / "model"]
        command += ["--rows", *rows, ROWS / "read"]
        command += ["--gate", *(ROWS / f"gate-{g}" for g in ("easy", "more", "forms"))]
        command += ["--workers", workers, "--parts", 2, "--muon", 1e-3, "--adam", 7e-4]
        command += ["--average", 0.97]  # steps are few: a longer one has the beginning in it
        command += ["--every", 20, "--gate-screens", 200, "--turns", 5, "--beside", 2]
        return command + ["--horizon", tuned(f"horizon-{run.name}", 400)]

    for k, (minutes, good, share) in enumerate([(100, 28, 0.8), (250, 32, 0.85), (400, 34, 0.9)], 1):
        gate = steps_gate(good, share, "gate-easy")
        out[f"language20-{k}"] = (train(*rows), run, minutes, 0, minutes, gate)
        if k < 3:
            out |= visited(k, workers, cache[:3], made(eyes), run)
            rows.append(ROWS / f"visited-{k}")
    return out


def visited(k, workers, cache, eyes, run):
    """What the model does wrong, labelled."""
    name = f"visited-{k}"
    play = ["dagger.py", "--eyes", eyes, "--language", run, "--out", DATA / name, "--shards", 8, "--first", 100 * k]
    rows = [*cache, "--data", DATA / name, "--workers", workers, "--out", ROWS / name]
    return {
        f"dagger-{k}": (play + ["--pages", ",".join(p for p in EASY + MORE if p not in BY_HAND)], DATA, 0, 0, 0, there),
        f"rows-{name}": (rows, run, 0, 0, 0, cached),
    }


def pointer_stages(workers):
    """What names name, on cached rows of the tower: of pages that stand still and of played ones."""
    eyes, run, out = STATE / "eyes", STATE / "pointer", {}
    rows = lambda name: ROWS / f"pointer-{name}.npz"
    for name, folder, screens in (("still", OTHERS, 7000), ("played", "played", 800), ("gate", "gate-forms", 96)):
        command = ["pointer.py", "--eyes", made(eyes), "--cache", rows(name), "--screens", screens, DATA / folder]
        out[f"rows-pointer-{name}"] = (command, eyes, 0, 0, 0, lambda _, path=rows(name): (path.exists(), {}))
    train = ["pointer.py", "--eyes", made(eyes), "--run", run, "--kept", kept_of(run), "--workers", workers]
    train += ["--rows", rows("still"), rows("played"), "--gate", rows("gate"), "--warm", 60, "--adam", 1.5e-3]
    out["pointer"] = (train, run, 90, 0, 90, lambda run: pointer_gate(run, rows("gate")))
    return out


def pointer_gate(run, rows):
    import argparse
    import pointer

    shape, views = weights.load(str(run))["shape"], weights.parameters(str(run))
    a = argparse.Namespace(gate=[str(rows)], gate_screens=96)
    figures = {k: round(v, 3) for k, v in pointer.Pointing(a).gate(views, shape).items()}
    return figures["pointer-gate_hit"] >= 0.85, figures


def tuned(name, value):
    """A number that a file of the state may say otherwise, so that a run can be brought to its end early."""
    path = STATE / name
    return float(path.read_text()) if path.exists() else value


def stages(workers):
    eyes = {} if eyes_are_kept() else eye_stages(workers)
    return world_stages() | eyes | language_stages(workers) | pointer_stages(workers)


def note(text):
    line = time.strftime("%d %b %H:%M ") + text
    print(line, flush=True)
    with open(STATE / "stages.log", "a") as f:
        f.write(line + "\n")
    (STATE / "STAGES").write_text(line + "\n")


def run(command, name):
    with open(STATE / "logs" / f"{name}.log", "a") as log:
        child = subprocess.Popen(
            [sys.executable, *map(str, command)],
            cwd=HERE,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env={
                **os.environ,
                "POCKET_STATE": str(STATE),
                "WORLD_PAUSE": str(STATE / "PAUSE"),
                "GLIBC_TUNABLES": TUNABLES,
            },
        )
        asked = []

        def stop(*_):
            asked.append(1)
            child.terminate()

        for s in (signal.SIGTERM, signal.SIGINT):
            signal.signal(s, stop)
        code = child.wait()
    if asked:
        note(f"{name}: stopped")
        sys.exit(0)
    return code


def keep(name, run, figures, right):
    """Into the tree, unless what is there has more behind it."""
    path = kept_of(run)
    if not (run / "last.pt").exists():
        return
    gates = held(path) + ([name] if right and name not in held(path) else [])
    behind = weights.load(str(path))["core_minutes"] if path.exists() else -1
    if behind >= weights.load(str(run))["core_minutes"] and gates == held(path):
        return
    size = weights.keep(str(run), str(path), figures | {"held": gates})
    note(f"{name}: {path.name} kept in the tree, {size / 1e6:.1f} MB; to be committed")


def prepared():
    """What commands find by the environment: the fonts, and the pages as the oracles want them."""
    sys.path.insert(0, str(HERE.parent / "world"))
    import fonts

    root = STATE / "fontroot"
    have = all(os.path.exists(path) for family in fonts.FAMILIES for path in fonts.files(family))
    if not os.environ.get("POCKET_FONTS") and not have:
        if not root.exists():
            subprocess.run([str(HERE.parent / "world" / "fonts.sh"), str(root)], check=True)
        os.environ["POCKET_FONTS"] = str(root)
    code = "import fonts, sys; print(fonts.configure(sys.argv[1]))"  # anew: the folder above is read at import
    out = subprocess.run(
        [sys.executable, "-c", code, str(STATE / "fonts")], cwd=HERE.parent / "world", check=True, stdout=subprocess.PIPE
    )
    os.environ["FONTCONFIG_FILE"] = out.stdout.decode().strip()
    subprocess.run([str(HERE.parents[2] / "tests" / "scripts" / "miniwob.sh")], check=True)


def finish(name, command, folder, budget, more, most, gate):
    """Runs a stage until its gate holds; ends the program when it does not."""
    done = STATE / f"done-{name}"
    while not done.exists():
        extra = STATE / f"budget-{name}"
        minutes = float(extra.read_text()) if extra.exists() else budget
        note(f"{name}: runs" + (f", {minutes:.0f} core minutes in all" if minutes else ""))
        code = run(command + (["--core-minutes", minutes] if minutes else []), name)
        if code:
            note(f"{name}: failed with status {code}, see logs/{name}.log")
            sys.exit(1)
        right, figures = gate(folder)
        said = "holds" if right else "fails"
        note(f"{name}: gate {said} after {minutes:.0f} core minutes: {json.dumps(figures)}")
        if budget:
            keep(name, folder, figures, right)
        if right:
            done.write_text(json.dumps(figures) + "\n")
        elif minutes + more > most or not more:
            note(f"{name}: stops here; another design is wanted")
            sys.exit(2)
        else:
            extra.write_text(f"{minutes + more}\n")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--until", help="the last stage to run")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--keep", action="store_true", help="only put into the tree what the runs have made so far")
    a = p.parse_args()
    os.nice(19 - os.nice(0))
    (STATE / "logs").mkdir(parents=True, exist_ok=True)
    if a.keep:
        for name, (_, folder, budget, *_) in stages(a.workers).items():
            if budget:
                keep(name, folder, {}, (STATE / f"done-{name}").exists())
        return
    prepared()
    for name in stages(a.workers):
        command, folder, budget, more, most, gate = stages(a.workers)[name]  # anew: stages before it made files
        if budget and not (folder / "last.pt").exists() and name in held(kept_of(folder)):
            note(f"{name}: kept in the tree: {kept_of(folder).name}")
        else:
            finish(name, command, folder, budget, more, most, gate)
        if name == a.until:
            break
    note("all stages are done")


if __name__ == "__main__":
    main()
