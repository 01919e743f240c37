"""Tasks of plain steps on real programs, for tests/scripts/plain_tasks.py.

Each task has a command that starts the program, files in its home folder, the sentence, and a judge: a shell command
that runs on the same desktop afterwards, and the output that it must have. Judges ask the program's output, saved
files, X properties, settings or the log of the page's server, and never holorun. A task with stops=True must not be
performed: holorun has to end with an error, and the judge checks that nothing was done.

"spec" has 72 tasks of one to four steps, "new" 62 others, "third" 40 that use every sentence of `holorun help
sentences`.  All were written before the first run; afterwards 20 were corrected, because a
label, a menu or a file of the program was not what the task said.
"""
TASKS = []


def task(name, sentence, judge, expect, start=None, files=None, stops=False, group="new"):
    TASKS.append({"id": name, "program": name.rsplit("-", 1)[0], "group": group, "task": sentence, "judge": judge,
                  "expect": expect, "start": start or STARTS[name.rsplit("-", 1)[0]], "files": files or {},
                  "stops": stops})


# Commands of programs; their output goes to ~/out, their exit code to ~/code (runner).
TEXT = {"note.txt": "one red apple\ntwo red pears\nthree green plums\n"}
STARTS = {
    "mousepad": "mousepad note.txt",
    "l3afpad": "l3afpad note.txt",
    "galculator": "galculator",
    "featherpad": "featherpad note.txt",
    "writer": "{office} --writer doc.odt",
    "calc": "{office} --calc sheet.ods",
    "thunar": "thunar files",
    "qt6": "/usr/bin/python3 {cases}/form_qt6.py",
    "swing": "java -Djavax.accessibility.assistive_technologies=org.GNOME.Accessibility.AtkWrapper "
             "-cp /usr/share/java/java-atk-wrapper.jar:{build} Form",
    "appearance": "xfce4-appearance-settings",
}


def shown(program, sentence, expect, name, group="new", stops=False):
    """A calculation; the result is read from the clipboard after Ctrl+C."""
    task(name, sentence, "xdotool search --onlyvisible --class " + program + " windowfocus key ctrl+c; sleep 0.5; "
         "timeout 3 xclip -o -selection clipboard", expect, group=group, stops=stops)


def page(name, file, sentence, log, group="new", stops=False):
    browser = name.rsplit("-", 1)[0]
    task(name, sentence, "log", log, "{%s} {url}/%s" % (browser, file), group=group, stops=stops)


def odt(name, sentence, judge, expect, text="Hello world.", group="new", stops=False):
    task(name, sentence, judge, expect, files={"doc.odt": text}, group=group, stops=stops)


def ods(name, sentence, judge, expect, rows=(("Item", "Price"), ("Pear", 3), ("Apple", 2), ("Plum", 5)), group="new",
        stops=False, more=()):
    task(name, sentence, judge, expect, files={"sheet.ods": [list(map(list, rows))] + list(more)}, group=group,
         stops=stops)


def save(name, sentence, expect, group="new", text=None, stops=False):
    """An editor whose file is compared afterwards."""
    task(name, sentence, "cat note.txt", expect, files={"note.txt": text} if text is not None else TEXT, group=group,
         stops=stops)


# ---- spec: 72 --------------------------------------------------------------------------------------------------------

S = {"group": "spec"}
ZENITY_FORM = "zenity --forms --add-entry=Name --add-entry=City --add-combo=Size --combo-values='Small|Medium|Large'"
task("zenity-1", "Type Ana into Name, enter Rome into City, then press OK", "sed 's/Small$/ /' out", "Ana|Rome| ", ZENITY_FORM,
     **S)  # zenity 4 chooses the first entry itself
task("zenity-2", "Choose Large in Size, then press OK", "cat out", "||Large", ZENITY_FORM, **S)
task("zenity-3", "press No", "cat code", "1", "zenity --question --text='Delete the file?'", **S)
task("zenity-4", "tick Plum, untick Pear and press OK", "cat out", "Plum",
     "zenity --list --checklist --column=Pick --column=Fruit FALSE Apple TRUE Pear FALSE Plum", **S)
task("zenity-5", "choose Madrid, then press OK", "cat out", "Madrid",
     "zenity --list --column=City Lisbon Madrid Porto", **S)
