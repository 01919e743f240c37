/* install.c - see install.h.
 *
 * Only the new entry is inserted into the text of a JSON file, so that everything else keeps its order,
 * spaces and numbers.  The result is then parsed and must equal the old object plus the entry.  Files with
 * comments, which some hosts allow, are not valid JSON and are left unchanged. */
#include "host/install.h"

#include "base/file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 16 << 20 };

enum form { FORM_SERVERS, FORM_COPILOT, FORM_OPENCODE, FORM_TOML };
static const struct target {
    /* folder NULL: path below HOME; "config": below the XDG configuration directory */
    const char *name, *title, *folder, *file;
    const char *key;
    enum form form;
} targets[] = {
    {"claude-code", "Claude Code", NULL, ".claude.json", "mcpServers", FORM_SERVERS},
    {"codex", "Codex", NULL, ".codex/config.toml", "mcp_servers", FORM_TOML},
    {"cursor", "Cursor", NULL, ".cursor/mcp.json", "mcpServers", FORM_SERVERS},
    {"claude-desktop", "Claude Desktop", "config", "Claude/claude_desktop_config.json", "mcpServers",
     FORM_SERVERS},
    {"copilot", "Copilot CLI", NULL, ".copilot/mcp-config.json", "mcpServers", FORM_COPILOT},
    {"opencode", "OpenCode", "config", "opencode/opencode.json", "mcp", FORM_OPENCODE},
    {"gemini", "Gemini CLI", NULL, ".gemini/settings.json", "mcpServers", FORM_SERVERS},
};
enum { TARGETS = sizeof targets / sizeof *targets };

const char *const *install_hosts(void)
{
    static const char *names[TARGETS + 1];
    for (int i = 0; i < TARGETS; i++)
        names[i] = targets[i].name;
    return names;
}

static const struct target *find(const char *host, struct err *e)
{
    struct buf all;
    for (int i = 0; i < TARGETS; i++)
        if (!strcmp(targets[i].name, host))
            return &targets[i];
    buf_init(&all, 1 << 10);
    for (int i = 0; i < TARGETS; i++)
        buf_printf(&all, "%s%s", i ? ", " : "", targets[i].name);
    err_set(e, ERR_USAGE, "unknown host '%s': use %s", host, all.data);
    buf_free(&all);
    return NULL;
}

static char *path_of(const struct target *t)
{
    const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
    if (!home)
        home = "";
    if (t->folder && config && *config)
        return xasprintf("%s/%s", config, t->file);
    return xasprintf("%s/%s%s", home, t->folder ? ".config/" : "", t->file);
}

/* ---- the entry ----------------------------------------------------------------------------------------- */

/* Returns the variables that the server needs to reach the display; hosts do not pass them on. */
static json_t *variables(void)
{
    static const char *const names[] = {"DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"};
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            json_object_set_new(all, names[i], json_string(value));
    }
    return all;
}

static json_t *entry_of(const struct target *t, const char *program)
{
    json_t *v = variables();
    json_t *e = t->form == FORM_OPENCODE
                    ? json_pack("{s:s, s:[s, s], s:o, s:b}", "type", "local", "command", program, "mcp",
                                "environment", v, "enabled", true)
                    : json_pack("{s:s, s:[s], s:o}", "command", program, "args", "mcp", "env", v);
    if (e && t->form == FORM_COPILOT) {
        json_object_set_new(e, "type", json_string("local"));
        json_object_set_new(e, "tools", json_pack("[s]", "*"));
    }
    return e;
}

static void put_toml(const json_t *entry, struct buf *out)
{
    const char *name;
    json_t *value;
    autofree char *command = json_dumps(json_object_get(entry, "command"), JSON_ENCODE_ANY);
    buf_printf(out, "[mcp_servers.holorun]\ncommand = %s\nargs = [\"mcp\"]\n", command);
    buf_puts(out, "env = {");
    json_object_foreach(json_object_get(entry, "env"), name, value)
    {
        autofree char *text = json_dumps(value, JSON_ENCODE_ANY);
        buf_printf(out, "%s %s = %s", out->data[out->len - 1] == '{' ? "" : ",", name, text);
    }
    buf_puts(out, " }\n");
}

