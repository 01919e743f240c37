/* t_serve_pictures.c - tests images in requests: the content determines the format, the pixels equal Pillow's
 * (golden/pictures), and all spellings of data URLs are read.
 */
#include "check.h"
#include "served.h"

#include "base/file.h"
#include "base/image_orient.h"
#include "serve/picture.h"

#include <stdlib.h>

static const char *of(const json_t *c, const char *key)
{
    return json_string_value(json_object_get(c, key));
}

/* Returns the greatest difference of a channel; 256 for other sizes. */
static int difference(const struct image *im, const json_t *c)
{
    const char *text = of(c, "rgb");
    unsigned char *want = xmalloc(strlen(text) + 3, 1);
    long n = base64_decode(text, strlen(text), want);
    int most = 0;
    if (im->w != (int)json_integer_value(json_object_get(c, "w")) || n != (long)im->w * im->h * 3)
        most = 256;
    for (long i = 0; i < n && most < 256; i++)
        most = abs(im->rgb[i] - want[i]) > most ? abs(im->rgb[i] - want[i]) : most;
    free(want);
    return most;
}

/* Also with a wrong media type. */
static void t_pillow(void **state)
{
    json_t *golden = json_load_file("tests/golden/pictures/pictures.json", 0, NULL), *c;
    size_t i;
    int wrong = 0;
    assert_non_null(golden);
    json_array_foreach(json_object_get(golden, "cases"), i, c)
    {
        static const char *const types[] = {"image/png", "image/jpeg", "image/jpg",
                                            "application/octet-stream"};
        char *url = xasprintf("data:%s;base64,%s", types[i % 4], of(c, "file"));
        struct image im;
        struct err e = ERR_INIT;
        int rc = picture_decode(url, NULL, &im, &e), most = rc ? 0 : difference(&im, c);
        bool jpeg = !strncmp(of(c, "name"), "jpeg", 4);
        if (rc || most > (jpeg ? 2 : 0))
            print_error("%s: %s, differs by %d\n", of(c, "name"), e.text, most);
        wrong += rc || most > (jpeg ? 2 : 0);
        image_free(&im);
        free(url);
    }
    check_note("%zu pictures", json_array_size(json_object_get(golden, "cases")));
    assert_int_equal(wrong, 0);
    json_decref(golden);
}

/* ---- URLs --------------------------------------------------------------------------------------------- */

static char *with_breaks(const char *text, size_t every, const char *what)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    for (size_t i = 0; text[i]; i++) {
        if (i && i % every == 0)
            buf_puts(&out, what);
        buf_putc(&out, text[i]);
    }
    return buf_take(&out);
}

/* Replaces three characters of the base64 alphabet. */
static char *spelled(const char *text, const char *plus, const char *slash, const char *equals)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    for (; *text; text++) {
        const char one[2] = {*text, 0};
        buf_puts(&out, *text == '+' ? plus : *text == '/' ? slash : *text == '=' ? equals : one);
    }
    return buf_take(&out);
}

static char *percent(const struct buf *file)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    buf_puts(&out, "data:image/png,");
    for (size_t i = 0; i < file->len; i++)
        buf_printf(&out, "%%%02X", (unsigned char)file->data[i]);
    return buf_take(&out);
}

static void same_picture(const struct image *want, char *url)
{
    struct image im;
    struct err e = ERR_INIT;
    if (picture_check(url, &e) || picture_decode(url, NULL, &im, &e))
        fail_msg("%.60s: %s", url, e.text);
    assert_true(image_equal(&im, want));
    image_free(&im);
    free(url);
}