task("zenity-6", "enter \"Smith, John\" into \"Your name\" and press OK", "cat out", "Smith, John",
     "zenity --entry --text='Your name:'", **S)
YAD_FORM = ("yad --form --field=Name --field='Window seat:CHK' --field='Size:CB' --field='Nights:NUM' "
            "'' FALSE 'Small!Medium!Large' 2")
task("yad-1", "Type Ana into Name, tick Window seat, then press OK", "cat out", "Ana|TRUE|Small|2|", YAD_FORM, **S)
task("yad-2", "choose Large in Size, set Nights to 5, press OK", "cat out", "|FALSE|Large|5|", YAD_FORM, **S)
task("yad-3", "press Cancel", "cat code; cat out", "1", YAD_FORM, **S)
save("mousepad-1", "press ctrl+End, type \"Done.\", open menu File > Save",
     TEXT["note.txt"] + "Done.", **S)
save("mousepad-2", "open menu Edit > Select All, open menu Edit > Delete Selection, type \"Empty\", press ctrl+s", "Empty", **S)
task("mousepad-3", "open menu File > Save As, enter \"copy.txt\" into Name, then press Save", "cat copy.txt",
     TEXT["note.txt"], files=TEXT, **S)
task("mousepad-4", "open menu View > Line Numbers",
     "gsettings get org.xfce.mousepad.preferences.view show-line-numbers", "true", files=TEXT, **S)
task("mousepad-5", "open menu Help > About", "xdotool search --name About getwindowname %@ | head -1",
     "About Mousepad", files=TEXT, **S)
task("mousepad-6", "open menu Document > Word Wrap", "gsettings get org.xfce.mousepad.preferences.view word-wrap", "true",
     files=TEXT, **S)
shown("galculator", "press 7, press *, press 8, press =", "56", "galculator-1", **S)
shown("galculator", "press 1, press 2, press +, press 3, press =", "15", "galculator-2", **S)
shown("galculator", "press 9 then press sqrt", "3", "galculator-3", **S)
task("galculator-4", "open menu View > Scientific Mode",
     "xdotool search --onlyvisible --class galculator getwindowgeometry | grep -c 'Geometry: [67]..x'", "1", **S)
task("galculator-5", "open menu Help > About", "xdotool search --name About getwindowname %@ | head -1",
     "About galculator", **S)
save("featherpad-1", "press ctrl+End, type \"Done.\", open menu File > Save", TEXT["note.txt"] + "Done.", **S)
task("featherpad-2", "open menu File > Save As, enter \"copy.txt\" into File name, press Save", "cat copy.txt",
     TEXT["note.txt"], files=TEXT, **S)
task("featherpad-3", "open menu Help > About", "xdotool search --name About getwindowname %@ | head -1",
     "About FeatherPad", files=TEXT, **S)
save("featherpad-4", "open menu Edit > Select All, press ctrl+x, press ctrl+s", "", **S)
task("featherpad-5", "open menu File > New, wait for Untitled, then close the window", "test -e code && echo closed",
     "closed", files=TEXT, **S)
BOLD = "unzip -p doc.odt content.xml | grep -c 'fo:font-weight=\"bold\"'"
odt("writer-1", "press ctrl+a, press Bold, press ctrl+s", BOLD, "1", **S)
odt("writer-2", "press ctrl+a, open menu Format > Character, go to tab Position, press Superscript, press OK, "
    "press ctrl+s", "unzip -p doc.odt content.xml | grep -o 'style:text-position=\"super' | head -1",
    'style:text-position="super', **S)
odt("writer-3", "open menu Tools > Word Count", "xdotool search --name 'Word Count' getwindowname %@ | head -1",
    "Word Count", **S)
odt("writer-4", "open menu Table > Insert Table, set Columns to 3, set Rows to 4, press Insert, press ctrl+s",
    "odt_table doc.odt", "4x3", **S)
odt("writer-5", "open menu File > Properties, go to tab Description, enter \"Yearly report\" into Title, press OK, "
    "press ctrl+s", "unzip -p doc.odt meta.xml | grep -o '<dc:title>[^<]*'", "<dc:title>Yearly report", **S)
