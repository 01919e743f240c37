/* t_remote_peers.c - tests with exchanges of third-party servers, recorded by tests/scripts/peers_serve.sh: a
 * tiny random model behind llama.cpp's server and `transformers serve`.
 *
 * Such a model replies with noise, or with noise in the form of the schema; a run replays on a private
 * display.
 */
#include "check.h"

#include "base/file.h"
#include "driven.h"

#include <stdlib.h>
#include <string.h>

struct peer {
    struct stage stage;
    struct outcome o;
    struct record record;
    int recorded, exchanges;
};

static int lines_of(const char *path)
{
    char *text;
    size_t len;
    int n = 0;
    assert_int_equal(file_read(path, 4 << 20, &text, &len, NULL), 0);
    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n';
    free(text);
    return n;
}

/* Replays a run and reads its record. */
static void play_peer(struct peer *p, const char *name)
{
    char *tape = xasprintf("tests/cases/peers/%s.jsonl", name), *url = xasprintf("recorded:%s", tape);
    *p = (struct peer){.recorded = lines_of(tape)};
    driven_open(&p->stage);
    char *runs = xvfb_place(&p->stage.x, "runs");
    program_run(&p->stage.x, &p->o,
                WORDS("run", "Press Save", "--base-url", url, "--max-steps", "3", "--runs", runs,
                      "--no-report", "--settle-min", "1", "--settle-quiet", "30"));
    driven_read(&p->stage, &p->record);
    char *exchanges = xasprintf("%s/exchanges.jsonl", p->record.dir);
    p->exchanges = lines_of(exchanges);
    free(exchanges);
    free(runs);
    free(url);
    free(tape);
}

static void end_peer(struct peer *p)
{
    record_free(&p->record);
    outcome_free(&p->o);
    stage_close(&p->stage);
}

/* The first reply follows the schema, and is refused for a control character in its thought. The second is
 * truncated within a text, which the server reports as an error in the stream, so it is requested again. */
static void t_llama(void **state)
{
    struct peer p;
    play_peer(&p, "llama");
    assert_int_equal(p.o.code, ERR_ENV);
    assert_string_equal(field_text(driven_last(&p.record, "error"), "code"), "E_TEXT");
    assert_string_equal(field_text(driven_last(&p.record, "unreadable"), "code"), "E_PARSE");
    assert_null(strstr(p.o.err, "server error"));
    assert_non_null(strstr(p.o.err, "contains no more replies"));
    assert_int_equal(p.exchanges, p.recorded + 1);
    end_peer(&p);
}

/* The server accepts a schema and ignores it: no reply is valid, and each is requested again until the record
 * ends. */
static void t_transformers(void **state)
{
    struct peer p;
    play_peer(&p, "transformers");
    assert_int_equal(p.o.code, ERR_ENV);
    assert_non_null(strstr(p.o.err, "contains no more replies after 2"));
    assert_string_equal(field_text(driven_last(&p.record, "unreadable"), "code"), "E_PARSE");
    assert_null(driven_last(&p.record, "error"));
    assert_int_equal(p.exchanges, p.recorded + 1);
    end_peer(&p);
}

static const struct CMUnitTest tests[] = {
    CLAIM("llama.cpp's server: a reply in the form of the schema is read, a truncated one is retried",
          t_llama),
    CLAIM("transformers serve: noise is not an answer, and is retried", t_transformers),
};

CHECK_MAIN()