/* Appends `"holorun": {...}` on one line. */
static void put_entry(const json_t *entry, struct buf *out)
{
    autofree char *text = json_dumps(entry, 0);
    buf_printf(out, "\"holorun\": %s", text);
}

/* Finds a host and builds its entry for `program`; the caller releases *entry.  Returns NULL with e. */
static const struct target *target_of(const char *host, const char *program, json_t **entry, struct err *e)
{
    const struct target *t = find(host, e);
    if (t && !(*entry = entry_of(t, program))) {
        err_set(e, ERR_USAGE, "the path '%s' is not valid UTF-8", program);
        return NULL;
    }
    return t;
}

int install_show(const char *host, const char *program, struct buf *out, struct err *e)
{
    json_t *entry;
    const struct target *t = target_of(host, program, &entry, e);
    if (!t)
        return -1;
    autofree char *path = path_of(t);
    buf_printf(out, "%s, in %s:\n\n", t->title, path);
    if (t->form == FORM_TOML) {
        put_toml(entry, out);
    } else {
        buf_printf(out, "  \"%s\": {\n    ", t->key);
        put_entry(entry, out);
        buf_puts(out, "\n  }\n");
    }
    if (!strcmp(t->name, "claude-code"))
        buf_printf(out, "\nor, with the same effect: claude mcp add --scope user holorun -- '%s' mcp\n",
                   program);
    json_decref(entry);
    return 0;
}

/* ---- position of the entry in a JSON text -------------------------------------------------------------- */

static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\';
    return p < end ? p + 1 : end;
}

static const char *skip_blank(const char *p, const char *end)
{
    while (p < end && strchr(" \t\r\n", *p))
        p++;
    return p;
}

/* Returns the position after the opening brace of the root's member `key`, if it is an object; else NULL.
 * *root: the position after the root's opening brace.  The text must be valid JSON. */
static const char *find_member(const char *text, size_t len, const char *key, const char **root)
{
    const char *end = text + len, *p = skip_blank(text, end);
    size_t n = strlen(key);
    int depth = 0;
    *root = NULL;
    while (p < end) {
        if (*p == '"') {
            const char *name = p + 1, *after = skip_string(p, end), *colon = skip_blank(after, end);
            p = after;
            if (depth != 1 || colon >= end || *colon != ':')
                continue;
            const char *value = skip_blank(colon + 1, end);
            if ((size_t)(after - name) == n + 1 && !memcmp(name, key, n) && value < end && *value == '{')
                return value + 1;
            p = value;
            continue;
        }
        depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
        if (*p == '{' && !*root)
            *root = p + 1;
        p++;
    }
    return NULL;
}

static bool empty_object(const char *p, const char *end)
{
    p = skip_blank(p, end);
    return p < end && *p == '}';
}

/* Appends the text with the entry inserted. */
static void put_in(const struct target *t, const json_t *entry, const char *text, size_t len, struct buf *out)
{
    const char *root, *at = find_member(text, len, t->key, &root), *end = text + len;
    bool there = at;
    at = there ? at : root;
    buf_put(out, text, (size_t)(at - text));
    buf_printf(out, there ? "\n    " : "\n  \"%s\": {\n    ", t->key);
    put_entry(entry, out);
    buf_puts(out, there ? "" : "\n  }");
    buf_puts(out, empty_object(at, end) ? "\n" : ",");
    if (there && empty_object(at, end))
        buf_puts(out, "  ");
    buf_put(out, at, (size_t)(end - at));
}