for browser in ("chromium", "firefox"):
    page(browser + "-1", "form.html", "Enter Ana Lima into Full name, enter ana@example.org into E-mail, tick "
         "\"I accept the terms and conditions\", press Create account",
         "name=Ana Lima|mail=ana@example.org|pw=|country=Austria|street=|by=mail|guests=1|about=|terms=yes", **S)
    page(browser + "-2", "form.html", "Choose Portugal in Country, press Create account",
         "name=|mail=|pw=|country=Portugal|street=|by=mail|guests=1|about=", **S)
    page(browser + "-3", "shop.html", "tick Gift wrapping, untick Newsletter, press Place order",
         "order|Standard|true|false|", **S)
    page(browser + "-4", "shop.html", "enter SAVE10 into Coupon code, then press Apply", "coupon SAVE10", **S)
    page(browser + "-5", "settings.html", "go to tab Notifications, tick Play a sound, press Save changes",
         "save|ana|English|light|true|false|false|true|true", **S)
task("qt6-1", "Type Ana into Name, tick Window seat, then press Save", "cat out",
     "saved|Ana|Porto|0|Small||True|True|economy||", **S)
task("qt6-2", "Choose Large in Size, then press Save", "cat out", "saved||Porto|0|Large||False|True|economy||", **S)
task("qt6-3", "go to tab Extras, press First class, go to tab Traveller, press Save", "cat out",
     "saved||Porto|0|Small||False|True|first||", **S)
task("qt6-4", "open menu File > Share > By mail", "cat out", "menu|mail", **S)
task("swing-1", "Type Ana into Name, tick Gift wrapping, then press Save", "cat out", "saved|Ana|Small|true", **S)
task("swing-2", "Choose Large in Size, then press Save", "cat out", "saved||Large|false", **S)
task("swing-3", "press Cancel", "cat out", "cancelled", **S)
task("swing-4", "open menu File > About orders", "cat out", "about", **S)
# The 24 that were held out there.
task("zenity-7", "press Keep", "cat code", "1",
     "zenity --question --text='Delete?' --ok-label=Delete --cancel-label=Keep", **S)
task("zenity-8", "choose Blue, press OK", "cat out", "Blue",
     "zenity --list --radiolist --column=Pick --column=Colour TRUE Red FALSE Green FALSE Blue", **S)
task("zenity-9", "tick I agree, press Next", "cat code", "0",
     "printf 'Licence text' | zenity --text-info --checkbox='I agree' --ok-label=Next", **S)
task("yad-4", "press Later", "cat code", "7", "yad --text='Update now?' --button=Now:0 --button=Later:7", **S)
task("yad-5", "enter 3 into Copies, press Print", "cat out; cat code", "3|\n0",
     "yad --form --field=Copies --button=Print:0 --button=Abort:1", **S)
save("mousepad-7", "press ctrl+a, open menu Edit > Convert > To Uppercase, press ctrl+s", TEXT["note.txt"].upper(), **S)
save("mousepad-8", "press ctrl+Home, type \"zero \", press ctrl+s", "zero " + TEXT["note.txt"], **S)
task("mousepad-9", "open menu View > Statusbar", "gsettings get org.xfce.mousepad.preferences.window statusbar-visible",
     "true", files=TEXT, **S)
shown("galculator", "press 1, press 0, press /, press 4, press =", "2.5", "galculator-6", **S)
shown("galculator", "press (, press 2, press +, press 3, press ), press *, press 6, press =", "30", "galculator-7", **S)
save("featherpad-6", "open menu Search > Replace, enter red into \"Search\", enter blue into \"To be replaced\"",
     TEXT["note.txt"], stops=True, **S)
save("featherpad-7", "press ctrl+Home, type \"zero \", press ctrl+s", "zero " + TEXT["note.txt"], **S)
odt("writer-6", "press ctrl+a, press Italic, press ctrl+s",
    "unzip -p doc.odt content.xml | grep -c 'fo:font-style=\"italic\"'", "1", **S)
odt("writer-7", "press ctrl+a, open menu Format > Text > UPPERCASE, press ctrl+s", "odt_text doc.odt", "HELLO WORLD.",
    **S)
odt("writer-8", "press ctrl+End, press Enter, open menu Insert > Page Break, press ctrl+s",
    "unzip -p doc.odt content.xml | grep -c 'fo:break-before=\"page\"'", "1", **S)
