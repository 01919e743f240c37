/* policy_impl.h - struct policy and its rules.  Private to gate/policy*.c. */
#pragma once

#include "gate/policy.h"
#include "gate/zone.h"

#include "base/doc.h"
#include "base/regex.h"

enum {
    RULE_MAX_LIST = 64,
    AGREEING = 2, /* number of regexes for names of buttons that accept a dialog */
};

enum rule_regex {
    RULE_ELEMENT,
    RULE_TEXT,
    RULE_TITLE,
    RULE_CLASS,
    RULE_PROGRAM,
    RULE_DIALOG,
    RULE_EXCEPT,
    RULE_REGEXES
};
extern const char *const rule_regex_keys[RULE_REGEXES]; /* "element", ... */

struct chord { /* a set of keys: policy_key() of each, sorted, without duplicates */
    uint32_t keys[POLICY_MAX_KEYS];
    int n;
};

struct rule_list {
    char **at;
    int n;
};

struct rule_after {
    enum policy_counter of;
    double n;
};

struct rule {
    enum policy_verdict verdict;
    char *name;
    const char *file; /* borrowed */
    int line;

    uint32_t kinds;                    /* bit per kind; 0: any */
    struct regex *regex[RULE_REGEXES]; /* NULL: any */
    int terminal, browser, new_goal;   /* 1 yes, 0 no, -1: either */
    bool zoned;
    struct zone zone;
    struct chord *chords;         /* [chord_texts.n] */
    struct rule_list chord_texts; /* as written in the file */
    int longer;                   /* characters; -1: any */
    struct rule_list hosts, secrets;
    struct rule_after *after;
    int n_after;
};

struct policy {
    struct doc *file, *builtin; /* file may be NULL */
    struct rule *rules;
    int n, cap;
    enum policy_verdict otherwise;
    int otherwise_line; /* 0: not in the file */
    struct policy_limits limits;
    struct regex *terminals, *launchers, *browsers, *agreeing[AGREEING];
    bool with_builtin;
    char sha256[65];
};

/* ---- policy_rule.c ------------------------------------------------------------------------------- */

int rule_read(struct rule *r, const struct doc *y, const struct doc_node *n, struct err *e);
void rule_free(struct rule *r);
void rule_print(const struct rule *r, struct buf *out);
/* Returns the number of words, chords, hosts and names that the rule looks for; at least 1. */
int rule_patterns(const struct rule *r);
int policy_read_verdict(const struct doc *y, const struct doc_node *n, enum policy_verdict *out,
                        struct err *e);

/* ---- policy_limits.c: the block "limits:" ------------------------------------------------------------ */

struct policy_limits limits_default(void);
int limits_read(struct policy_limits *l, const struct doc *y, const struct doc_node *n, struct err *e);
/* Prints the limits that differ from the default. */
void limits_print(const struct policy_limits *l, struct buf *out);

/* ---- policy_chord.c ------------------------------------------------------------------------------ */

void chord_add(struct chord *c, uint32_t keysym);
bool chord_within(const struct chord *part, const struct chord *whole);
/* Calls visit for each set of keys that would be down together during the action, until it returns false. */
void chords_of(const struct policy_subject *s, bool (*visit)(void *arg, const struct chord *c), void *arg);
