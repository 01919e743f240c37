/* suite_fixture.h - suites that tests write down, and files beside them. */
#ifndef HOLORUN_TESTS_SUITE_FIXTURE_H
#define HOLORUN_TESTS_SUITE_FIXTURE_H

#include "qa/suite/suite.h"

/* The suite of this text, as a file "s.yaml" of the working folder; the test fails when it is refused. */
struct suite *suite_of(const char *text);
const struct test *test_of(const struct suite *s, const char *id);

/* A folder for files, which is removed with all of them. */
void suite_fixture_open(void);
void suite_fixture_close(void);
/* Writes one; its path, until the next call. */
const char *suite_fixture_file(const char *name, const char *text);

/* head, n times text, tail; the caller frees it. */
char *repeat(const char *head, const char *text, int n, const char *tail);

/* Lists that NULL ends. */
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
void same_list(const char *const *list, const char *const *want);
bool has(const char *const *list, const char *word);

/* Behind the first `word` in text, which is there or the test fails. */
const char *after(const char *text, const char *word);

#endif