for browser in ("chromium", "firefox"):
    page(browser + "-6", "table.html", "press Next", "page next", **S)
    page(browser + "-7", "form.html", "choose Phone, set Number of guests to 4, press Create account",
         "name=|mail=|pw=|country=Austria|street=|by=phone|guests=4|about=", **S)
save("l3afpad-1", "press ctrl+End, type \"Done.\", open menu File > Save", TEXT["note.txt"] + "Done.", **S)
save("l3afpad-2", "open menu Edit > Select All, open menu Edit > Delete, type \"New\", press ctrl+s", "New", **S)
task("l3afpad-3", "open menu Help > About", "xdotool search --name About getwindowname %@ | head -1", "About Lɜafpad",
     files=TEXT, **S)
task("appearance-1", "go to tab Fonts, untick Enable anti-aliasing", "xfconf-query -c xsettings -p /Xft/Antialias", "0",
     **S)
task("appearance-2", "go to tab Fonts, choose Full in Hinting", "xfconf-query -c xsettings -p /Xft/HintStyle",
     "hintfull", **S)

# ---- new: 62 ---------------------------------------------------------------------------------------------------------

task("zenity-11", "enter ana into User, enter secret7 into Password, press OK", "cat out", "ana|secret7",
     "zenity --forms --add-entry=User --add-password=Password")
task("zenity-12", "choose York, press OK", "cat out", "York", "zenity --list --column=City 'New York' York Yorkton")
task("zenity-13", "press Save", "test -e code || echo open", "open", "zenity --question --text='Save As or Save all?'",
     stops=True)
task("zenity-14", "check that \"3 files\" is shown, press Show list, wait for Close", "test -e code || echo open", "open",
     "zenity --info --text='3 files were copied'", stops=True)
task("zenity-15", "enter \"notes 2.txt\" into Name, press OK", "cat out | xargs -0 basename", "notes 2.txt",
     "zenity --file-selection --save --filename=notes.txt")

task("yad-6", "choose Made in Italy, press OK", "cat out", "Made in Italy|",
     "yad --list --column=Label --radiolist --column=Text --print-column=2 FALSE 'Made in Spain' FALSE 'Made in Italy'")
task("yad-7", "enter \"12,50\" into Price, untick Paid, choose \"Red and white\" in Colour, press OK", "cat out",
     "12,50|FALSE|Red and white|",
     "yad --form --field=Price --field=Paid:CHK --field=Colour:CB '' TRUE 'Blue!Red and white!Black'")
task("yad-8", "go to tab Network, enter proxy.example into Host, press OK", "LC_ALL=C sort out", "proxy.example|\n|",
     "sh -c 'K=$$; yad --plug=$K --tabnum=1 --form --field=Nick & yad --plug=$K --tabnum=2 --form --field=Host & "
     "yad --notebook --key=$K --tab=User --tab=Network'")
task("yad-9", "press OK", "test -e code || echo open", "open", "yad --text=Wait --button=Stop:1 --button=Go:0",
     stops=True)

save("mousepad-10", "open menu Search > Find and Replace, enter red into \"Search for\", enter blue into "
     "\"Replace with\", press Replace, press Close, press ctrl+s", TEXT["note.txt"].replace("red", "blue", 1))
task("mousepad-11", "open menu Document > Tab Size > 4", "gsettings get org.xfce.mousepad.preferences.view tab-width",
     "uint32 4", files=TEXT)
save("mousepad-12", "press ctrl+End, type \"X\", close the window, press Save", TEXT["note.txt"] + "X")
task("mousepad-13", "open menu Edit > Preferences, tick \"Show line numbers\", close the window",
     "gsettings get org.xfce.mousepad.preferences.view show-line-numbers", "true", files=TEXT)
save("mousepad-14", "press ctrl+a, open menu Edit > Encrypt, press ctrl+s", TEXT["note.txt"], stops=True)

save("l3afpad-4", "open menu Search > Replace, enter red into Find what, enter blue into Replace with, "
     "tick Replace all at once, press Find and Replace, press OK, press ctrl+s", TEXT["note.txt"].replace("red", "blue"))
task("l3afpad-5", "open menu File > Save As, enter \"second.txt\" into Name, press Save As", "cat second.txt",
     TEXT["note.txt"], files=TEXT)
task("l3afpad-6", "open menu Options > Line Numbers, open menu File > Quit",
     "sed -n 6p .config/l3afpad/l3afpadrc", "1", files=TEXT)
