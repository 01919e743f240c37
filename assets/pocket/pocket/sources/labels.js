/* labels(window): boxes of all visible letters and elements of a page.
 *
 * Letters come from Range.getClientRects, one by one; text in form fields, which no range reaches, is measured with a canvas
 * in the field's font. A letter is visible if its centre is inside all boxes that clip it and a hit test there finds its
 * element. A hit test accepts ancestors, so ink.py checks the picture as well.
 *
 * Result, in device pixels of the frame:
 *   letters   [[left, top, right, bottom, code, line, word], ...]   line and word number within the page
 *   elements  [[left, top, right, bottom, kind, state, name], ...]  state is a sum of the STATES below
 */
const STATES = {
  on: 1,
  off: 2,
  disabled: 4,
  focused: 8,
  selected: 16,
  open: 32,
  mixed: 64
};

function labels(win) {
  const doc = win.document, scale = win.devicePixelRatio, W = win.innerWidth, H = win.innerHeight;
  const out = {letters: [], elements: []};
  const q = v => Math.round(v * scale * 4) / 4;
  const box = r => [q(r.left), q(r.top), q(r.right), q(r.bottom)];
  const cut = (a, b) => ({
    left: Math.max(a.left, b.left),
    top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right),
    bottom: Math.min(a.bottom, b.bottom)
  });
  const clips = new Map(), whole = {left: 0, top: 0, right: W, bottom: H};
  let line = 0, word = 0;

  /* Returns the visible part of the window for the content of `el`. */
  function clip(el) {
    if (!el || el === doc.documentElement || el === doc.body) return whole;
    if (clips.has(el)) return clips.get(el);
    const style = win.getComputedStyle(el);
    let up = el.parentElement, c;
    if (style.position === 'fixed') up = null;
    if (style.position === 'absolute')
      while (up && up !== doc.body && win.getComputedStyle(up).position === 'static') up = up.parentElement;
    c = clip(up);
    if (style.overflowX !== 'visible' || style.overflowY !== 'visible') {
      const r = el.getBoundingClientRect();
      c = cut(c, {
        left: r.left + el.clientLeft,
        top: r.top + el.clientTop,
        right: r.left + el.clientLeft + (el.clientWidth || r.width),
        bottom: r.top + el.clientTop + (el.clientHeight || r.height)
      });
    }
    clips.set(el, c);
    return c;
  }

  function seen(el, r, c) {
    const x = (r.left + r.right) / 2, y = (r.top + r.bottom) / 2;
    if (!(r.right - r.left > 0.2) || x < c.left || x > c.right || y < c.top + 1 || y > c.bottom - 1)
      return false;
    const hit = doc.elementFromPoint(x, y);
    return !!hit && (hit === el || el.contains(hit) || hit.contains(el));
  }

  const shown = el => el.checkVisibility({opacityProperty: true, visibilityProperty: true});

  function put(el, r, ch, c) {
    if (seen(el, r, c)) out.letters.push([...box(r), ch.codePointAt(0), line, word]);
  }

  function transform(text, how) {
    if (how === 'uppercase') return text.toUpperCase();
    if (how === 'lowercase') return text.toLowerCase();
    if (how === 'capitalize') return text.replace(/(^|\s)\S/g, s => s.toUpperCase());
    return text;
  }

  /* Returns the boxes of the characters of a text node. */
  function boxesOf(node) {
    const range = doc.createRange();
    return Array.from({length: node.length}, (_, i) => {
      range.setStart(node, i);
      range.setEnd(node, i + 1);
      return range.getClientRects()[0];
    });
  }

  /* Adds the characters of a text by their boxes. */
  function characters(el, text, boxes, c) {
    let last = null, first = true;
    for (let i = 0; i < text.length; i++) {
      const r = boxes[i];
      if (/\s/.test(text[i])) first = true;
      if (/\s/.test(text[i]) || !r || r.width === 0) continue;
      if (last === null || r.top > last.bottom - 2 || r.bottom < last.top + 2 || r.left < last.left - 1) {
        line++;
        first = true;
      }
      if (first) word++;
      first = false;
      last = r;
      put(el, r, text[i], c);
    }
  }

  function textNode(node) {
    const el = node.parentElement, text = node.data;
    if (!el || !/\S/.test(text) || /^(SCRIPT|STYLE|TEXTAREA|TITLE|NOSCRIPT)$/.test(el.tagName)) return;
    if (el.tagName === 'OPTION' && !el.closest('select[size],select[multiple]')) return;
    if (!shown(el)) return;
    const style = win.getComputedStyle(el);
    if (parseFloat(style.fontSize) * scale < 5) return;
    const spoken = transform(text, style.textTransform);
    characters(el, spoken.length === text.length ? spoken : text, boxesOf(node), clip(el));
  }

  const pen = document.createElement('canvas').getContext('2d');

  /* Adds one line of text in a field: from `x`, in the middle of `top`..`bottom`, clipped to `c`. */
  function written(el, text, style, x, top, bottom, c) {
    pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    pen.letterSpacing = style.letterSpacing === 'normal' ? '0px' : style.letterSpacing;
    const size = parseFloat(style.fontSize), middle = (top + bottom) / 2;
    line++;
    let first = true, at = 0;
    for (let i = 0; i < text.length; i++) {
      const next = pen.measureText(text.slice(0, i + 1)).width;
      if (/\s/.test(text[i]))
        first = true;
      else {
        if (first) word++;
        first = false;
        put(el, {left: x + at, right: x + next, top: middle - 0.58 * size, bottom: middle + 0.58 * size},
            text[i], c);
      }
      at = next;
    }
    return at;
  }

  const width = (text, style) => {
    pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    return pen.measureText(text).width;
  };

  function inner(el, style) {
    const r = el.getBoundingClientRect(), n = s => parseFloat(style[s]) || 0;
    return {
      left: r.left + n('borderLeftWidth') + n('paddingLeft'),
      right: r.right - n('borderRightWidth') - n('paddingRight'),
      top: r.top + n('borderTopWidth') + n('paddingTop'),
      bottom: r.bottom - n('borderBottomWidth') - n('paddingBottom')
    };
  }

  function field(el) {
    if (!shown(el)) return;
    const style = win.getComputedStyle(el), type = el.tagName === 'SELECT' ? 'select' : el.type,
          r = inner(el, style);
    const c = cut(clip(el), r), outer = clip(el.parentElement);
    // the text of dates and files cannot be located
    if (/^(checkbox|radio|range|color|hidden|image|date|time|datetime-local|month|week|file)$/.test(type)) return;
    if (/^(button|submit|reset)$/.test(type)) {
      const text = el.value || (type === 'submit' ? 'Submit' : type === 'reset' ? 'Reset' : '');
      written(
          el, text, style, (r.left + r.right - width(text, style)) / 2, r.top, r.bottom,
          cut(outer, el.getBoundingClientRect()));
      return;
    }
    if (type === 'select') {
      if (el.size > 1 || el.multiple) return;
      const text = el.selectedOptions.length ? el.selectedOptions[0].text : '';
      const native = style.appearance !== 'none';
      written(
          el, text, style, r.left + (native ? 4 : 0), r.top, r.bottom,
          {...outer, right: Math.min(outer.right, r.right - (native ? 16 : 0))});
      return;
    }
    let text = el.value || el.placeholder || '';
    if (type === 'password' && el.value) text = '\u2022'.repeat(el.value.length);
    const spare = r.right - r.left - width(text, style);
    const start = style.textAlign === 'center'                   ? Math.max(0, spare / 2) :
        style.textAlign === 'right' || style.textAlign === 'end' ? Math.max(0, spare) :
                                                                   0;
    if (text)
      written(
          el, text, style, r.left + start - (el.value ? el.scrollLeft : 0), r.top, r.bottom, cut(outer, c));
  }

  /* Lays out a text area again as a plain box of the same shape, to measure its lines. */
  function area(el) {
    const text = el.value || el.placeholder;
    if (!text || !shown(el)) return;
    const style = win.getComputedStyle(el), twin = doc.createElement('div'), r = el.getBoundingClientRect();
    for (const p
             of ['fontFamily', 'fontSize', 'fontWeight', 'fontStyle', 'lineHeight', 'letterSpacing',
                 'textAlign', 'tabSize', 'paddingTop', 'paddingBottom', 'paddingLeft', 'borderTopWidth',
                 'borderLeftWidth'])
      twin.style[p] = style[p];
    twin.style.cssText +=
        ';position:fixed;visibility:visible;border-style:solid;white-space:pre-wrap;overflow-wrap:break-word;' +
        `box-sizing:content-box;left:${r.left}px;top:${r.top - el.scrollTop}px;z-index:-1;width:${
            el.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)}px`;
    twin.textContent = text;
    doc.body.append(twin);
    const boxes = boxesOf(twin.firstChild);
    twin.remove();
    characters(el, text, boxes, cut(clip(el), r));
  }

  // ---- elements

  function kindOf(el) {
    const tag = el.tagName.toLowerCase(), type = (el.type || '').toLowerCase(),
          role = el.getAttribute('role') || el.dataset.kind || '';
    if (el.dataset.kind) return el.dataset.kind;
    if (tag === 'input')
      return {
        checkbox: 'check',
        radio: 'radio',
        range: 'slider',
        button: 'button',
        submit: 'button',
        reset: 'button',
        image: 'button',
        hidden: ''
      }[type] ??
          'field';
    if (tag === 'textarea') return 'area';
    if (tag === 'select') return el.size > 1 || el.multiple ? 'list' : 'select';
    if (tag === 'button') return 'button';
    if (tag === 'option') return el.closest('select[size],select[multiple]') ? 'item' : '';
    if (role === 'tab' || el.matches('.ui-tabs-nav li')) return 'tab';
    if (el.matches('.ui-slider')) return 'slider';
    if (el.matches('a,.alink,.elink')) return el.closest('.ui-tabs-nav') ? '' : 'link';
    if (el.matches('.ui-accordion-header')) return 'header';
    if (el.matches('.ui-menu-item,[role=menuitem]')) return 'item';
    if (/^(rect|circle|ellipse|polygon|path|line)$/.test(tag)) return 'shape';
    if (tag === 'img' || tag === 'canvas') return 'picture';
    return '';
  }

  function stateOf(el, kind) {
    let s = 0;
    if (kind === 'check' || kind === 'radio')
      s |= el.checked || el.getAttribute('aria-checked') === 'true' ? STATES.on : STATES.off;
    if (el.indeterminate) s |= STATES.mixed;
    if (el.disabled || el.getAttribute('aria-disabled') === 'true') s |= STATES.disabled;
    if (doc.activeElement === el && /^(field|area)$/.test(kind)) s |= STATES.focused;
    if (el.selected || el.matches('.ui-tabs-active,.ui-state-active,[aria-selected=true]'))
      s |= STATES.selected;
    if (el.getAttribute('aria-expanded') === 'true') s |= STATES.open;
    return s;
  }

  function element(el) {
    const kind = kindOf(el);
    if (!kind || !shown(el)) return;
    const r = el.getBoundingClientRect(), c = cut(r, clip(el.parentElement));
    if (c.right - c.left < 3 || c.bottom - c.top < 3) return;
    const x = (c.left + c.right) / 2, y = (c.top + c.bottom) / 2, hit = doc.elementFromPoint(x, y);
    if (!hit || !(hit === el || el.contains(hit) || (kind === 'item' && hit.contains(el)))) return;
    const name = (el.value && kind === 'button' ? el.value : el.innerText || el.value || '')
                     .replace(/\s+/g, ' ')
                     .trim()
                     .slice(0, 60);
    out.elements.push([...box(c), kind, stateOf(el, kind), name]);
  }

  const walk = doc.createTreeWalker(doc.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  const fields = [];
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    if (n.nodeType === 3)
      textNode(n);
    else {
      if (/^(INPUT|SELECT)$/.test(n.tagName)) field(n);
      if (n.tagName === 'TEXTAREA') fields.push(n);
      element(n);
    }
  }
  fields.forEach(area);  // after the walk, because it briefly adds a box to the page
  return out;
}
