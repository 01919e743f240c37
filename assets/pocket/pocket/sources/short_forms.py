"""Pages with one form only, in many layouts.

Pages of forms.py are crowded; tasks are given on short ones. Layouts differ in where an element is relative
to its label (below, beside, at the other end of its row; ticks before or after it) and in style (box,
underline, tint, pill). Some fields are filled and boxes ticked, as halfway through a task. Words and
colours are those of forms.py.
"""

import html

from . import fonts, forms

ROWS = {  # css of a row and of its label
    "between": ("display:flex;justify-content:space-between;align-items:center;", ""),
    "grid": ("display:grid;grid-template-columns:{c}% 1fr;align-items:{a};", ""),
    "right": (
        "display:grid;grid-template-columns:{c}% 1fr;align-items:{a};column-gap:8px;",
        "text-align:right;",
    ),
    "above": ("", "display:block;margin-bottom:{m}px;"),
    "beside": ("", "margin-right:{n}px;"),
}
FIELDS = {
    "box": "border:{b}px solid {line};background:{back};",
    "line": "border:0;border-bottom:{b}px {style} {line};background:transparent;color:inherit;",
    "tint": "border:0;background:rgba(128,128,128,{t});color:inherit;",
    "pill": "border:{b}px solid {line};border-radius:99px;background:{back};",
    "sunken": "border:{b}px inset {line};background:{back};",
    "soft": "border:1px solid rgba(128,128,128,.35);border-radius:6px;background:{back};box-shadow:0 1px 2px rgba(0,0,0,.2);",
}
GROUPS = {
    "none": "",
    "box": "border:1px solid {line};padding:{p}px;",
    "bar": "border-left:{b}px {style} {line};padding-left:{p}px;",
    "tint": "background:rgba(128,128,128,.13);border-radius:{p}px;padding:{p}px;",
}