save("l3afpad-7", "press ctrl+End, type \"X\", close the window, press No", TEXT["note.txt"])

shown("galculator", "press 8, press M+, press 2, press =, press MR", "8", "galculator-8", stops=True)  # M+ is disabled
shown("galculator", "open menu View > Scientific Mode, open menu Calculator > Number bases > Hexadecimal, press 1, press 5, press +, press 1, press =",
      "16", "galculator-9")
task("galculator-10", "open menu Edit > Preferences, then press Close", "xdotool search --onlyvisible --class galculator "
     "getwindowname %@ | grep -ci preferences", "0")
shown("galculator", "press 5, press x!, press =", "5", "galculator-11", stops=True)

task("featherpad-8", "open menu Options > Preferences, go to tab Text, tick \"Always show line numbers\", "
     "press Close", "grep -i linenumbers .config/featherpad/fp.conf", "lineNumbers=true", files=TEXT)
save("featherpad-9", "open menu File > New, type \"draft\", open menu File > Save As, enter \"draft.txt\" into File name, "
     "press Save", TEXT["note.txt"])
TASKS[-1].update(judge="cat draft.txt", expect="draft")
save("featherpad-10", "press ctrl+End, type \"X\", close the window, press Discard changes", TEXT["note.txt"])
TASKS[-1].update(judge="cat note.txt code", expect=TEXT["note.txt"] + "0")
save("featherpad-11", "press ctrl+a, open menu Edit > Upper, press ctrl+s", TEXT["note.txt"], stops=True)

odt("writer-9", "open menu Edit > Find and Replace, enter cat into Find, enter dog into Replace, press Replace All, "
    "press Close, press ctrl+s", "odt_text doc.odt", "A dog and a dog.", "A cat and a cat.")
odt("writer-10", "open menu Styles > Heading 1, press ctrl+s", "unzip -p doc.odt content.xml | grep -o '<text:h ' | head -1",
    "<text:h ")
odt("writer-11", "press ctrl+a, open menu Format > Align Text > Centered, press ctrl+s",
    "unzip -p doc.odt content.xml | grep -c 'fo:text-align=\"center\"'", "1")
odt("writer-12", "open menu File > Save As, enter \"copy.odt\" into Name, press Save", "odt_text copy.odt",
    "Hello world.")
odt("writer-13", "press ctrl+a, press Bold, press Publish, press ctrl+s", BOLD, "0", stops=True)

CELLS = "ods_text sheet.ods"
ods("calc-1", "enter B3 into Name Box, press Enter, type 42, press Enter, press ctrl+s", CELLS,
    "Item,Price\nPear,3\nApple,42\nPlum,5")
ods("calc-2", "open menu Sheet > Rename Sheet, enter Costs into Name, press OK, press ctrl+s", "ods_sheets sheet.ods",
    "Costs")
ods("calc-3", "press ctrl+a, press Bold, press ctrl+s",
    "unzip -p sheet.ods content.xml | grep -c 'fo:font-weight=\"bold\"'", "1")
ods("calc-4", "go to tab Second, type 7, press Enter, press ctrl+s", "ods_text sheet.ods 2", "7,x",
    more=[[["A", "x"]]])
ods("calc-5", "open menu Data > Sort Descending, press ctrl+s", CELLS, "Plum,5\nPear,3\nApple,2",
    rows=(("Pear", 3), ("Apple", 2), ("Plum", 5)))

FILES = {"files/notes.txt": "n", "files/Photos/beach.txt": "b", "files/Report (final).txt": "r", "files/a.txt": "a"}
LS = "ls files"
BEFORE = "Photos\nReport (final).txt\na.txt\nnotes.txt"
task("thunar-1", "double-click Photos, wait for beach.txt", "xdotool search --onlyvisible --class thunar getwindowname %@ | "
     "grep -c Photos", "1", files=FILES)
task("thunar-2", "open menu File > Create Folder, type \"Invoices\", press Create", LS,
     "Invoices\n" + BEFORE, files=FILES)
task("thunar-3", "right-click notes.txt, press Move to Trash", LS, BEFORE.replace("\nnotes.txt", ""), files=FILES)
task("thunar-4", "press \"Report (final).txt\", press F2, press ctrl+a, type \"Report.txt\", press Enter", LS,
     "Photos\nReport.txt\na.txt\nnotes.txt", files=FILES)
