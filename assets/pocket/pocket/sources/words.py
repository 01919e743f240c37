"""Words for screens and tasks, split into training and evaluation.

A word is held out if the CRC of its lower-case letters is divisible by five, which works for listed and
invented words. Fixed wordings, names of closing buttons and digits are in both sets. A `Lexicon` draws from
one set only. Invented words and random letters keep reading compositional: a model that knows only the
lists fails.
"""

import zlib

INTERFACE = """Save Open Close Cancel Discard Apply Delete Remove Rename Copy Paste Cut Print Share Send
Receive Reply Forward Archive Restore Undo Redo Retry Ignore Abort Continue Finish Start Stop Pause Resume
Play Record Next Back Previous Skip Help About Details More Less Show Hide Expand Collapse Edit View Insert
Format Tools Window Options Settings Preferences Account Profile Language Keyboard Display Sound Network
Printer Scanner Update Upgrade Install Download Upload Import Export Backup Refresh Reload Reset Clear
Search Filter Sort Select Accept Decline Agree Refuse Allow Block Enable Disable Connect Disconnect Login
Logout Register Subscribe Submit Confirm Verify Approve Reject Publish Draft Preview Merge Split Compare
Attach Detach Lock Unlock Pin Mute Silent Volume Bright Dark Light Large Small Medium Normal Custom Default
Manual Automatic Always Never Once Daily Weekly Monthly Yearly Later Now Today Tomorrow Yes No Maybe None
All Other Public Private Shared Local Remote Online Offline Visible Hidden Active Idle Busy Away Urgent
Important Personal Standard Express Economy Business First Premium Basic Advanced Simple Complete Partial
Quick Slow Fast""".split()
NOUNS = """Morning Noon Evening Night Window Aisle Middle Front Rear Coffee Tea Water Juice Milk Bread
Butter Cheese Apple Banana Cherry Lemon Orange Peach Plum Grape Tomato Carrot Onion Potato Rice Pasta Soup
Salad Pepper Sugar Honey Garlic Ginger Olive Walnut Almond Chicken Salmon Trout Beef Lamb Turkey Bacon Egg
Table Chair Lamp Carpet Mirror Curtain Pillow Blanket Towel Basket Bottle Bucket Candle Hammer Needle Ribbon
Ladder Engine Wheel Pedal Bicycle Tractor Wagon Boat Ferry Harbor Bridge Tunnel Tower Castle Church Temple
Palace Museum Library School Hospital Bakery Market Station Airport Garden Forest Meadow Valley Mountain
River Lake Island Desert Ocean Beach Cloud Storm Thunder Rainbow Winter Spring Summer Autumn Copper Silver
Golden Iron Marble Granite Crystal Diamond Violet Purple Yellow Green Crimson Scarlet Indigo Amber Ivory
Black White Gray Brown Pink Tiger Falcon Eagle Rabbit Badger Otter Beaver Dolphin Turtle Lizard Spider
Beetle Pigeon Sparrow Raven Horse Camel Donkey Monkey Guitar Violin Piano Trumpet Drum Flute Opera Ballet
Poetry Novel Letter Paper Pencil Folder Report Invoice Receipt Budget Salary Contract Project Meeting Agenda
Minutes Office Branch Client Vendor Partner Manager Driver Pilot Nurse Doctor Teacher Student Farmer Painter
Writer Singer Dancer Lawyer Baker Butcher Tailor Guest Owner Photo Video Music Email Phone Street Number
Country Region Postcode Company Comment Subject Message Password Nickname Surname Birthday Address Quantity
Amount Weight Height Length Colour Size Model Serial Ticket Parcel Newsletter Reminder Calendar Contact
Favourite Bookmark History Gallery Camera Battery Charger Sensor Antenna Signal Channel Balcony Kitchen
Bathroom Garage Cellar Attic Corner Square Circle Triangle Pyramid Compass Vegetarian Vegan Kosher Halal
Gluten Luggage Blankets Wheelchair Insurance Transfer Parking Breakfast Lunch Dinner Sauna Fitness Laundry
Internet""".split()
PROSE = """the a of to in on at for with from by is are was will can may must not and or but if when then
please what who which this that these your our their choose what happens next before after leaving page
changes will be lost are you sure want keep anything fill each line check answers how often should we write
where does it go two three seats left open until late ask again only one choice possible tell us more about
yourself nothing sent yet file exists already pick any number of things take part needs attention cannot
undone every person counts early bird gets worm slow rivers run deep old maps show lost roads small steps
reach far""".split()
FIRST = """Ana Ben Carla David Elena Felix Greta Hugo Irene Jonas Karin Lukas Maria Nils Olga Pavel Quinn
Rosa Stefan Tina Ulrich Vera Walter Xenia Yusuf Zora Amir Bella Chen Dana Emil Fatima Goran Hana Ivan Julia
Kofi Leila Marco Nadia Oscar Priya Rafael Sofia Tomas Ursula Viktor Wanda Yara Zeno Alice Boris Clara Dmitri
Eva Frank Gloria Henrik Ida Jorge Kira Liam Mona Noah Otto Petra Ravi Sara Theo Uma""".split()
LAST = """Lima Silva Costa Meyer Novak Rossi Garcia Lopez Martin Dubois Laurent Keller Weber Fischer Wagner
Becker Hansen Olsen Larsen Nielsen Virtanen Korhonen Kowalski Nowak Horvat Popov Ivanova Petrov Sato Tanaka
Suzuki Kim Park Nguyen Tran Singh Patel Sharma Khan Ahmed Hassan Okafor Mensah Diallo Smith Jones Taylor
Brown Wilson Evans Walker Wright Green Baker Hill Clark Young Allen King Scott Adams Moore Cruz Reyes Ramos
Ortiz Vega Soto""".split()
CITIES = """Paris Rome London Berlin Madrid Lisbon Vienna Prague Warsaw Athens Dublin Oslo Stockholm
Helsinki Copenhagen Brussels Amsterdam Geneva Zurich Milan Naples Venice Turin Munich Hamburg Cologne
Dresden Lyon Nice Bordeaux Toulouse Porto Seville Valencia Malaga Granada Budapest Bucharest Sofia Belgrade
Zagreb Split Riga Tallinn Vilnius Krakow Gdansk Istanbul Ankara Izmir Cairo Tunis Algiers Casablanca Dakar
Lagos Nairobi Accra Boston Chicago Denver Dallas Houston Seattle Portland Toronto Montreal Quebec Lima
Bogota Quito Santiago Havana Tokyo Osaka Kyoto Seoul Busan Beijing Shanghai Delhi Mumbai Jaipur Bangkok
Hanoi Manila Jakarta Sydney Perth Melbourne Auckland Reykjavik Bergen Malmo Basel Graz Linz Bilbao Palermo
Catania Genoa Verona Florence Bari""".split()
CARRIERS = """Aerlin Northair Skyways Condora Meridian Swift Albatros Coastal Sunwing Delfin Astra Lakeside
Falconet Windrose Levant Borealis Austral Cirrus Zephyr Tramontana""".split()
MONTHS = "January February March April May June July August September October November December".split()
CLOSING = ["OK", "Save", "Apply", "Continue", "Submit", "Done", "Send", "Next", "Finish", "Confirm"]
DISMISS = ["Cancel", "Back", "Close", "Help", "Reset", "Skip"]

