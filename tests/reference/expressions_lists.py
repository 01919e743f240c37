"""Templates about slices, strings, dicts, lists and filters (expressions.py)."""

LISTS = {
    "slices": [
        "{{ numbers[1:] }}{{ numbers[:-1] }}{{ numbers[::-1] }}{{ numbers[::2] }}{{ numbers[3:0:-2] }}"
            "{{ numbers[-2:] }}",
        "{{ s[1:4] }}|{{ s[::-1] }}|{{ s[-3:] }}|{{ s[:-20] }}|{{ s[20:] }}|{{ s[8:2:-1] }}|{{ s[::3] }}|{{ s[-1] }}|{{ s[0] }}",
        "{{ cjk[0] }}{{ cjk[3] }}{{ cjk[::-1] }}{{ cjk|length }}",
        "{{ numbers[100:] }}{{ numbers[-100:2] }}{{ numbers[2:1] }}",
        "{{ (1,2,3)[1:] }}{{ (1,2,3)[0] }}",
        "{{ numbers[none:2] }}{{ numbers[seven - 5:] }}",
        "{{ numbers[::0] }}",
        "{{ numbers['a':] }}",
        "{{ d[1:] is defined }}",
        "{{ numbers[99] is defined }}|{{ numbers[99] }}|{{ numbers[-5] }}|{{ numbers['x'] is defined }}",
        "{{ s[99] is defined }}{{ s['upper']() }}",
        "{{ numbers.0 }}{{ numbers.2 }}{{ deep.a['b'].c[2].d }}{{ deep['a']['b']['c'][-1]['d'] }}",
        "{{ numbers[true] }}{{ numbers[1.0] }}",
        "{% for m in messages[::-1] %}{{ loop.index0 }}{{ m.role }} {% endfor %}{% for m in messages[1:3] %}"
            "{{ m.role }};{% endfor %}",
        "{{ messages[-1].content == '' }}{{ messages[0]['role'] }}{{ messages[loop_index|default(1)].role }}",
        "{{ none_value[1:] }}",
    ],
    "strings": [
        "{{ words.split(',') }}{{ words.split(',', 1) }}{{ words.rsplit(',', 1) }}{{ words.split(',', maxsplit=2) }}"
            "{{ words.split(sep=',') }}",
        "{{ pad.split() }}{{ ' a  b c '.split(none, 1) }}{{ ' a  b c '.rsplit(none, 1) }}{{ ''.split() }}"
            "{{ ''.split(',') }}",
        "{{ 'a'.split('') }}",
        "[{{ pad.strip() }}][{{ pad.lstrip() }}][{{ pad.rstrip() }}]",
        "{{ 'xxabcxyx'.strip('xy') }}|{{ 'xxabcx'.lstrip('x') }}|{{ 'xxabcx'.rstrip('xc') }}|{{ '\\n\\na\\n'.strip('\\n') }}|{{ 'abc'.strip('') }}",
        "{{ s.startswith('He') }}{{ s.startswith(('x', 'H')) }}{{ s.endswith(('x', 'ld')) }}"
            "{{ s.startswith('World', 6) }}{{ s.startswith('') }}{{ s.endswith('') }}{{ s.startswith('lo', 3, 5) }}",
        "{{ s.startswith(['H']) }}",
        "{{ s.startswith(7) }}",
        "{{ s.upper() }}{{ s.lower() }}{{ 'stra\u00dfe \u01c6'.upper() }}{{ '\u0130I\u03a3'.lower() }}"
            "{{ s.swapcase() }}{{ '\u00df'.casefold() }}",
        "{{ \"they're bill's 3rd x-ray\".title() }}{{ 'hELLO wORLD'.capitalize() }}{{ ''.capitalize() }}"
            "{{ '\u01c6x'.title() }}",
        "{{ 'aXbXc'.replace('X', '--') }}{{ 'aXbXc'.replace('X', '', 1) }}{{ 'abc'.replace('', '.') }}"
            "{{ 'abc'.replace('', '.', 2) }}{{ 'aaa'.replace('aa', 'b') }}",
        "{{ s.find('o') }}{{ s.find('o', 5) }}{{ s.find('z') }}{{ s.rfind('o') }}{{ s.index('W') }}{{ s.count('o') }}"
            "{{ cjk.find('e') }}",
        "{{ s.index('z') }}",
        "{{ ','.join(['a', 'b']) }}{{ ''.join(ascii) }}{{ '-'.join('abc') }}{{ '-'.join(d) }}",
        "{{ ','.join([1, 2]) }}",
        "{{ ', '.join(messages|map(attribute='role')) }}",
        "{{ '{}-{}'.format(1, 'a') }}{{ '{0}{1}{0}'.format('a', 'b') }}{{ '{x}'.format(x=3) }}{{ '{{}}'.format() }}"
            "{{ '{:>5}|{:03d}|{:.2f}'.format('a', 7, 1.005) }}{{ '{!r}'.format('a') }}",
        "{{ '{}'.format() }}",
        "{{ 'prefix-x'.removeprefix('prefix-') }}{{ 'x.txt'.removesuffix('.txt') }}{{ 'abc'.removeprefix('b') }}",
        "{{ lines.splitlines() }}{{ lines.splitlines(true)|length }}{{ ''.splitlines() }}",
        "{{ '12'.isdigit() }}{{ '\u00b2'.isdigit() }}{{ '\u0664'.isdigit() }}{{ ''.isdigit() }}{{ '1.5'.isdigit() }}"
            "{{ '-1'.isdigit() }}{{ '\u00b2'.isdecimal() }}{{ '\u00bd'.isnumeric() }}",
        "{{ 'ab1'.isalnum() }}{{ 'ab'.isalpha() }}{{ ' \u00a0'.isspace() }}{{ 'AB'.isupper() }}{{ 'ab1'.islower() }}"
            "{{ 'Ab C'.istitle() }}{{ '\u00e9'.isalpha() }}",
        "{{ '42'.zfill(5) }}{{ '-42'.zfill(5) }}{{ 'ab'.center(7, '*') }}{{ 'ab'.ljust(4) }}|{{ 'ab'.rjust(4, '.') }}",
        "{{ 'a=b=c'.partition('=') }}{{ 'a=b=c'.rpartition('=') }}{{ 'abc'.partition('=') }}",
        "{{ s.nothing() }}",
        "{{ s.nothing is defined }}{{ s.upper is defined }}{{ s['length'] is defined }}",
        "{{ s.split(1, 2, 3) }}",
        "{{ '%s is %d (%.1f) %%' % ('a', 3, 2.25) }}{{ '%s' % 1 }}{{ '%r' % 'x' }}",
        "{{ content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') }}|{{ messages }}",
        "{{ messages[2].content.split('</think>')[-1].lstrip('\\n') }}",
        "{{ messages[2].content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') }}",
        "{{ 'ab' < 'b' }}{{ 'Z' < 'a' }}{{ 'a' in s }}{{ 'W' in s }}{{ '' in s }}",
        "{{ 1 in s }}",
        "{{ 'a\tb'.expandtabs(4) }}{{ 'abc'.encode() is defined }}",
    ],
    "dicts and lists": [
        "{{ d.get('a') }}{{ d.get('z') }}{{ d.get('z', 'other') }}{{ d.get('C')[1].get('k', 5) }}",
        "{{ d.keys()|list }}{{ d.values()|list }}{{ no_keys.keys()|list }}",
        "{{ no_keys.items()|list }}{{ tool.items()|list }}",
        "{{ d.items() }}",
        "{{ d['items'] }}{{ d['two words'] }}{{ d.a }}{{ d['b'] }}",
        "{% for k, v in tool.items() %}{{ k }}={{ v }};{% endfor %}",
        "{% for k in d %}{{ k }} {% endfor %}",
        "{{ d|length }}{{ 'a' in d }}{{ 'z' not in d }}{{ 2 in d }}",
        "{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}{{ missing|items|list }}",
        "{{ numbers|items|list }}",
        "{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}",
        "{{ tool|dictsort(reverse=true)|list }}{{ {'b': 1, 'A': 2}|dictsort }}{{ {'b': 1, 'A': 2}|dictsort(true) }}"
            "{{ {'x': 3, 'y': 1}|dictsort(by='value') }}",
        "{% set x = [] %}{{ x.append(1) }}",
        "{{ d.update({'q': 1}) }}",
        "{{ d.pop('a') }}",
        "{{ numbers.pop() }}",
        "{% set x = [1] %}{% set x = x + [2] %}{{ x }}{{ [1] * 3 }}{{ [] + [[]] }}",
        "{{ numbers.index(2) }}{{ numbers.count(3) }}",
        "{{ numbers.index(99) }}",
        "{{ {'a': 1, 'b': {'c': [1, 2,],},} }}{{ {1: 2, none: 3, true: 4} }}{{ {} }}{{ [] }}{{ () }}{{ (1,) }}"
            "{{ (1, 2) }}{{ (1) }}",
        "{{ {'a': 1, 'a': 2} }}",
        "{{ {[]: 1} }}",
        "{{ dict(a=1, b='x') }}{{ dict() }}{{ dict({'k': 1}, z=2) }}{{ dict([('a', 1)]) }}",
        "{{ d.copy() == d }}{{ {'a': 1} == {'a': 1.0} }}{{ [1, 2] == [1, 2] }}{{ (1, 2) == [1, 2] }}"
            "{{ [1, 2] < [1, 3] }}",
        "{{ d.__class__ }}|{{ d.__class__ is defined }}",
        "{{ d.__class__.__mro__ }}",
        "{{ d._private is defined }}",
        "{{ s.__len__() }}",
        "{{ deep.a.missing is defined }}",
        "{{ deep.missing.more is defined }}",
        "{{ numbers.append is defined }}{{ numbers.append }}",
        "{% set a, b = 1, [2] %}{{ a }}{{ b }}{% set x, (y, z) = 1, (2, 3) %}{{ x }}{{ y }}{{ z }}",
        "{% set a, b = [1, 2, 3] %}{{ a }}",
        "{{ range(3)|list }}{{ range(2, 8, 3)|list }}{{ range(3, 0, -1)|list }}{{ range(0) }}{{ range(5)[2] }}"
            "{{ 3 in range(5) }}",
        "{{ range(100001)|length }}",
        "{{ range('a') }}",
    ],
    "filters on lists": [
        "{{ numbers|sort }}{{ numbers|sort(reverse=true) }}{{ ['b', 'A', 'c']|sort }}"
            "{{ ['b', 'A', 'c']|sort(case_sensitive=true) }}"
            "{{ people[:3]|sort(attribute='age')|map(attribute='name')|list }}"
            "{{ people[:3]|sort(attribute='age,name', reverse=true)|map(attribute='name')|list }}",
        "{{ mixed|sort }}",
        "{{ [1, 2, 1, 'a', 'A']|unique|list }}{{ ['a', 'A']|unique(true)|list }}"
            "{{ people|unique(attribute='age')|map(attribute='name')|list }}",
        "{{ numbers|reverse|list }}{{ s|reverse }}{{ numbers|sum }}{{ [0.1, 0.2]|sum }}{{ numbers|sum(start=100) }}"
            "{{ people[:3]|sum(attribute='age') }}{{ []|sum }}",
        "{{ numbers|min }}{{ numbers|max }}{{ ['b', 'A']|min }}{{ ['b', 'a']|max }}{{ []|max }}"
            "{{ people[:3]|max(attribute='age') }}",
        "{{ numbers|first }}{{ numbers|last }}{{ s|first }}{{ s|last }}"
            "{{ no_items|first is defined }}|{{ no_items|last }}|{{ d|first }}",
        "{{ ascii|join }}{{ ascii|join(', ') }}{{ mixed|join('|') }}{{ no_items|join }}"
            "{{ people|join(',', attribute='name') }}{{ s|join('.') }}{{ d|join('+') }}"
            "{{ none_value|default([], true)|join(',') }}",
        "{{ none_value|join(',') }}",
        "{{ people|map(attribute='name')|join(',') }}{{ people[:2]|map(attribute='in.city')|list }}"
            "{{ people|map(attribute='age', default=0)|list }}{{ people|map(attribute='x', default='-')|join }}"
            "{{ ascii|map('upper')|list }}{{ numbers|map('string')|join }}"
            "{{ ['a b', 'c']|map('replace', ' ', '_')|list }}{{ [[1, 2]]|map('first')|list }}",
        "{{ numbers|map('nothing')|list }}",
        "{{ numbers|nothing }}",
        "{{ nested|map(attribute=0)|list }}",
        "{{ people|map(attribute='in.city')|list }}",
        "{{ people[:3]|map(attribute='in.city')|list }}",
        "{{ numbers|select('odd')|list }}{{ numbers|select('>', 1)|list }}{{ numbers|select('greaterthan', 2)|list }}"
            "{{ mixed|select|list }}{{ mixed|select('none')|list }}{{ numbers|reject('even')|list }}"
            "{{ mixed|reject|list }}{{ mixed|select('string')|list }}{{ numbers|select('in', [1, 2])|list }}",
        "{{ numbers|select('nothing')|list }}",
        "{{ people|selectattr('age')|map(attribute='name')|join }}"
            "{{ people|selectattr('age', 'equalto', 30)|map(attribute='name')|join }}"
            "{{ people|selectattr('age', '==', 25)|list }}{{ people|rejectattr('age', 'none')|list|length }}"
            "{{ people[:3]|selectattr('in.city', 'defined')|list|length }}"
            "{{ people|rejectattr('age')|map(attribute='name')|first }}"
            "{{ messages|selectattr('role', 'in', ['user', 'tool'])|list|length }}"
            "{{ messages|selectattr('tool_calls', 'defined')|list|length }}"
            "{{ messages|rejectattr('role', 'eq', 'system')|map(attribute='role')|list }}",
        "{{ numbers|batch(2)|list }}{{ numbers|batch(2, 0)|list }}{{ numbers|slice(2)|list }}",
        "{% for g in people[:3]|groupby('age') %}"
            "{{ g.grouper }}:{{ g.list|map(attribute='name')|join(',') }};{% endfor %}"
            "{% for k, v in people[:3]|groupby('age') %}{{ k }}{{ v|length }}{% endfor %}",
        "{{ s|list }}{{ d|list }}{{ (1, 2)|list }}",
        "{{ 5|list }}",
        "{{ numbers|length }}{{ s|count }}{{ d|length }}{{ cjk|length }}{{ range(4)|length }}",
        "{{ 5|length }}",
        "{{ none_value|length }}",
        "{{ missing|length }}{{ missing|list }}{{ missing|join }}{{ missing|first }}",
        "{{ people|map(attribute='name') is iterable }}{{ numbers|map('abs')|sum }}"
            "{{ (numbers|select('gt', 100))|list }}{{ numbers|map('float')|map('int')|max }}",
    ],
    "filters on values": [
        "[{{ pad|trim }}][{{ 'xxaxx'|trim('x') }}][{{ 5|trim }}][{{ none_value|trim }}][{{ missing|trim }}][{{ '\\x1f\\x0ba\\u2029\\u200b'|trim|length }}]",
        "{{ s|upper }}{{ s|lower }}{{ \"they're o-k x(y a_b\"|title }}{{ 'hELLO'|capitalize }}{{ 5|upper }}"
            "{{ true|lower }}{{ none_value|capitalize }}",
        "{{ s|replace('l', 'L') }}{{ s|replace('l', 'L', 1) }}{{ 5.5|replace('5', 'x') }}{{ s|replace('', '-') }}",
        "{{ missing|default('d') }}{{ empty|default('d') }}|{{ empty|default('d', true) }}"
            "{{ none_value|default('d') }}{{ none_value|default('d', true) }}{{ zero|default(5, boolean=true) }}"
            "{{ missing|d }}|{{ d.zz|default('deep') }}{{ missing|default }}",
        "{{ missing.more|default('d') }}",
        "{{ '42'|int }}{{ '4.9'|int }}{{ 'x'|int }}{{ 'x'|int(7) }}{{ 4.9|int }}{{ -4.9|int }}{{ none_value|int }}"
            "{{ true|int }}{{ '0x1A'|int(0, 16) }}{{ '101'|int(base=2) }}{{ ' 5 '|int }}{{ '1_000'|int }}{{ ''|int(3) }}"
            "{{ [1]|int }}",
        "{{ '4.5'|float }}{{ 'x'|float }}{{ 'x'|float(1.5) }}{{ 3|float }}{{ '1e3'|float }}{{ 'inf'|float }}"
            "{{ none_value|float }}{{ '1e16'|float }}",
        "{{ 2.5|round }}{{ 3.5|round }}{{ 2.567|round(2) }}{{ 2.1|round(method='ceil') }}{{ 2.9|round(0, 'floor') }}"
            "{{ 1234|round(-2) }}{{ 5|round }}{{ -2.5|round|int }}{{ 2.675|round(2) }}",
        "{{ -5|abs }}{{ -5.5|abs }}{{ (-7)|abs }}{{ true|abs }}",
        "{{ html|e }}{{ html|escape|length }}{{ html|safe }}{{ html|forceescape }}{{ html|e|e }}{{ [html]|e }}"
            "{{ 5|e }}",
        "{{ html|e ~ '<' }}{{ html|safe ~ '<' }}{{ '<' ~ '>'|e }}{{ (html|safe)|upper|length }}"
            "{{ '<b>'|safe + '<i>' }}{{ '<b>'|e + '<i>' }}",
        "{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb\n\nc'|indent(2, true) }}|{{ 'a\nb\n\nc'|indent(2, blank=true) }}|{{ 'a\nb'|indent('> ') }}",
        "{{ '%s-%s'|format('a', 1) }}{{ '%(x)s'|format(x=2) }}",
        "{{ 'one two  three, four'|wordcount }}{{ 'a b/\u00e9?&=' | urlencode }}"
            "{{ {'a b': 1, 'c': '\u00e9'}|urlencode }}",
        "{{ 'a long sentence of words'|truncate(12) }}|{{ 'a long sentence'|truncate(9, true, '~', 0) }}|{{ 'ab'|center(6) }}|{{ '<b>x</b> y'|striptags }}",
        "{{ 5|string + '1' }}{{ none_value|string }}{{ missing|string|length }}{{ half|string }}"
            "{{ [1]|string|length }}{{ t|string|lower }}",
        "{{ s|upper|lower|replace(' ', '_')|title|length }}{{ s | trim | length > 5 }}{{ -7|abs + 1 }}"
            "{{ (1 + 2)|string ~ 3 }}",
        "{{ d|attr('items') is defined }}{{ s|attr('nothing') is defined }}",
        "{{ s|trim() }}{{ s|replace(old='l', new='1') }}",
        "{{ s|replace('l') }}",
        "{{ s|upper(1) }}",
        "{{ 'abc'|pprint }}{{ 1000|filesizeformat }}",
    ],
}
