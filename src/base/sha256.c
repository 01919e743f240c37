/* sha256.c - FIPS 180-4, one block at a time.
 *
 * The constants are the first 32 bits of the fractional parts of the square roots of the first 8 primes
 * and of the cube roots of the first 64, computed with integers when first needed.
 */
#include "base/sha256.h"

#include <pthread.h>
#include <string.h>

static uint32_t root2[8], root3[64];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* floor(2^32 * frac(p^(1/k))): the largest r with r^k <= p * 2^(32 k), its low 32 bits. */
static uint32_t root_fraction(unsigned p, int k)
{
    unsigned __int128 target = (unsigned __int128)p << (32 * k);
    uint64_t r = 0;
    for (int bit = 36; bit >= 0; bit--) {
        uint64_t t = r | 1ull << bit;
        unsigned __int128 power = (unsigned __int128)t * t;
        if (k == 3)
            power *= t;
        if (power <= target)
            r = t;
    }
    return (uint32_t)r;
}

static void make_constants(void)
{
    int n = 0;
    for (unsigned p = 2; n < 64; p++) {
        unsigned d = 2;
        while (d * d <= p && p % d)
            d++;
        if (d * d <= p)
            continue;
        if (n < 8)
            root2[n] = root_fraction(p, 2);
        root3[n++] = root_fraction(p, 3);
    }
}

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void compress(uint32_t h[8], const uint8_t block[64])
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + root3[i] + w[i];
        uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

void sha256_begin(struct sha256 *s)
{
    pthread_once(&once, make_constants);
    memcpy(s->h, root2, sizeof s->h);
    s->len = 0;
}

void sha256_add(struct sha256 *s, const void *data, size_t n)
{
    const uint8_t *p = data;
    for (; n; n--) {
        s->block[s->len++ % 64] = *p++;
        if (s->len % 64 == 0)
            compress(s->h, s->block);
    }
}

void sha256_end(struct sha256 *s, char hex[65])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t bits = s->len * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(s, "\x80", 1);
    while (s->len % 64 != 56)
        sha256_add(s, "", 1);
    sha256_add(s, length, sizeof length);
    for (int i = 0; i < 64; i++)
        hex[i] = digits[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = 0;
}
