/* suite_fixture.h - parses suites from a test's text, and writes files beside them. */
#pragma once

#include "qa/suite/suite.h"

/* Parses a suite as the file "s.yaml" of the working folder; fails the test if it is invalid. */
struct suite *suite_of(const char *text);
const struct test *test_of(const struct suite *s, const char *id);

/* Opens a temporary folder for files. */
void suite_fixture_open(void);
void suite_fixture_close(void);
/* Writes a file; returns its path, valid until the next call. */
const char *suite_fixture_file(const char *name, const char *text);

/* Returns head, n times text, and tail; the caller frees it. */
char *repeat(const char *head, const char *text, int n, const char *tail);

/* A list ended by NULL. */
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
void same_list(const char *const *list, const char *const *want);
bool has(const char *const *list, const char *word);

/* Returns the text after the first `word`; fails the test without one. */
const char *after(const char *text, const char *word);