_HEADS = "b c d f g h j k l m n p r s t v w z br cr dr fl gl gr kl pl pr sk sl sp st tr th sh ch qu x y"
_HEADS = _HEADS.split()
_VOWELS = "a e i o u a e i o u ai ea ia oo ou au io y".split()
_TAILS = "||||n|r|s|l|t|m|k|d|x|nd|rt|st|ck|p|g|v|z".split("|")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TWINS = 0.2  # fraction of names that differ by one letter from another name of the page
MARKS = "!#$%&'()*+,-./:;=?@[]_{}"


def held_out(text):
    """Returns whether a word of the text is held out; digits and marks are in both sets."""
    words = "".join(c if c.isalpha() else " " for c in text.lower()).split()
    return any(len(w) > 1 and zlib.crc32(w.encode()) % 5 == 0 for w in words)


class Lexicon:
    """Draws words of one set: all held out, or none."""

    def __init__(self, rng, evaluation=False):
        self.rng, self.evaluation = rng, evaluation

    def fits(self, text):
        if not self.evaluation:
            return not held_out(text)
        words = "".join(c if c.isalpha() else " " for c in text).split()
        return all(len(w) < 2 or held_out(w) for w in words)

    def until(self, make, longest=99):
        while True:
            text = make()
            if len(text) <= longest and self.fits(text):
                return text

    def invented(self):
        """Returns a pronounceable word of one to four syllables, lower case."""

        def make():
            n = self.rng.choices((1, 2, 3, 4), (1, 5, 4, 1))[0]
            parts = (_HEADS, _VOWELS, _TAILS) * n
            return "".join(map(self.rng.choice, parts))

        return self.until(make, 11)

    def letters(self, low=2, high=9):
        n = self.rng.randint(low, high)
        return self.until(lambda: "".join(self.rng.choice(LETTERS) for _ in range(n)))

    def jumble(self, letters, most):
        """Returns 1 to `most` random letters."""

        def make():
            return "".join(self.rng.choice(letters) for _ in range(self.rng.randint(1, most)))

        return self.until(make)

    def listed(self, words):
        return self.until(lambda: self.rng.choice(words))

    def cased(self, word):
        return self.rng.choices((word.capitalize(), word, word.upper()), (6, 3, 1))[0]

    def word(self):
        """Returns a word: listed, invented or of random letters."""
        kind = self.rng.random()
        if kind < 0.5:
            return self.cased(self.listed(INTERFACE + NOUNS))
        return self.cased(self.invented() if kind < 0.85 else self.letters())

    def label(self, longest=12):
        """Returns a label: a word, two words, or a word with a number."""

        def make():
            kind = self.rng.random()
            if kind < 0.45:
                return self.rng.choice(INTERFACE + NOUNS)
            if kind < 0.72:
                return self.invented().capitalize()
            if kind < 0.80:
                return self.cased(self.letters(2, 8))
            if kind < 0.93:
                second = self.rng.choice(NOUNS).lower() if self.rng.random() < 0.6 else self.invented()
                return self.rng.choice(INTERFACE + NOUNS) + " " + second
            return self.rng.choice(NOUNS) + " " + str(self.rng.randint(1, 99))

        return self.until(make, longest)

    def labels(self, n, longest=12):
        """Returns n distinct labels. One is a variant of the one before with probability 0.45 (0.2 in
        evaluation).
        """
        out, near = [], 0.2 if self.evaluation else 0.45
        while len(out) < n:
            text = self.neighbour(out[-1]) if out and self.rng.random() < near else self.label(longest)
            if len(text) <= longest and self.fits(text) and text.lower() not in [o.lower() for o in out]:
                out.append(text)
        self.rng.shuffle(out)
        return out

    def neighbour(self, text):
        """Returns the text with one letter replaced, omitted or doubled."""
        k = self.rng.randrange(len(text))
        if not text[k].isalpha() or len(text) < 4:
            return self.label()
        other = self.rng.choice(LETTERS)
        return text[:k] + self.rng.choice((other, "", text[k].lower() * 2)) + text[k + 1 :]

    def beside(self, names, make):
        """Returns make(), or in training with probability TWINS a variant of one of `names`; appends it to
        names.
        """
        text = make()
        if names and not self.evaluation and self.rng.random() < TWINS:
            other = self.neighbour(self.rng.choice(names[-8:]))
            text = other if self.fits(other) else text
        names.append(text)
        return text

    def sentence(self, low=3, high=9):
        words = [
            self.listed(PROSE) if self.rng.random() < 0.7 else self.word().lower()
            for _ in range(self.rng.randint(low, high))
        ]
        return " ".join(words).capitalize() + self.rng.choice((".", ".", "?", ""))

    def person(self, longest=14):
        def make():
            kind = self.rng.random()
            if kind < 0.45:
                return self.rng.choice(FIRST) + " " + self.rng.choice(LAST)
            first = self.rng.choice(FIRST) if kind < 0.6 else self.invented().capitalize()
            return first if kind > 0.9 else first + " " + self.invented().capitalize()

        return self.until(make, longest)

    def city(self):
        """Returns a town of at most 12 characters; half of them are invented."""

        def make():
            kind = self.rng.random()
            if kind < 0.5:
                return self.rng.choice(CITIES)
            if kind < 0.92:
                return self.invented().capitalize()
            return self.rng.choice(("San ", "New ", "Port ", "Bad ")) + self.invented().capitalize()

        return self.until(make, 12)

    def carrier(self):
        def make():
            if self.rng.random() < 0.5:
                return self.rng.choice(CARRIERS)
            return self.invented().capitalize() + self.rng.choice(("", "", " Air", " Jet"))

        return self.until(make, 12)

    def date(self):
        day, month = self.rng.randint(1, 31), self.rng.choice(MONTHS)
        forms = [f"{day} {month}", f"{month} {day}", f"{day} {month[:3]}"]
        forms += [f"{day}.{self.rng.randint(1, 12)}.", f"2026-{self.rng.randint(1, 12):02}-{day:02}"]
        return self.rng.choices(forms, (12, 1, 2, 1, 1))[0]

    def typed(self, longest=14):
        """Returns a text to type: a name, word, number or code."""

        def make():
            kind = self.rng.random()
            if kind < 0.3:
                return self.person(longest)
            if kind < 0.4:
                return self.city()
            if kind < 0.6:
                return self.word()
            if kind < 0.75:
                return self.letters(3, longest)
            if kind < 0.85:
                return str(self.rng.randint(0, 10 ** self.rng.randint(1, 9)))
            if kind < 0.9:
                return self.clock()
            if kind < 0.95:
                return self.letters(2, 5).upper() + "-" + str(self.rng.randint(1, 9999))
            return self.letters(3, 6) + "@" + self.letters(2, 4) + ".org"

        return self.until(make, longest)

    def clock(self):
        return f"{self.rng.randint(0, 23)}:{self.rng.randint(0, 59):02}"

    def token(self):
        """Returns one item of dense text."""
        kind = self.rng.random()
        if kind < 0.30:
            return self.cased(self.listed(INTERFACE + NOUNS + PROSE))
        if kind < 0.55:
            return self.cased(self.invented())
        if kind < 0.78:
            return self.jumble(LETTERS + LETTERS.upper(), 9)
        if kind < 0.86:
            return str(self.rng.randint(0, 10 ** self.rng.randint(1, 8)))
        if kind < 0.91:
            return self.clock()
        if kind < 0.96:
            return self.listed(PROSE) + self.rng.choice(MARKS)
        return self.jumble(MARKS + "0123456789" + LETTERS, 5)
