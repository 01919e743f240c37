"""Fonts of the training screens, fixed by file.

A missing font is silently replaced by another, so the browser gets a fontconfig whose only directory has
links to the files below and whose aliases define Arial and the generic families. `check` asks the browser
for the font it drew.

TRAINED are the eight families of pages and windows. A font is looked up below POCKET_FONTS first, where
`fonts.sh DIR` unpacks missing ones.
"""

import os
import pathlib
import time

TRUETYPE, OPENTYPE = "/usr/share/fonts/truetype/", "/usr/share/fonts/opentype/"

# family: (folder, files); the first file is the regular face
FAMILIES = {
    "Liberation Sans": (TRUETYPE + "liberation", "LiberationSans-{Regular,Bold,Italic,BoldItalic}.ttf"),
    "DejaVu Sans": (TRUETYPE + "dejavu", "{DejaVuSans,DejaVuSans-Bold,DejaVuSans-Oblique}.ttf"),
    "Noto Sans": (TRUETYPE + "noto", "NotoSans-{Regular,Bold,Italic}.ttf"),
    "Open Sans": (TRUETYPE + "open-sans", "OpenSans-{Regular,Bold,Italic}.ttf"),
    "Roboto": (TRUETYPE + "roboto/unhinted/RobotoTTF", "Roboto-{Regular,Bold,Italic,Medium}.ttf"),
    "Cantarell": (OPENTYPE + "cantarell", "Cantarell-{Regular,Bold}.otf"),
    "Liberation Serif": (TRUETYPE + "liberation", "LiberationSerif-{Regular,Bold,Italic,BoldItalic}.ttf"),
    "Hack": (TRUETYPE + "hack", "Hack-{Regular,Bold}.ttf"),
    "Liberation Mono": (TRUETYPE + "liberation", "LiberationMono-{Regular,Bold}.ttf"),
    "DejaVu Sans Mono": (TRUETYPE + "dejavu", "{DejaVuSansMono,DejaVuSansMono-Bold}.ttf"),
}
TRAINED = tuple(f for f in FAMILIES if f not in ("Liberation Mono", "DejaVu Sans Mono"))
ALIASES = dict.fromkeys(("Arial", "Helvetica", "sans-serif", "cursive", "fantasy"), "Liberation Sans")
ALIASES |= dict.fromkeys(("Times New Roman", "Times", "serif", "Georgia"), "Liberation Serif")
ALIASES |= dict.fromkeys(("Verdana", "Tahoma"), "DejaVu Sans")
ALIASES |= dict.fromkeys(("Courier New", "Courier"), "Liberation Mono")
ALIASES |= {"monospace": "DejaVu Sans Mono"}  # required by tests/scripts/miniwob.sh


def files(family):
    folder, pattern = FAMILIES[family]
    root = os.environ.get("POCKET_FONTS", "")
    head, _, rest = pattern.partition("{")
    names, _, tail = rest.partition("}")
    paths = [os.path.join(folder, head + n + tail) for n in names.split(",")]
    return [root + path if root and os.path.exists(root + path) else path for path in paths]


def configure(folder):
    """Writes links and fonts.conf to a directory; returns the path for FONTCONFIG_FILE."""
    links = pathlib.Path(folder) / "files"
    links.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        for path in files(family):
            if not os.path.exists(path):
                raise RuntimeError(f"font file {path} is missing; run sources/fonts.sh")
            link = links / os.path.basename(path)
            if not link.is_symlink():
                link.symlink_to(path)
    rules = "".join(
        f'<match target="pattern"><test name="family" qual="any"><string>{a}</string></test>'
        f'<edit name="family" mode="assign" binding="strong"><string>{b}</string></edit></match>\n'
        for a, b in ALIASES.items()
    )
    conf = pathlib.Path(folder) / "fonts.conf"
    conf.write_text(
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig>\n'
        f"<dir>{links.resolve()}</dir>\n<cachedir>{pathlib.Path(folder).resolve()}/cache</cachedir>\n{rules}"
        '<match target="pattern"><edit name="antialias"><bool>true</bool></edit>'
        '<edit name="hinting"><bool>true</bool></edit>'
        '<edit name="hintstyle"><const>hintslight</const></edit>'
        '<edit name="rgba"><const>none</const></edit></match>\n</fontconfig>\n'
    )
    return str(conf)


def check(browser):
    """Draws a line in every family and alias; raises RuntimeError if the browser used another font."""
    wanted = {f: f for f in FAMILIES} | {a: b for a, b in ALIASES.items() if a not in ("cursive", "fantasy")}
    generic = ("serif", "sans-serif", "monospace")
    lines = "".join(f'<p style="font-family:{f if f in generic else repr(f)}">Sphinx</p>' for f in wanted)
    browser.call("DOM.enable")
    browser.call("CSS.enable")
    browser.script(
        f"document.body.insertAdjacentHTML('beforeend', {('<div id=probe>' + lines + '</div>')!r})"
    )
    root = browser.call("DOM.getDocument", depth=-1)["root"]["nodeId"]
    nodes = browser.call("DOM.querySelectorAll", nodeId=root, selector="#probe p")["nodeIds"]
    for (asked, family), node in zip(wanted.items(), nodes):
        for _ in range(50):  # a page has no layout immediately after loading
            drawn = browser.call("CSS.getPlatformFontsForNode", nodeId=node)["fonts"]
            if drawn:
                break
            time.sleep(0.1)
        if [f["familyName"] for f in drawn] != [family]:
            raise RuntimeError(f"{asked} is drawn as {[f['familyName'] for f in drawn]}, not as {family}")
    browser.script("document.getElementById('probe').remove()")
    browser.call("CSS.disable")
    browser.call("DOM.disable")
