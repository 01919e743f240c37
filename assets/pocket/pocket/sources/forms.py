"""Synthetic web pages from a widget kit, as HTML text.

A page has a theme (six, each light or dark), a font, and a column of random blocks: paragraphs, fields,
ticks, options, lists, tables, tabs, cards, messages, menus, pictures, code. Words come from words.Lexicon,
mixed with random letters, numbers, prices, dates and marks, so that reading does not depend on a
vocabulary. Boxes come from the browser.
"""

import html

from . import fonts
from .words import CLOSING, DISMISS, FIRST, LAST, MARKS, PROSE

# Colours of the page / of its text
LIGHT = """#fff/#222 #f5f5f5/#111 #fafafa/#333 #eee/#000 #fffbe8/#3a3020 #eef3fa/#1b2a3a #d9d9d9/#000 #fff/#555
#f6f5f4/#2e3436""".split()
DARK = "#1e1e1e/#ddd #2b2b2b/#eee #101820/#cfd8dc #242038/#e8e6f0 #353535/#fff #000/#bbb".split()
ACCENT = """#0078d4 #3584e4 #198754 #c01c28 #7c3aed #e66100 #17a2b8 #555 #b5835a #d63384 #0b7285""".split()
AROUND = "\"\" () [] '' <> {} ** __ /: $; @, #. -! &? ~| ^\\ `= %+".split()  # marks around a word
# name: (radius, border, padding of a button, native controls, upper-case buttons, shadow)
THEMES = {
    "plain": (0, 1, "2px 8px", True, False, False),
    "boot": (4, 1, "6px 12px", False, False, False),
    "flat": (2, 0, "5px 14px", False, True, False),
    "round": (14, 1, "5px 16px", False, False, True),
    "desk": (5, 1, "4px 20px", False, False, False),
    "retro": (0, 2, "3px 10px", False, False, False),
}