task("thunar-5", "right-click Music, press Delete", LS, BEFORE, files=FILES, stops=True)

page("firefox-8", "shop.html", "press Add to cart in the row of Green bowl", "add Green bowl/Small")
page("firefox-9", "table.html", "tick Select 1042, tick Select 1045, press Export selected",
     "select 1042\nselect 1045\nexport 1042,1045")
page("firefox-10", "form.html", "choose Guinea in Country, enter \"I like hills; and the sea.\" into About you, "
     "press Create account",
     "name=|mail=|pw=|country=Guinea|street=|by=mail|guests=1|about=I like hills; and the sea.")
page("firefox-11", "settings.html", "press More, press Reset to defaults, press Keep", "kept")
page("firefox-12", "table.html", "press Delete", "", stops=True)

page("chromium-8", "shop.html", "choose Large in Size of Oak tray, press Add to cart in the row of Oak tray",
     "add Oak tray/Large")
page("chromium-9", "shop.html", "press Add to cart in the row of Pepper mill", "", stops=True)
page("chromium-10", "shop.html", "scroll to Terms & conditions, press Terms & conditions", "terms")
page("chromium-11", "shop.html", "choose Pick up in store in Delivery, enter \"Ring twice, please\" into "
     "Note to the seller, press Place order, wait for Order received",
     "order|Pick up in store|false|true|Ring twice, please")
page("chromium-12", "table.html", "press Delete in the row of 1044", "delete 1044")
page("chromium-13", "table.html", "press Edit in the row of Ana Lima", "edit 1041")
page("chromium-14", "settings.html", "go to the Privacy tab, untick Share usage data, press Save changes",
     "save|ana|English|light|false|false|false|true|false")
page("chromium-15", "settings.html", "set Display name to Bo, choose Deutsch in Language, choose Dark, press Save changes",
     "save|Bo|Deutsch|dark|true|false|false|true|false")

task("qt6-5", "go to tab Extras, choose York in Destination, enter \"Gate 7\" into Note, go to tab Traveller, press Save",
     "cat out", "saved||Porto|0|Small||False|True|economy|York|Gate 7")
task("qt6-6", "enter \"\" into City, set Bags to 2, enter x1y2 into Code, press Save", "cat out",
     "saved|||2|Small|x1y2|False|True|economy||")
task("qt6-7", "go to tab Extras, press Delete booking, press Yes", "cat out", "deleted")
task("qt6-8", "press Pay later", "cat out", "", stops=True)

task("appearance-3", "go to tab Settings, tick \"Enable event sounds\"",
     "xfconf-query -c xsettings -p /Net/EnableEventSounds", "true")
task("appearance-4", "go to tab Fonts, untick Custom DPI setting", "xfconf-query -c xsettings -p /Xft/DPI", "-1")
task("keyboard-1", "untick Enable key repeat", "xfconf-query -c keyboards -p /Default/KeyRepeat", "false",
     "xfce4-keyboard-settings")
task("keyboard-2", "untick Show blinking, press Close", "xfconf-query -c xsettings -p /Net/CursorBlink; cat code",
     "false\n0", "xfce4-keyboard-settings")

# ---- third: 40 -------------------------------------------------------------------------------------------------------

T = {"group": "third"}
task("zenity-16", "Fill \"Owner's name\" with O'Brien, fill 'Pet \"nick\" name' with \"Rex & Co\"; press OK.", "cat out",
     "O'Brien|Rex & Co", "zenity --forms --add-entry=\"Owner's name\" --add-entry='Pet \"nick\" name'", **T)
task("zenity-17", "Check that Tea is ticked. Untick Tea. Tick Green tea, check that \"Green tea\" is ticked, then click OK",
     "cat out", "Green tea", "zenity --list --checklist --column=Pick --column=Drink FALSE 'Green tea' TRUE Tea FALSE Coffee",
     **T)
task("zenity-18", "press the Right key 5 times and press OK", "cat out", "25",
     "zenity --scale --text=Volume --value=20 --min-value=0 --max-value=100", **T)

task("yad-10", "select 'R&D > Lab' in \"Ship to\", then push OK", "cat out", "R&D > Lab|",
     "yad --form --field='Ship to:CB' 'Home!Work!R&D > Lab'", **T)
