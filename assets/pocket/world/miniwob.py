"""Pages of MiniWoB++ as training screens: begun anew in place, photographed many at a time.

Design.  A page is loaded once per frame and then begun anew with seed after seed (17 ms of processor time
a screen, ten times less than loading it).  Seeds below 900000 are for training, 900000 to 999999 for
gates; from 1000000 up nobody looks (miniwob.js refuses).  Pages come from the wheel of the package index,
checked by its hash, with miniwob.js as one more script and nothing else changed.
"""

import hashlib
import pathlib
import random
import subprocess
import sys
import zipfile

import fonts
from headless import HERE, state_dir

VERSION = "1.1.0"
HASH = "297006e84219d56ad037e843527ed773a4a82509dc43b6031ec4a3ad3e3e61d9"
TRAIN, GATE = (0, 899_999), (900_000, 999_999)
WIDTH, HEIGHT = 160, 210  # css pixels of a page
MOVING = ("chase-circle", "moving-items", "simon-says", "stock-market", "drag-cube")


def prepare():
    """The folder of the pages, made when it is not there."""
    at = state_dir() / "miniwob"
    html = at / "html"
    if not (at / VERSION).exists():
        at.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--disable-pip-version-check",
                "--no-deps",
                "--only-binary",
                ":all:",
                f"miniwob=={VERSION}",
                "-d",
                str(at),
            ],
            check=True,
        )
        wheel = next(at.glob("*.whl"))
        if hashlib.sha256(wheel.read_bytes()).hexdigest() != HASH:
            raise RuntimeError(f"{wheel} is not the file that is wanted")
        with zipfile.ZipFile(wheel) as z:
            z.extractall(at, [n for n in z.namelist() if n.startswith("miniwob/html/")])
        (at / "miniwob" / "html").rename(html)
        for page in (html / "miniwob").glob("*.html"):
            text = page.read_text(encoding="utf-8", errors="replace")
            page.write_text(
                text.replace("</head>", '<script src="../world.js"></script>\n</head>', 1), encoding="utf-8"
            )
        (at / VERSION).touch()
    (html / "world.js").write_text((HERE / "miniwob.js").read_text())
    return html / "miniwob"


def pages():
    """Names of the pages that stand still and show text."""
    names = sorted(p.stem for p in prepare().glob("*.html"))
    return [n for n in names if n not in MOVING]


class Pages:
    """Batches of screens on a Sheet: `draw` gives (page, seed, family, labels) for each frame."""

    def __init__(self, sheet, rng, seeds=TRAIN, families=fonts.TRAINED, own=0.4, mess=0.35, rounds=24):
        self.sheet, self.rng, self.seeds, self.families = sheet, rng, seeds, families
        self.own, self.mess, self.rounds = own, mess, rounds
        self.folder, self.names, self.loaded, self.left = prepare(), pages(), [], 0
        self.sheet.script(LOADER)

    def load(self):
        """Other pages into all frames."""
        n = len(self.sheet.ask("JSON.stringify(frames.map(f => 0))"))
        while len(self.loaded) < n:
            more = list(self.names)
            self.rng.shuffle(more)
            self.loaded += more
        now, self.loaded = self.loaded[:n], self.loaded[n:]
        self.now = now
        self.sheet.script(f"load({[f'{(self.folder / p).as_uri()}.html' for p in now]!r})")
        self.sheet.until(
            "frames.every(f => f.contentDocument && f.contentDocument.readyState === 'complete' "
            "&& f.contentWindow.begin)"
        )
        self.left = self.rounds

    def draw(self, plan=None):
        """`plan`: (seed, family) for each frame; else by chance."""
        if not self.left:
            self.load()
        self.left -= 1
        if plan is None:
            plan = [
                (
                    self.rng.randint(*self.seeds),
                    "" if self.rng.random() < self.own else self.rng.choice(self.families),
                )
                for _ in self.now
            ]
        args = [[s, f, self.mess if self.rng.random() < 0.5 else 0] for s, f in plan]
        told = self.sheet.ask(f"begin({args!r})")
        return [(page, seed, family, found) for page, (seed, family), found in zip(self.now, plan, told)]


LOADER = """
function load(urls) {
  urls.forEach((u, k) => {
    frames[k].contentWindow.begin = undefined;          // the old page is still there for a moment
    frames[k].src = u;
  });
}
async function begin(args) {
  const said = args.map(([seed, family, mess], k) => {
    try { return frames[k].contentWindow.begin(seed, family, mess); } catch (e) { return "ERROR " + e; }
  });
  await settle();
  return JSON.stringify(frames.slice(0, args.length).map((f, k) => ({ said: said[k],
  ...labels(f.contentWindow) })));
}
"""


if __name__ == "__main__":
    from PIL import Image
    from headless import Sheet

    sheet = Sheet(4, 4)
    sheet.lay(368, 480, 2.2857)
    p = Pages(sheet, random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1), rounds=2)
    for batch in range(2):
        found = p.draw()
        tiles = list(sheet.tiles())
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    import check

    check.sheet(tiles, [f[3] for f in found], 4).save(out / "miniwob.png")
    for page, seed, family, f in found:
        print(page, seed, family, len(f["letters"]), len(f["elements"]), f["said"][:70])
    sheet.close()
