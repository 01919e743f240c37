/* fuzz_index.c - any bytes as the files that refer to other files of a model: the index of its weights, and
 * holorun.json, which names a dialect. */
#include "actions/dialect.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Creates a directory with one weight file of one tensor. */
static char *make_folder(void)
{
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    char file[8 + sizeof header - 1 + 4] = {sizeof header - 1}, *dir = xstrdup("/tmp/fuzz-index-XXXXXX");
    if (!mkdtemp(dir))
        die(ERR_ENV, "no folder in /tmp");
    memcpy(file + 8, header, sizeof header - 1);
    char *path = xasprintf("%s/one.safetensors", dir);
    if (file_write(path, file, sizeof file, NULL))
        die(ERR_ENV, "cannot write '%s'", path);
    free(path);
    return dir;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *dir, *index, *setting;
    if (!dir) {
        dir = make_folder();
        index = xasprintf("%s/model.safetensors.index.json", dir);
        setting = xasprintf("%s/holorun.json", dir);
    }
    struct err e = ERR_INIT;
    if (file_write(index, data, size, &e) || file_write(setting, data, size, &e))
        die(ERR_ENV, "%s", e.text);
    struct safetensors *s = safetensors_open(dir, &e);
    if (s ? safetensors_count(s) != 1 : !*e.text)
        bug("neither refused with a reason nor the one tensor");
    safetensors_close(s);
    e = (struct err)ERR_INIT;
    char *source = dialect_for_model(dir, &e);
    struct dialect *d = source ? dialect_load(source, &e) : NULL;
    if (d)
        dialect_free(d);
    else if (!*e.text)
        bug("refused without a reason");
    free(source);
    unlink(index);
    unlink(setting);
    return 0;
}
