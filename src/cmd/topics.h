/* topics.h - pages of `holorun help` about tables that the program itself uses. */
#ifndef HOLORUN_CMD_TOPICS_H
#define HOLORUN_CMD_TOPICS_H

struct topic {
    const char *name, *title; /* "dialects", "reply formats and the models that they suit" */
    char *(*text)(void);      /* lines; the caller frees them */
};

extern const struct topic topics[]; /* ends with {0} */
/* The names as a suffix of an argument: "|dialects|providers". */
#define TOPIC_NAMES "|dialects|providers"

#endif
