/* lexicon.h - English words of sentences and of dialogs, by their use; the data of this room. */
#pragma once

/* ---- sentences that steps do not express (clauses.c) ---- */

#define NEGATIONS                                                                                            \
    "not|never|dont|doesnt|wont|cant|shouldnt|mustnt|cannot|none|neither|nor|nothing|if|unless|or|either|"   \
    "except|excluding|without|but|instead|rather|otherwise|whether|when|while|until|avoid|skip|ignore|"      \
    "refrain|forget|prevent"
/* of quantity, order and time, which a name must have */
#define QUANTITIES                                                                                           \
    "no|once|every|each|all|any|anything|everything|everyone|both|some|several|few|many|only|than|more|"     \
    "less|least|most|other|another|second|third|fourth|fifth|cheapest|best|worst|largest|smallest|biggest|"  \
    "newest|oldest|latest|fastest|slowest|lowest|highest|shortest|longest|nearest|earliest|again|twice|"     \
    "remember|same|stop|keep|leave|random|yesterday|tomorrow"
/* ... of these, those that a model reads */
#define UNDERSTOOD                                                                                           \
    "no|once|any|anything|anyone|some|several|few|many|more|less|other|again|remember|same|stop|keep|leave|" \
    "yesterday|tomorrow|rather|instead"
#define WEAK_NOTS "no|non|nope|minus|sans|hardly"
#define NUMBERS   "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen"
#define REQUESTS  "can|could|would|will"
#define GREETINGS "hi|hello|hey|ok|okay|so|well|and|please|dear|thanks"
#define ASKS      "what|which|who|whose|where|why|how"
#define BE        "is|are|was|were|am|should|shall|may|does|did"
#define DO        "do|have|has|can|could|would|will"

/* before and in a sum (frames.c) */
#define ASKS_SUM                                                                                             \
    "quick|sum|calculate|compute|work|out|what|what's|whats|is|how|much|many|the|result|of|please|tell|"     \
    "me|do|i|get|if|equals|can|you|could|figure|give|makes|make|need|want|i'd|like|thanks"

#define ASKS_TOLD "how|what|what's|whats|calculate|compute|figure|much"

/* ---- verbs that begin a clause (clauses.c) ---- */

#define VERBS_PRESS  "press|click|tap|hit|push|place"
#define VERBS_WRITE  "write|type|enter|put|insert|jot|input|note"
#define VERBS_CHOOSE "choose|select|pick|use|take|make"
#define VERBS_UNTICK "untick|uncheck|disable|deactivate"
#define VERBS_SAVE   "save|store"
#define VERBS_CLOSE  "close|quit|exit|leave|shut|dismiss"
#define VERBS                                                                                                \
    "keep|bump|raise|lower|enrol|enroll|swap|exchange|append|erase|empty|wipe|throw|install|calculate|"      \
    "compute|work|fill|complete|register|sign|log|set|change|adjust|move|tick|check|enable|activate|open|"   \
    "show|display|go|view|replace|substitute|wait|order|buy|book|submit|send|confirm|accept|cancel|discard|" \
    "delete|remove|create|add|copy|cut|paste|undo|redo|print|sort|zoom|start|turn|switch|hide|answer|apply|" \
    "finish|reset|clear|give|ask|let|rename|export|import|increase|decrease|subscribe|agree|request|"        \
    "reserve|toggle|run|refresh|reload|decline|reject|name|call|join|continue|proceed|approve|lock|mute|"    \
    "play|search|find|double-click|right-click|scroll|attach|upload|scan|forward|translate|convert|"         \
    "download|invite|archive|encrypt|email|share"
/* polite words at the start of a clause, one or more to be removed */
#define POLITE                                                                                               \
    {"please"}, {"kindly"}, {"now"}, {"just"}, {"also"}, {"and"}, {"then"}, {"finally"}, {"afterwards"},     \
        {"next"}, {"yes"}, {"can", "you"}, {"could", "you"}, {"would", "you"}, {"let's"}, {"go", "ahead"},   \
        {"i", "want"}, {"i", "need"}, {"i'd", "like"}, {"i", "would", "like"}, {"we", "would", "like"},      \
        {"carry", "on", "with"}, {"go", "on", "with"},

