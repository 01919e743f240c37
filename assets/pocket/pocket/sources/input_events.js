/* Executes an oracle's actions by script events, so that many pages in the frames of one window can be played
 * at once.
 *
 * Script events differ from real input: the pointer has no position, native popups do not open, and keys do
 * only what the page implements. Actions that fail have no effect; the oracle labels the resulting state.
 */
window.inputEvents = (function() {
  'use strict';

  /* Only one frame of a window can have the focus; in the others this rule draws the focus ring. */
  const style = document.createElement('style');
  style.textContent = '.input-focus { outline: -webkit-focus-ring-color auto 1px }';
  document.addEventListener('DOMContentLoaded', () => document.head.append(style));

  function mouse(e, kind, x, y, more) {
    const how = {bubbles: true, cancelable: true, view: window, clientX: x, clientY: y, screenX: x, screenY: y, ...more};
    const make = /^pointer/.test(kind) ? PointerEvent : MouseEvent;
    return e.dispatchEvent(new make(kind, how));
  }

  let under = null;
  function move(x, y, buttons) {
    const e = document.elementFromPoint(x, y) || document.body, held = {buttons: buttons || 0};
    if (e !== under) {
      if (under && under.isConnected) mouse(under, 'mouseout', x, y, {...held, relatedTarget: e});
      mouse(e, 'mouseover', x, y, {...held, relatedTarget: under});
    }
    under = e;
    mouse(e, 'pointermove', x, y, held);
    mouse(e, 'mousemove', x, y, held);
    return e;
  }

  const FOCUSABLE = 'input, textarea, select, button, a[href], [tabindex], [contenteditable=true]';

  function ring() {
    for (const e of document.querySelectorAll('.input-focus')) e.classList.remove('input-focus');
    const e = document.activeElement;
    if (e && /^(INPUT|TEXTAREA|SELECT)$/.test(e.tagName) && !/^(checkbox|radio|button|submit)$/.test(e.type))
      e.classList.add('input-focus');
  }

  let began = null; /* value of the field at focus; a `change` event follows if it differs at blur */
  function focus(e) {
    const old = document.activeElement, wanted = e.closest(FOCUSABLE);
    if (old !== wanted) {
      if (began !== null && old && 'value' in old && old.value !== began)
        old.dispatchEvent(new Event('change', {bubbles: true}));
      if (old && old !== document.body) old.blur();
      if (wanted) wanted.focus({preventScroll: true});
      began = wanted && 'value' in wanted ? wanted.value : null;
    }
    ring();
  }

  function press(x, y, more) {
    const e = move(x, y, 1), held = {button: 0, buttons: 1, ...more};
    mouse(e, 'pointerdown', x, y, held);
    if (mouse(e, 'mousedown', x, y, held)) focus(e);
    return e;
  }

  function release(e, x, y, more) {
    const now = document.elementFromPoint(x, y) || document.body, free = {button: 0, buttons: 0, ...more};
    mouse(now, 'pointerup', x, y, free);
    mouse(now, 'mouseup', x, y, free);
    if (now === e) mouse(e, 'click', x, y, free);
  }

  function click(a) {
    const more = {ctrlKey: a.hold === 'ctrl', shiftKey: a.hold === 'shift', detail: 1};
    release(press(a.x, a.y, more), a.x, a.y, more);
    ring();
  }

  const CODES = {enter: 13, tab: 9, escape: 27, backspace: 8, end: 35, home: 36, left: 37, up: 38, right: 39, down: 40};
  const NAMES = {enter: 'Enter', tab: 'Tab', escape: 'Escape', backspace: 'Backspace', left: 'ArrowLeft',
                 up: 'ArrowUp', right: 'ArrowRight', down: 'ArrowDown', end: 'End', home: 'Home'};

  function key(name, code) {
    const e = document.activeElement || document.body;
    for (const kind of ['keydown', 'keypress', 'keyup'])
      e.dispatchEvent(new KeyboardEvent(
          kind, {bubbles: true, cancelable: true, key: name, keyCode: code, which: code, charCode: code}));
  }

  /* Converts a date or time, typed without separators, to the value format of the field. */
  function kept(e, text) {
    const d = text.replace(/\D/g, '');
    if (e.type === 'date') return `${d.slice(4)}-${d.slice(0, 2)}-${d.slice(2, 4)}`;
    if (e.type !== 'time') return text;
    const hour = +d.slice(0, 2) % 12 + (/p/i.test(text) ? 12 : 0);
    return `${String(hour).padStart(2, '0')}:${d.slice(2, 4)}`;
  }

  function put(e, value) {
    const own = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(e), 'value');
    own.set.call(e, value);
    e.dispatchEvent(new InputEvent('input', {bubbles: true}));
  }

  function type(text, over) {
    const e = document.activeElement;
    if (!e || !('value' in e) || e.disabled || e.readOnly) return;
    put(e, kept(e, over ? text : e.value + text));
    const last = text.slice(-1) || ' ';
    key(last, last.toUpperCase().charCodeAt(0));
  }

  function scroll(a) {
    const by = (a.direction === 'up' ? -1 : 1) * 120 * a.amount;
    let e = document.elementFromPoint(a.x, a.y);
    while (e && e !== document.documentElement &&
           !(e.scrollHeight > e.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(e).overflowY)) &&
           e.tagName !== 'TEXTAREA')
      e = e.parentElement;
    if (e) e.scrollTop += Math.max(-e.clientHeight, Math.min(e.clientHeight, by));
  }

  function drag(a) {
    const e = press(a.x, a.y), n = 12;
    for (let k = 1; k <= n; k++) move(a.x + (a.to.x - a.x) * k / n, a.y + (a.to.y - a.y) * k / n, 1);
    release(e, a.to.x, a.to.y);
  }

  return function(a) {
    if (/^(click|double|write|append)$/.test(a.verb)) click(a);
    if (a.verb === 'double') click(a), mouse(document.elementFromPoint(a.x, a.y) || document.body, 'dblclick', a.x, a.y);
    if (a.verb === 'hover') move(a.x, a.y);
    if (a.verb === 'write' || a.verb === 'append') type(a.text, a.verb === 'write');
    if (a.verb === 'key') key(NAMES[a.keys] || a.keys, CODES[a.keys] || 0);
    if (a.verb === 'scroll') scroll(a);
    if (a.verb === 'drag') drag(a);
  };
})();