static void t_urls(void **state)
{
    static const char *const heads[] = {"data:image/png;base64,",
                                        "data:image/jpg;base64,",
                                        "data:image/jpeg;base64,",
                                        "data:;base64,",
                                        "DATA:IMAGE/PNG;BASE64,",
                                        "data:image/png;charset=utf-8;base64,",
                                        "data:image/png;name=a.png;charset=x; base64,",
                                        "  data:image/png;base64,\r\n",
                                        "data:;base64,  ",
                                        ""};
    for (uint64_t k = 0; k < 20; k++) {
        struct image im = tiny_image(3 + (int)k, 5, check_seed() + k);
        struct buf text, file;
        void *png;
        uint64_t len;
        assert_int_equal(image_encode_png(&im, &png, &len, NULL), 0);
        buf_init(&text, 1 << 20);
        buf_put_base64(&text, png, len);
        buf_init(&file, 1 << 20);
        buf_put(&file, png, len);
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
            same_picture(&im, xasprintf("%s%s", heads[i], text.data));
        char *bodies[] = {with_breaks(text.data, 76, "\r\n"),      with_breaks(text.data, 4, " "),
                          spelled(text.data, "-", "_", ""),        spelled(text.data, "+", "/", ""),
                          spelled(text.data, "%2B", "%2f", "%3D"), xasprintf("%s\n", text.data)};
        for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
            same_picture(&im, xasprintf("data:image/png;base64,%s", bodies[i]));
            free(bodies[i]);
        }
        same_picture(&im, percent(&file));
        buf_free(&text);
        buf_free(&file);
        free(png);
        image_free(&im);
    }
}

static void t_refused(void **state)
{
    static const struct {
        const char *url, *says;
    } cases[] = {
        {"http://127.0.0.1/x.png", "does not fetch"},
        {"HTTPS://example.org/x.png", "does not fetch"},
        {"file:///etc/passwd", "does not fetch"},
        {"blob:1234", "does not fetch"},
        {"/etc/passwd", "does not fetch"},
        {"data:image/png;base64", "without a comma"},
        {"data:image/png;base64,", "without data"},
        {"data:image/png;base64,A", "invalid base64"},
        {"data:image/png;base64,AA=A", "invalid base64"},
        {"data:image/png;base64,iVBORw0KGgoA!AAA", "invalid base64"},
        {"data:image/png;base64,AAAA", "PNG or JPEG, not an unknown format"},
        {"data:image/png;base64,UklGRgAAAABXRUJQ", "not WebP"},
        {"data:image/gif;base64,R0lGODlhAQABAAAAACw=", "not GIF"},
        {"data:image/bmp;base64,Qk0AAAAA", "not BMP"},
        {"data:image/svg+xml;utf8,<svg/>", "not SVG"},
        {"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA//8AAP//CAIAAAA=", "an image of 65535x65535 pixels"},
        {"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgABAAD/239DCAIAAAA=",
         "an image of 65536x4292575043 pixels"},
        {"data:image/png;base64,iVBORw0KGgoAAAAN", "truncated"},
        {"data:image/jpeg;base64,/9j/wAARCP//AP8DASIAAhEBAxEB", "an image of 255x65535 pixels"},
        {"data:image/jpeg;base64,/9j/4AAQSkZJRg==", "truncated"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct image im;
        struct err e = ERR_INIT;
        assert_int_equal(picture_decode(cases[i].url, NULL, &im, &e), -1);
        if (!strstr(e.text, cases[i].says))
            fail_msg("%s: %s", cases[i].url, e.text);
    }
}

/* Damaged metadata never rotate an image, and are not read past their end. */
static void t_damaged(void **state)
{
    json_t *golden = json_load_file("tests/golden/pictures/pictures.json", 0, NULL), *c;
    uint64_t rng = check_seed();
    size_t i;
    json_array_foreach(json_object_get(golden, "cases"), i, c)
    {
        const char *text = of(c, "file");
        unsigned char *file = xmalloc(strlen(text) + 3, 1);
        long n = base64_decode(text, strlen(text), file);
        for (long cut = 0; cut < n; cut += 1 + n / 200) {
            unsigned char *copy = xmalloc((unsigned long)cut + 1, 1); /* its end is the block's end */
            memcpy(copy, file, (size_t)cut);
            if (cut)
                copy[(long)(check_random(&rng) * (double)cut)] ^= (unsigned char)(check_random(&rng) * 256);
            int o = image_orientation(copy, (size_t)cut);
            assert_true(o >= 1 && o <= 8);
            free(copy);
        }
        free(file);
    }
    json_decref(golden);
}

static const struct CMUnitTest tests[] = {
    CLAIM("images of all formats have the pixels that Pillow gives them", t_pillow),
    CLAIM("all spellings of data URLs give the same image", t_urls),
    CLAIM("addresses, other formats and sizes above the limits are refused with a reason", t_refused),
    CLAIM("damaged metadata are skipped", t_damaged),
};

CHECK_MAIN()