/* ---- words that need no name in the window (cover.c) ---- */

#define LIGHT                                                                                                \
    "want|wants|need|needs|like|likes|prefer|prefers|get|gets|give|take|takes|make|makes|"                   \
    "use|uses|have|has|having|go|going|goes|come|comes|stay|staying|do|does|let|lets|got|been|"              \
    "yes|ok|okay|sure|fine|well|thank|too|really|very|quite|perhaps|"                                        \
    "maybe|ready|finished|done|right|thing|things|one|ones|kind|included|additional|additionally|"           \
    "hi|hello|hey|dear|i'm|i'd|i'll|we'd|we're|we'll|it's|that's|he|she|they|through|onto|along|around|"     \
    "i've|we've|who|am|being|down|today|then|thx|im|brr|oh|um|mine|yours|love|together|"                     \
    "brought|bring|she's|he's|they're|there's|who's|what's|still|already|actually|"                          \
    "basically|probably|indeed|course|bit|lot|shall|may|might|must|same|stuff|way|"                          \
    "kindly|gladly|lets|which|where|how|because|since|us|hers|ours|theirs|leaving|"                          \
    "everybody|nah|look|see"
/* ... after a pronoun, in statements of people about themselves */
#define STATES                                                                                               \
    "work|works|working|live|lives|living|travel|travels|travelling|traveling|speak|speaks|speaking|"        \
    "come|coming|arrive|arriving|fly|flying|drive|driving|ride|sleep|start|starting|study|studying|say|"     \
    "think|guess|choose|select|pick|going|staying|looking"
#define SUBJECTS "i|we|he|she|they|i'm|we're|am|are|is|to|i'd|i'll|we'll|would|will"
#define ASIDES   "i|i'm|i've|we|we're|we've|it's|that's|thanks|thank|hi|hello|great|good|fine|well"
#define WISHES   "need|needs|want|wants|prefer|must|should|would|with|for|please|i'd|we'd|let|wish|i'll|we'll"

/* ---- statements and negations (parts.c) ---- */

#define SELF                                                                                                 \
    "i|i'm|im|i've|i'll|we|we're|we've|we'll|my|our|it|it's|its|this|there|that's|the|nobody|today|tomorrow"
/* beside the name of what a part denies: "I don't want X any longer" */
#define SCOPE_WORDS                                                                                          \
    "any|longer|more|anymore|all|at|need|needs|want|wants|like|needed|wanted|necessary|number|address|"      \
    "required|other|it's|is|other|please"

/* ---- verbs that a kind of step covers (cover.c) ---- */

#define SETS                                                                                                 \
    "set|change|adjust|move|turn|switch|put|add|give|show|play|view|open|print|bump|raise|lower|increase|"   \
    "decrease|reduce|become|move|pick|stay|staying|keep|brought|bring|make|sent"
#define ENTERS                                                                                               \
    "create|new|enter|register|fill|sign|log|number|address|complete|write|type|input|insert|jot|note|hand|" \
    "assign|assigned|reassign|belongs"
#define CALLS   "name|call" /* ... a field for a name */
#define TICKS   "include|enable|tick|check|activate|including"
#define UNTICKS "unsubscribe|take|off|remove|drop|untick|uncheck|disable|deactivate|deselect"
#define SAVES                                                                                                \
    "save|store|keep|file|copy|name|named|call|called|under|as|document|text|note|changes|put|what's"
/* a pressed button covers the verbs that are in a group with a word of its name */
#define COMMITS                                                                                              \
    "order|buy|purchase|book|reserve|request|reservation|booking|get", "submit|send",                        \
        "confirm|accept|ok|okay|agree|approve", "register|sign|join|registration|enrol|enroll|subscribe",    \
        "continue|proceed|next"

/* ---- buttons and ticks (fill.c) ---- */