class Page:
    def __init__(self, rng, lex, family, dark, theme, room):
        self.rng, self.lex, self.family, self.theme, self.room = rng, lex, family, theme, room
        self.back, self.ink = rng.choice(DARK if dark else LIGHT).split("/")
        self.accent, self.dark = rng.choice(ACCENT), dark
        self.size = rng.choices((9, 10, 11, 12, 13, 14, 15, 16, 18), (2, 5, 7, 9, 10, 8, 5, 4, 2))[0]
        self.names, self.named = 0, []  # number of radio groups; names of the page

    def html(self):
        """Returns [html of the body, style of the root, css]."""
        return [self.body(), f"background:{self.back};color:{self.ink}", self.css()]

    # ---- words

    def number(self):
        r = self.rng
        return r.choice(
            (
                lambda: str(r.randint(0, 9)),
                lambda: str(r.randint(0, 2100)),
                lambda: f"{r.randint(0, 999)}.{r.randint(0, 99):02}",
                lambda: f"${r.randint(1, 999)}",
                lambda: f"{r.randint(1, 12):02}/{r.randint(1, 28):02}/{r.randint(1990, 2030)}",
                lambda: f"{r.randint(0, 23)}:{r.randint(0, 59):02}",
                lambda: f"{r.randint(0, 100)}%",
                lambda: f"#{r.randint(1, 99)}",
                lambda: f"({r.randint(100, 999)}) {r.randint(100, 999)}-{r.randint(1000, 9999)}",
                lambda: f"-{r.randint(1, 99)}",
                lambda: f"{r.randint(1, 9)} {r.choice('+-*/=<>')} {r.randint(1, 99)} =",
            )
        )()

    def jumble(self):
        letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        return "".join(self.rng.choice(letters) for _ in range(self.rng.randint(2, 9)))

    def marked(self):
        r, w = self.rng, self.lex.word()
        a, b = r.choice(AROUND)
        return a + w + b if r.random() < 0.7 else w + r.choice(MARKS + '<>|~^`"\\') + self.lex.word()

    def token(self):
        k = self.rng.random()
        if k < 0.55:
            return self.lex.word()
        if k < 0.68:
            return self.lex.invented()
        if k < 0.80:
            return self.jumble()
        if k < 0.92:
            return self.number()
        if k < 0.95:
            name = f"{self.lex.invented()}@{self.lex.invented()}"
            return f"{name}.{self.rng.choice(('com', 'org', 'io', 'net'))}"
        return self.marked()

    def text(self, low, high):
        """Returns prose words and random tokens, with the marks of a sentence."""
        r, out = self.rng, []
        for k in range(r.randint(low, high)):
            w = r.choice(PROSE) if r.random() < 0.35 and not self.lex.evaluation else self.token()
            w = w.capitalize() if k == 0 else w
            out.append(w + r.choices(("", ",", ".", ":", ";"), (80, 8, 7, 3, 2))[0])
        return html.escape(" ".join(out))

    def name(self):
        return html.escape(self.lex.beside(self.named, self.any_name))

    def any_name(self):
        r = self.rng
        if r.random() < 0.15:
            if self.lex.evaluation:
                return self.lex.label(14)
            return self.lex.until(lambda: r.choice(FIRST) + " " + r.choice(LAST))
        return self.lex.label(16) if r.random() < 0.75 else self.token()

    # ---- widgets

    def flags(self):
        return (" disabled" if self.rng.random() < 0.08 else "") + (
            " data-focus" if self.rng.random() < 0.04 else ""
        )

    def button(self):
        r = self.rng
        text = r.choice(CLOSING + DISMISS) if r.random() < 0.25 and not self.lex.evaluation else self.name()
        kind = r.choice(("", " class=main", " class=quiet", ""))
        if r.random() < 0.15:
            return f'<input type=button{kind} value="{text}"{self.flags()}>'
        return f"<button{kind}{self.flags()}>{text}</button>"

    def field(self):
        r, kind = self.rng, self.rng.random()
        value = " ".join(self.token() for _ in range(r.randint(1, 3))) if r.random() < 0.6 else ""
        v, w = html.escape(value, quote=True), r.choice((60, 90, 120, 150, 200))
        if kind < 0.12:
            return f"<textarea style='width:{w}px;height:{r.choice((30, 44, 60))}px'{self.flags()}>{self.text(2, 12)}</textarea>"
        if kind < 0.2:
            return f"<input type=password value='{self.jumble() if value else ''}' style='width:{w}px'>"
        if kind < 0.27:
            return f"<input type=number value='{r.randint(0, 999)}' style='width:60px'>"
        hint = f' placeholder="{self.name()}"' if r.random() < 0.4 else ""
        return f'<input type=text value="{v}"{hint} style="width:{w}px;text-align:{r.choices(("left", "center", "right"), (9, 1, 1))[0]}"{self.flags()}>'

    def select(self):
        names = [self.name() for _ in range(self.rng.randint(2, 6))]
        on = self.rng.randrange(len(names))
        options = "".join(
            f"<option{' selected' if k == on else ''}>{n}</option>" for k, n in enumerate(names)
        )
        size = f" size={self.rng.randint(2, 5)}" if self.rng.random() < 0.3 else ""
        return f"<select{size}{self.flags()}>{options}</select>"

    def tick(self, kind):
        self.names += 1
        on = " checked" if self.rng.random() < 0.4 else ""
        return (
            f"<label class=tick><input type={kind} name=g{self.names if kind == 'checkbox' else 'r'}{on}"
            f"{' data-mixed' if kind == 'checkbox' and self.rng.random() < 0.04 else ''}{' disabled' if self.rng.random() < 0.06 else ''}> {self.name()}</label>"
        )

    # ---- blocks

    def paragraph(self):
        r = self.rng
        words = self.text(6, 60).split(" ")
        for _ in range(r.randint(0, 3)):
            k = r.randrange(len(words))
            tag = r.choice(("b", "i", "a href=#", "u", "code", "span class=accent"))
            words[k] = f"<{tag}>{words[k]}</{tag.split()[0]}>"
        style = (
            f"font-size:{r.choice((0.85, 1, 1, 1, 1.2, 1.5))}em;text-align:{r.choices(('left', 'justify', 'center', 'right'), (8, 2, 1, 1))[0]};"
            f"line-height:{r.choice((1.1, 1.2, 1.4, 1.6))}"
        )
        return f"<p style='{style}'>{' '.join(words)}</p>"

    def heading(self):
        return f"<h{self.rng.randint(1, 4)}>{self.text(1, 4)}</h{1}>"

    def form(self):
        beside = self.rng.random() < 0.6
        rows = []
        for _ in range(self.rng.randint(1, 5)):
            label = self.name() + self.rng.choice(("", ":", " *", ""))
            what = self.field() if self.rng.random() < 0.75 else self.select()
            rows.append(
                f"<div class=row><label class={'beside' if beside else 'above'}>{label}</label>{what}</div>"
            )
        return "".join(rows)

    def ticks(self):
        kind, tag = self.rng.choice(("checkbox", "radio")), self.rng.choice(("div", "span"))
        return "".join(f"<{tag}>{self.tick(kind)}</{tag}> " for _ in range(self.rng.randint(2, 7)))

    def buttons(self):
        return "<div class=row>" + " ".join(self.button() for _ in range(self.rng.randint(1, 4))) + "</div>"

    def table(self):
        r = self.rng
        cols, rows = r.randint(2, 5), r.randint(2, 7)

        def cell():
            return html.escape(self.number() if r.random() < 0.3 else self.token())

        def line(tag, text):
            return "<tr>" + "".join(f"<{tag}>{text()}</{tag}>" for _ in range(cols)) + "</tr>"

        head = line("th", self.name) if r.random() < 0.7 else ""
        body = "".join(line("td", cell) for _ in range(rows))
        return f"<table class={r.choice(('grid', 'lines', 'zebra', 'bare'))}>{head}{body}</table>"

    def items(self):
        r = self.rng
        tag = r.choice(("ul", "ol", "div"))
        rows = []
        for _ in range(r.randint(2, 8)):
            picked = r.random() < 0.15
            inner = f"<a href=#>{self.name()}</a>" if r.random() < 0.3 else f"{self.name()}"
            extra = f"<span class=right>{html.escape(self.number())}</span>" if r.random() < 0.3 else ""
            rows.append(
                f"<{'div' if tag == 'div' else 'li'} class='item{' on' if picked else ''}' data-kind=item"
                f"{' aria-selected=true' if picked else ''}>{inner}{extra}</{'div' if tag == 'div' else 'li'}>"
            )
        scroll = (
            f" style='height:{r.randint(40, 90)}px;overflow-y:auto' data-scroll={r.random():.2f}"
            if r.random() < 0.25
            else ""
        )
        return f"<{tag} class='items {r.choice(('boxed', ''))}'{scroll}>{''.join(rows)}</{tag}>"

    def tabs(self):
        n, r = self.rng.randint(2, 5), self.rng
        on = r.randrange(n)
        tabs = "".join(
            f"<span data-kind=tab class='tab{' on' if k == on else ''}'"
            f"{' aria-selected=true' if k == on else ''}>{self.name()}</span>"
            for k in range(n)
        )
        return f"<div class=tabs>{tabs}</div>{self.paragraph()}"

    def menu(self):
        names = [self.name() for _ in range(self.rng.randint(2, 7))]
        entries = "".join(f"<span data-kind=item class=entry>{n}</span>" for n in names)
        return f"<div class=bar>{entries}</div>"

    def card(self):
        return f"<div class=card><b>{self.name()}</b>{self.inside(2)}</div>"

    def message(self):
        r = self.rng
        back = r.choice(ACCENT + ["#ff0", "#ffd", "#cfc", "#fdd", "#456", "#888", "#ccc"])
        return f"<div class=message style='background:{back};color:{r.choice(('#fff', '#000'))}'>{self.text(2, 14)}</div>"

    def picture(self):
        r = self.rng
        w, h = r.randint(20, 200), r.randint(12, 90)
        kind = r.random()
        if kind < 0.5:
            return f"<canvas width={w} height={h} data-seed={r.randrange(1 << 30)}></canvas>"
        if kind < 0.8:
            return f"<div style='width:{w}px;height:{h}px;background:{r.choice(('#999', '#ccc', '#666', self.accent))};border:{r.randint(0, 3)}px {r.choice(('solid', 'dashed', 'double', 'inset'))} #777'></div>"
        shapes = "".join(
            r.choice(
                (
                    f"<circle cx={r.randint(0, w)} cy={r.randint(0, h)} r={r.randint(3, 15)} fill='{r.choice(ACCENT)}'/>",
                    f"<rect x={r.randint(0, w)} y={r.randint(0, h)} width={r.randint(4, 30)} height={r.randint(4, 30)} fill='{r.choice(ACCENT)}'/>",
                    f"<text x={r.randint(0, w)} y={r.randint(8, h)} fill='{r.choice(ACCENT)}' font-size='{r.randint(10, 24)}'>{html.escape(self.jumble()[:3])}</text>",
                )
            )
            for _ in range(r.randint(2, 9))
        )
        return f"<svg width={w} height={h}>{shapes}</svg>"

    def code(self):
        lines = "\n".join(self.text(1, 6) for _ in range(self.rng.randint(1, 6)))
        return f"<pre>{lines}</pre>"

    def slider(self):
        return f"<div class=row>{self.name()} <input type=range value={self.rng.randint(0, 100)}> {self.rng.randint(0, 100)}</div>"

    BLOCKS = dict(
        paragraph=30, heading=5, form=16, ticks=10, buttons=9, table=8, items=8, tabs=4, menu=4, card=4
    )
    BLOCKS |= dict(message=6, picture=7, code=3, slider=2)

    def inside(self, most):
        kinds = [k for k in self.BLOCKS if k not in ("card", "tabs", "menu")]
        return "".join(
            getattr(self, self.rng.choices(kinds, [self.BLOCKS[k] for k in kinds])[0])()
            for _ in range(self.rng.randint(1, most))
        )

    def body(self):
        out = []
        for _ in range(self.rng.randint(8, 14)):  # the frame cuts the rest
            out.append(getattr(self, self.rng.choices(list(self.BLOCKS), list(self.BLOCKS.values()))[0])())
        if self.rng.random() < 0.12:  # a dialog over the page
            x, y = self.rng.randint(2, 30), self.rng.randint(5, 40)
            out.append(
                f"<div class=dialog style='left:{x}%;top:{y}%'><b>{self.text(1, 4)}</b>{self.paragraph()}{self.buttons()}</div>"
            )
        if self.room <= 300 or self.rng.choice((1, 1, 1, 2)) == 1:
            return "".join(out)
        blocks = "".join(f"<div style=overflow:hidden>{o}</div>" for o in out)
        return f"<div style='columns:2;overflow:hidden'>{blocks}</div>"

    def css(self):
        radius, border, padding, native, upper, shadow = THEMES[self.theme]
        r = self.rng
        line = r.choice(("#555", "#777", "#999") if self.dark else ("#777", "#999", "#bbb", self.accent))
        field = (r.choice(("#111", "#333", "#3a3a3a")), "#eee") if self.dark else ("#fff", "#111")
        face = r.choice(("#333", "#444", "#3b4252") if self.dark else ("#e4e4e4", "#f0f0f0", "#ddd", "#fff"))
        css = f"""* {{ box-sizing: border-box; }} body {{ margin: 0; padding: {r.randint(1, 12)}px; }}
        html {{ overflow: hidden; color-scheme: {"dark" if self.dark else "light"}; }}
        body, button, input, select, textarea, table {{ font-family: '{self.family}'; font-size: {self.size}px; }}
        pre, code {{ font-family: 'Hack'; }} pre {{ margin: 3px 0; }}
        p {{ margin: {r.randint(2, 8)}px 0; }} h1, h2, h3, h4 {{ margin: 4px 0; }} h1 {{ font-size: {r.choice((1.4, 1.8, 2.2))}em; }}
        .row {{ margin: {r.randint(2, 7)}px 0; }} label.beside {{ display: inline-block; min-width: {r.choice((50, 70, 100))}px; margin-right: 6px; }}
        label.above {{ display: block; }} .tick {{ margin-right: 8px; }} .accent {{ color: {self.accent}; }}
        a {{ color: {r.choice(("#06c", self.accent, "#00f")) if not self.dark else "#8ab4f8"}; }} .right {{ float: right; }}
        table {{ border-collapse: collapse; margin: 4px 0; }} td, th, .item {{ overflow-wrap: anywhere; }} td, th {{ padding: {r.randint(0, 5)}px {r.randint(2, 8)}px; text-align: left; }}
        .grid td, .grid th {{ border: 1px solid {line}; }} .lines td {{ border-bottom: 1px solid {line}; }}
        .zebra tr:nth-child(odd) td {{ background: rgba(128, 128, 128, .18); }} th {{ background: rgba(128, 128, 128, {r.choice((0, 0.2, 0.35))}); }}
        .items {{ margin: 4px 0; list-style: none; padding-left: 2px; }} .boxed {{ border: 1px solid {line}; border-radius: {radius}px; padding-left: 4px; }} .item {{ padding: {r.randint(0, 5)}px; }}
        .item.on {{ background: {self.accent}; color: #fff; }} .tabs {{ border-bottom: 1px solid {line}; margin: 4px 0; }}
        .tab {{ display: inline-block; padding: {r.randint(2, 6)}px {r.randint(4, 12)}px; }}
        .tab.on {{ border: 1px solid {line}; border-bottom: 2px solid {self.accent}; }}
        .bar {{ background: {r.choice((face, self.accent))}; color: {"#fff" if r.random() < 0.4 else self.ink}; padding: 3px; }} .entry {{ padding: 2px 7px; }}
        .card, .dialog {{ border: 1px solid {line}; border-radius: {radius}px; padding: 6px; margin: 5px 0; background: {self.back}; }}
        .dialog {{ position: fixed; width: 65%; box-shadow: 0 3px 12px rgba(0,0,0,.5); z-index: 9; }} .message {{ padding: {r.randint(2, 9)}px; margin: 4px 0; }}
        """
        if not native:
            css += f"""button, input[type=button] {{ padding: {padding}; border: {border}px {"outset" if self.theme == "retro" else "solid"} {line};
            border-radius: {radius}px; background: {face}; color: {"#111" if not self.dark else "#eee"}; {"text-transform: uppercase; letter-spacing: .5px;" if upper else ""}
            {"box-shadow: 0 1px 3px rgba(0,0,0,.4);" if shadow else ""} }}
            .main {{ background: {self.accent} !important; color: #fff !important; }} .quiet {{ background: transparent !important; color: {self.accent} !important; }}
            button:disabled {{ opacity: .55; }}
            input[type=text], input[type=password], input[type=number], textarea {{ border: {max(1, border)}px solid {line};
            border-radius: {radius // 2}px; padding: {r.randint(1, 6)}px; background: {field[0]}; color: {field[1]}; }}"""
        return css


def page(rng, lex, width):
    """Returns Page.html() of a page of about `width` CSS pixels."""
    dark = rng.random() < 0.25
    return Page(rng, lex, rng.choice(fonts.TRAINED), dark, rng.choice(list(THEMES)), width).html()