class Short(forms.Page):
    def __init__(self, *a):
        super().__init__(*a)
        r = self.rng
        self.size = r.choices((11, 12, 13, 14, 15, 16, 18), (3, 6, 8, 10, 8, 8, 3))[0]
        self.behind = r.random() < 0.12  # ticks follow their labels, at the end of the row
        self.across = r.random() < 0.2  # several ticks in a row
        self.close = r.choice(("", " ", "&nbsp; "))

    def row(self, inner):
        return f"<div class=row>{inner}</div>"

    def labelled(self, name, what):
        return self.row(f"<label class=name>{name}{self.mark}</label>{what}")

    def fields(self):
        self.mark = self.rng.choice(("", "", ":", " *"))
        return "".join(
            self.labelled(self.name(), self.input()) for _ in range(self.rng.choices((1, 2, 3), (4, 4, 2))[0])
        )

    def input(self):
        r = self.rng
        words = [self.token() for _ in range(r.randint(1, 2))] if r.random() < 0.4 else []
        value = html.escape(" ".join(words), quote=True)
        if r.random() < 0.15:
            return f"<textarea{self.flags()}>{value}</textarea>"
        hint = f' placeholder="{self.name()}"' if r.random() < 0.1 else ""
        return f'<input type=text value="{value}"{hint}{self.flags()}>'

    def choices(self, kind):
        n, tag = self.rng.randint(2, 4), "span" if self.across else "div"
        on = self.rng.randrange(n) if kind == "radio" and self.rng.random() < 0.5 else None
        rows = []
        for k in range(n):
            self.names += 1
            ticked = k == on if kind == "radio" else self.rng.random() < 0.4
            box = f"<input type={kind} name={'g' + str(self.names) if kind == 'checkbox' else 'r'}{' checked' if ticked else ''}>"
            name = f"<span>{self.name()}</span>"
            rows.append(
                f"<{tag} class=choice><label>{name + box if self.behind else box + self.close + name}</label></{tag}>"
            )
        legend = f"<div class=legend>{self.name()}</div>" if self.rng.random() < 0.2 else ""
        return f"<div class=group>{legend}{''.join(rows)}</div>"

    def body(self):
        r, parts = self.rng, []
        if r.random() < 0.8:
            parts.append(f"<h2>{self.text(1, 3)}</h2>")
        if r.random() < 0.4:
            parts.append(f"<p>{self.text(2, 7)}</p>")
        kinds = r.choices(("fields", "checkbox", "radio"), (5, 3, 2), k=r.choices((1, 2, 3), (3, 5, 2))[0])
        for kind in dict.fromkeys(kinds):
            parts.append(self.fields() if kind == "fields" else self.choices(kind))
        buttons = [self.button() for _ in range(r.choices((1, 2, 3), (5, 4, 1))[0])]
        parts.append(f"<div class=buttons>{' '.join(buttons)}</div>")
        return f"<div class=form>{''.join(parts)}</div>"

    def css(self):
        r = self.rng
        line = r.choice(
            ("#555", "#777", "#aaa") if self.dark else ("#777", "#999", "#bbb", "#333", self.accent)
        )
        dark = self.dark or r.random() < 0.12
        back = r.choice(
            ("#111", "#222", "#3a3a3a", "#0d1f17") if dark else ("#fff", "#fff", "#fdfdfd", "#fffef0")
        )
        ink = r.choice(("#eee", "#8f8", "#fc8")) if dark else "#111"
        fill = dict(b=r.randint(1, 3), line=line, back=back, t=r.choice((0.12, 0.2, 0.3)))
        fill |= dict(style=r.choice(("solid", "dotted", "dashed", "double")), c=r.randint(20, 60))
        fill |= dict(a=r.choice(("center", "start", "baseline")), m=r.randint(0, 5))
        fill |= dict(n=r.choice((4, 8, 16, 40)), p=r.randint(3, 14))
        row, name = (s.format(**fill) for s in ROWS[r.choice(list(ROWS))])
        field, group = (t[r.choice(list(t))].format(**fill) for t in (FIELDS, GROUPS))
        wide = r.choice(("120px", "160px", "220px", "50%", "70%"))
        behind = "display:flex;justify-content:space-between;" if self.behind else ""
        styles = "text-transform:uppercase;", "font-variant:small-caps;", "font-weight:bold;"
        style = r.choice(("", "", *styles))
        width = r.choice(("auto", "auto", "60%", "75%", "240px"))
        faces = ("#333", "#444") if self.dark else ("#e4e4e4", "#f0f0f0", "#ddd")
        face = r.choice((*faces, self.accent))
        fixed = r.choice(("", "", f"background:linear-gradient({face},#888);"))
        return f"""* {{ box-sizing: border-box; }} body {{ margin: 0; padding: {r.randint(2, 24)}px; }}
        html {{ overflow: hidden; color-scheme: {"dark" if self.dark else "light"}; accent-color: {self.accent}; }}
        body, button, input, select, textarea {{ font-family: '{self.family}'; font-size: {self.size}px; }}
        h2 {{ margin: 2px 0 6px; font-size: {r.choice((1.1, 1.3, 1.6))}em; }} p {{ margin: 2px 0 6px; }}
        .form {{ width: {width}; {r.choice(("", "", "margin: 0 auto;"))} {r.choice(("", "", f"border: 1px solid {line}; padding: 10px;"))} }}
        .row {{ margin: {r.randint(2, 10)}px 0; {row} {r.choice(("", "", "", "background: rgba(128,128,128,.1); border-radius: 9px; padding: 6px 10px;"))} }}
        .name {{ {name} {r.choice(("", "", "font-style: italic;", "font-weight: bold;"))} }}
        input[type=text], textarea {{ width: {wide}; max-width: 100%; padding: {r.randint(1, 8)}px {r.randint(2, 12)}px; color: {ink}; {field} }}
        textarea {{ height: {r.choice((40, 56, 72))}px; }} .group {{ margin: {r.randint(2, 10)}px 0; {group} }}
        .choice {{ margin: {r.randint(0, 6)}px {r.randint(0, 14)}px {r.randint(0, 6)}px 0; }} .choice label {{ {behind} }} .legend {{ font-weight: bold; }}
        .choice input {{ margin: 0 {r.choice((0, 1, 3, 6, 10))}px 0 {r.choice((0, 0, 4))}px; width: {r.choice((11, 13, 13, 16, 20))}px; height: {r.choice((11, 13, 13, 16, 20))}px; vertical-align: middle; }}
        .buttons {{ margin: {r.randint(4, 14)}px 0; {r.choice(("", "", "", "text-align: right;", "text-align: center;"))} }}
        button, input[type=button] {{ padding: {r.randint(1, 9)}px {r.randint(6, 24)}px; border: {r.randint(0, 2)}px {r.choice(("solid", "outset"))} {line};
        border-radius: {r.choice((0, 3, 6, 20))}px; background: {face}; color: {"#fff" if face == self.accent or self.dark else "#111"}; {style} {fixed}
        {r.choice(("", "", "", "", "display: block; width: 100%; margin: 4px 0;"))} }}"""


def page(rng, lex, width):
    """Returns Page.html() of one page."""
    family = rng.choice(fonts.TRAINED)
    return Short(rng, lex, family, rng.random() < 0.2, rng.choice(list(forms.THEMES)), width).html()