#define OFF "off|unsubscribe|untick|uncheck|disable|deactivate|remove|drop|deselect|unselect"
#define CLOSING                                                                                              \
    "cancel|close|help|no|not|skip|dismiss|discard|reset|defaults|back|quit|abort|later|more|about|options|" \
    "stay|keep|leave"
#define ENDINGS "ok|apply|save|done|submit"
#define DELETES "delete|remove|erase|clear"
#define CONSENT "agree|accept|consent|understand|understood"
#define SHOWS   "show|use|enable|play|allow|print|display|activate|include|receive|add|send|in"
#define WANTS   "want|wants|need|needs|would"
#define GOODS   "order|buy|book|reserve|request|get"
/* ... that are not pressed unless the task has their verb or a wish */
#define SERIOUS                                                                                              \
    "order|buy|purchase|pay|book|reserve|rent|hire|send|post|publish|sell|transfer|donate|upload|reject|"    \
    "decline|block|install|uninstall|format|restart|log|merge|overwrite"
#define ORDERS                                                                                               \
    "make|place|order|buy|purchase|book|reserve|request|submit|send|register|sign|join|enrol|subscribe"
#define PRONOUNS "it|them|that|this|me|him|her|us|everything|things|as|alone"

/* ---- fields (fill_fields.c) ---- */

#define JOINTS "is|are|=|to|as|should|be|called|named|name|id|number|address|of|will|shall|with|reads|says"
#define NAMING "for|under|by|as|of|named|called|name"
#define ADDING "add|register|enrol|enroll"
/* verbs that are names of fields, too */
#define FIELD_VERBS "phone|mail|email|e-mail|text|message|post|ship|label|date|title"
#define COLOURS                                                                                              \
    "red|green|blue|yellow|orange|purple|pink|brown|black|white|grey|gray|violet|turquoise|silver|gold"
#define DAYS                                                                                                 \
    "monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|may|june|july|"   \
    "august|september|october|november|december|christmas|easter"
#define NAMES                                                                                                \
    "name|nickname|alias|guest|customer|person|recipient|passenger|owner|author|contact|client|user|"        \
    "username|reader"
#define PLACES  "city|town|place|from|origin|location"
#define TARGETS "to|destination|city|town|recipient|receiver"

/* ---- words of one meaning, and those that name no thing (match.c) ---- */

#define SYNONYMS                                                                                             \
    "delete|remove|erase|trash", "preferences|settings|options|configuration", "quit|exit",                  \
        "search|find|look", "large|big", "small|little", "colour|color", "picture|photo|image",              \
        "ok|confirm|accept|done", "cancel|abort|dismiss", "discard|throw", "order|buy|purchase",             \
        "send|submit", "email|mail|e-mail", "phone|telephone|mobile", "city|town", "quantity|amount|pieces", \
        "copy|duplicate", "new|create", "help|manual", "font|typeface", "enlarge|magnify|zoom",              \
        "save|store", "show|display|view", "next|continue|proceed|forward", "previous|back", "gift|present", \
        "shipping|delivery", "note|comment|remark", "user|username", "wrap|wrapping",                        \
        "guest|guests|people|person|persons|visitor|visitors|adults", "percent|%",                           \
        "kg|kilo|kilogram|kilogramme", "cm|centimetre|centimeter", "password|passphrase|passcode|pin",       \
        "participant|attendee", "fullscreen|full-screen", "surname|lastname", "redo|repeat",                 \
        "start|begin|launch", "bicycle|bike", "folder|directory", "reset|restore"
#define FILLERS                                                                                              \
    "the|a|an|to|in|into|on|of|for|at|with|by|from|as|and|my|me|i|it|its|this|that|these|those|please|is|"   \
    "be|are|your|you|we|us|our|button|field|box|checkbox|option|menu|item|list|tab|link|icon|entry|window|"  \
    "dialog|form|program|app|application|here|there|just|now|also|so|want|would|like|need|some|mode|"        \
    "setting|value|called|named|current|up|out|have|let|can|could|will|should|their|his|her|them|ahead|"     \
    "simply|thanks|under|using|via|him|she|he"