task("yad-11", "tick Milk in the row of Aldi, press OK", "cat out", "TRUE|Milk|Aldi|",
     "yad --list --checklist --column=Buy --column=Item --column=Shop FALSE Milk Lidl FALSE Milk Aldi FALSE Bread Spar", **T)
task("yad-12", "Enter 2026-12-24 into Arrival, check that Arrival equals \"2026-12-24\", press OK", "cat out", "2026-12-24|",
     "yad --form --field=Arrival:DT --date-format=%Y-%m-%d", **T)
task("yad-13", "tick \"Send copy\", enter \"line one; line two, and more.\" into Comment\nclick OK", "cat out",
     "TRUE|line one; line two, and more.|", "yad --form --field='Send copy:CHK' --field=Comment:TXT", **T)

save("mousepad-15", "Open the Edit menu, click Select All, press the Delete key, type 'It\\'s done', press ctrl+s", "It's done",
     **T)
task("mousepad-16", "open menu View > Color Scheme > Oblivion", "gsettings get org.xfce.mousepad.preferences.view "
     "color-scheme", "'oblivion'", files=TEXT, **T)
save("mousepad-17", "open menu Search > Go to..., set Line number to 3, press Jump to, press the Home key, type \">> \", "
     "press ctrl+s", TEXT["note.txt"].replace("three", ">> three"), **T)

task("l3afpad-8", "open menu Search > Find, fill Find what with green, press Find, wait until Find is gone or press Cancel",
     "cat note.txt; test -e code || echo open", TEXT["note.txt"] + "open", files=TEXT, stops=True, **T)
task("l3afpad-9", "wait for note.txt, press ctrl+a, type \"a, b and c; d > e & f\", press ctrl+s, close the window",
     "cat note.txt code", "a, b and c; d > e & f0", files=TEXT, **T)

shown("galculator", "open menu View > Scientific Mode, wait for sin, press 9, press 0, press sin", "0.8939966636", "galculator-12", **T)
shown("galculator", "tap 4, click 2, push -, press 5, press the = button", "37", "galculator-13", **T)
task("galculator-14", "open menu Edit > Preferences, check that \"Enable menu bar\" is ticked, press Close",
     "test -e code || echo open", "open", stops=True, **T)

task("featherpad-12", "open menu Options > Preferences, tick \"Start with side-pane mode\", select South, go to the Files tab, "
     "press Close", "sed -n 's/^sidePaneMode=//p' .config/featherpad/fp.conf", "true", files=TEXT, **T)
save("featherpad-13", "Press ctrl+a. Press the Delete key. Type \"1. \\\"quoted\\\" text\". Open menu File > Save",
     "1. \"quoted\" text", **T)
save("featherpad-14", "click Replace, enter \"red\" into \"Search...\", check that \"Replace\" is gone, press ctrl+s",
     TEXT["note.txt"], stops=True, **T)

odt("writer-14", "open menu Insert > Header and Footer > Header > Default Page Style, type \"Draft\", press ctrl+s",
    "unzip -p doc.odt styles.xml | grep -o '>Draft<'", ">Draft<", **T)
odt("writer-15", "press ctrl+End, open menu Insert > Hyperlink, enter https://example.org/a?b=1&c=2 into URL, enter "
    "\"O'Reilly & Sons\" into Text, press OK, press ctrl+s", "odt_text doc.odt; unzip -p doc.odt content.xml | "
    "grep -o 'href=\"https[^\"]*'", "Hello world.O'Reilly & Sons\nhref=\"https://example.org/a?b=1&amp;c=2", **T)
odt("writer-16", "press ctrl+a, open menu Format > Paragraph, go to tab \"Indents & Spacing\", set \"Before text\" to 1, press OK, "
    "press ctrl+s", "unzip -p doc.odt content.xml | grep -o 'margin-left=\"1in\"'", "margin-left=\"1in\"", **T)

ods("calc-6", "open menu Sheet > Insert Sheet at End, enter \"Q4 & more\" into Name, press OK, press ctrl+s",
    "ods_sheets sheet.ods", "First\nQ4 & more", **T)
