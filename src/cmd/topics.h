/* topics.h - pages of `holorun help` that are generated from the program's own tables. */
#pragma once

struct topic {
    const char *name, *title; /* such as "dialects", "reply formats and their models" */
    char *(*text)(void);      /* returns the lines; the caller frees them */
};

extern const struct topic topics[]; /* terminated by {0} */
/* the names as a suffix of an argument */
#define TOPIC_NAMES "|dialects|providers"
