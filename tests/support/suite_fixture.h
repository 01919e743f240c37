/* suite_fixture.h - suites from the text in a test, and files beside them. */
#ifndef HOLORUN_TESTS_SUITE_FIXTURE_H
#define HOLORUN_TESTS_SUITE_FIXTURE_H

#include "qa/suite/suite.h"

/* The suite in this text, as a file "s.yaml" of the working folder; the test fails if it is invalid. */
struct suite *suite_of(const char *text);
const struct test *test_of(const struct suite *s, const char *id);

/* A temporary folder for files. */
void suite_fixture_open(void);
void suite_fixture_close(void);
/* Writes a file; returns its path, valid until the next call. */
const char *suite_fixture_file(const char *name, const char *text);

/* head, n times text, tail; the caller frees it. */
char *repeat(const char *head, const char *text, int n, const char *tail);

/* Lists ended by NULL. */
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
void same_list(const char *const *list, const char *const *want);
bool has(const char *const *list, const char *word);

/* After the first `word` in text; the test fails if there is none. */
const char *after(const char *text, const char *word);

#endif