static int edit_json(const struct target *t, const json_t *entry, const char *text, size_t len,
                     struct buf *out, struct err *e)
{
    json_error_t why;
    json_t *was = json_loadb(len ? text : "{}", len ? len : 2, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(was)) {
        json_decref(was);
        return err_set(e, ERR_USAGE, "line %d: %s: add the entry yourself", why.line,
                       was ? "not an object" : why.text);
    }
    json_t *servers = json_object_get(was, t->key), *old = json_object_get(servers, "holorun"), *is = NULL;
    int rc = -1;
    if (servers && !json_is_object(servers)) {
        err_set(e, ERR_USAGE, "'%s' is not an object", t->key);
    } else if (old) {
        rc = json_equal(old, entry)
                 ? 1
                 : err_set(e, ERR_USAGE, "'%s' already has another 'holorun': edit it yourself", t->key);
    } else {
        put_in(t, entry, len ? text : "{}\n", len ? len : 3, out);
        is = json_loadb(out->data, out->len, JSON_REJECT_DUPLICATES, NULL);
        if (!servers)
            json_object_set_new(was, t->key, servers = json_object());
        json_object_set(servers, "holorun", (json_t *)(uintptr_t)entry);
        rc = is && !out->full && json_equal(is, was)
                 ? 0
                 : err_set(e, ERR_USAGE, "cannot insert the entry: add it yourself");
    }
    json_decref(is);
    json_decref(was);
    return rc;
}

static int edit_toml(const json_t *entry, const char *text, size_t len, struct buf *out, struct err *e)
{
    autobuf mine = buf_of(1 << 16);
    put_toml(entry, &mine);
    bool same = len >= mine.len && memmem(text, len, mine.data, mine.len);
    bool other = !same && len && memmem(text, len, "mcp_servers.holorun", 19);
    if (!same && !other) {
        buf_put(out, text, len);
        buf_puts(out, len && text[len - 1] != '\n' ? "\n" : "");
        buf_puts(out, len ? "\n" : "");
        buf_put(out, mine.data, mine.len);
    }
    if (other)
        return err_set(e, ERR_USAGE, "the file already has another [mcp_servers.holorun]: edit it yourself");
    return same ? 1 : out->full ? err_set(e, ERR_USAGE, "the file is too large") : 0;
}

int install_edit(const char *host, const char *program, const char *text, size_t len, struct buf *out,
                 struct err *e)
{
    json_t *entry;
    const struct target *t = target_of(host, program, &entry, e);
    if (!t)
        return -1;
    int rc =
        t->form == FORM_TOML ? edit_toml(entry, text, len, out, e) : edit_json(t, entry, text, len, out, e);
    json_decref(entry);
    return rc;
}

/* ---- the file ------------------------------------------------------------------------------------------ */

/* Returns the target of a symbolic link, so that the link itself is kept; frees path unless it is
 * returned. */
static char *resolved(char *path)
{
    char *real = realpath(path, NULL);
    if (!real)
        return path;
    free(path);
    return real;
}

static int keep_and_write(const char *path, const char *old, size_t len, const struct buf *now, struct err *e)
{
    struct stat st;
    bool there = stat(path, &st) == 0;
    autofree char *kept = xasprintf("%s.before-holorun", path), *folder = xstrdup(path);
    *strrchr(folder, '/') = 0;
    int rc = there ? file_write(kept, old, len, e) : dir_make(folder, e);
    if (rc == 0)
        rc = file_write(path, now->data, now->len, e);
    if (rc == 0 && there && chmod(path, st.st_mode & 07777))
        rc = err_set(e, ERR_ENV, "'%s' was written, but its mode could not be preserved", path);
    return rc;
}

int install_write(const char *host, const char *program, char **path, struct err *e)
{
    const struct target *t = find(host, e);
    struct buf now;
    autofree char *old = NULL;
    size_t len = 0;
    *path = NULL;
    if (!t)
        return -1;
    *path = resolved(path_of(t));
    if (file_exists(*path) && file_read(*path, FILE_MAX, &old, &len, e))
        return -1;
    buf_init(&now, FILE_MAX + (1 << 16));
    int rc = install_edit(host, program, old ? old : "", len, &now, e);
    if (rc < 0)
        err_prefix(e, "'%s'", *path);
    else if (rc == 0)
        rc = keep_and_write(*path, old, len, &now, e);
    buf_free(&now);
    return rc;
}