ods("calc-7", "press ctrl+Home, type \"=2*21\", press the Enter key twice, type 'x, y', press Enter, press ctrl+s", CELLS,
    "42,Price\nPear,3\nx, y,2\nPlum,5", **T)
ods("calc-8", "right-click First, press Rename Sheet, enter Costs into Name, press OK, press ctrl+s",
    "ods_sheets sheet.ods", "Costs", **T)

task("thunar-6", "open menu View > Show Hidden Files, close the window",
     "xfconf-query -c thunar -p /last-show-hidden; cat code", "true\n0", files=FILES, **T)
task("thunar-7", "right-click \"Report (final).txt\", press Rename, enter \"Q&A > it's final.txt\" into \"Enter the new name\", press Rename", LS,
     "Photos\nQ&A > it's final.txt\na.txt\nnotes.txt", files=FILES, **T)
task("thunar-8", "double-click Photos, right-click beach.txt, click Copy, press alt+Up, press ctrl+v, wait for "
     "beach.txt", LS, "Photos\nReport (final).txt\na.txt\nbeach.txt\nnotes.txt", files=FILES, **T)

page("firefox-13", "store.html", "press Only necessary, press \"Add Cup & saucer to basket\", click 'Basket, 1 item'",
     "cookies needed\nadd 1 Cup & saucer\nbasket", **T)
page("firefox-14", "panel.html", "check that Save is disabled, go to tab Look & feel, tick Dark mode, select Compact, check that "
     "Save is enabled, press Save, wait for \"All changes saved\"",
     "save|false|true|Europe/Vienna|true|false|compact|||5", **T)
page("firefox-15", "team.html", "click Edit in the row of \"O'Neill, Sean\", fill in Job title with 'Head of \"R&D\"', press Save",
     "edit O'Neill, Sean|O'Neill, Sean|Head of \"R&D\"", **T)
page("firefox-16", "stay.html", "enter 12/24/2026 into Check-in, enter 12/27/2026 into Check-out, choose 2 in Adults, select Double "
     "room, enter Ana into First name, enter Lima into Last name, press Book now, wait for Booking confirmed",
     "book|2026-12-24|2026-12-27|2|0||double|false|false|Ana|Lima|", **T)
page("firefox-17", "board.html", "press Show archive, press Shipping costs, press Show all rates, press Paint the fence, press "
     "Close note", "archive\nrates\ncard Paint the fence\nclosed", **T)

page("chromium-16", "store.html", "press \"Accept all\", press Brand, tick \"O'Hara & Sons (7)\", press Price, set To to 50, choose "
     "\"Price: low to high\" in Sort by, press Show results", "cookies all\nfilter|O'Hara||50|Price: low to high", **T)
page("chromium-17", "panel.html", "tick \"Start when I log in\", choose Europe/Lisbon in Time zone, go to tab Mail, enter "
     "\"Best, Ana & Bo\" into Signature, set \"Undo send for\" to 10, press Save",
     "save|true|true|Europe/Lisbon|false|false|cosy|Best, Ana & Bo||10", **T)
page("chromium-18", "team.html", "tick Active in the row of Dora Ek, press Remove in the row of Bo Chen, press \"Yes, remove\", wait "
     "until Bo Chen is gone", "active Dora Ek=true\nremove Bo Chen", **T)
page("chromium-19", "stay.html", "enter 12/24/2026 into Check-in, enter 12/27/2026 into Check-out, set Children to 1, tick Breakfast "
     "included, scroll to Special requests, enter \"Late arrival; quiet room, please.\" into Special requests, press Book now, wait "
     "for Booking confirmed",
     "book|2026-12-24|2026-12-27|1|1||single|true|false|||Late arrival; quiet room, please.", **T)
page("chromium-20", "board.html", "click Vegetables, click Root vegetables, click Carrots, click My cards, click Buy seeds, check that "
     "\"2 of 5 done\" is shown", "leaf Carrots\nmine\ncard Buy seeds", **T)
page("chromium-21", "team.html", "press Remove, press \"Yes, remove\"", "", stops=True, **T)

task("qt6-9", "check that Pay later is disabled and check that City equals Porto, fill Code with 'pass, word', press Save",
     "cat out", "saved||Porto|0|Small|pass, word|False|True|economy||", **T)
task("qt6-10", "Open the File menu, press Duplicate, then check that Save is shown", "cat out", "menu|Duplicate", **T)
