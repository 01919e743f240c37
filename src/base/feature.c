/* feature.c - see feature.h. */
#include "base/feature.h"

/* The Makefile defines HOLORUN_WITHOUT_NAME for each feature that it leaves out. */
#ifdef HOLORUN_WITHOUT_WINDOW
#define HAVE_WINDOW false
#else
#define HAVE_WINDOW true
#endif
#ifdef HOLORUN_WITHOUT_SERVE
#define HAVE_SERVE false
#else
#define HAVE_SERVE true
#endif
#ifdef HOLORUN_WITHOUT_VIEW
#define HAVE_VIEW false
#else
#define HAVE_VIEW true
#endif

static const struct feature features[FEATURES] = {
    [FEATURE_WINDOW] = {"window", "the step window", "sdl2 pangocairo", "libsdl2-dev libpango1.0-dev",
                        HAVE_WINDOW},
    [FEATURE_SERVE] = {"serve", "'serve'", "libmicrohttpd", "libmicrohttpd-dev", HAVE_SERVE},
    [FEATURE_VIEW] = {"view", "showing a desktop to VNC viewers", "libvncserver", "libvncserver-dev",
                      HAVE_VIEW},
};

const struct feature *feature_get(enum feature_id id)
{
    return &features[id];
}

int feature_require(enum feature_id id, struct err *e)
{
    const struct feature *f = &features[id];
    if (f->built)
        return 0;
    return err_set(e, ERR_ENV, "built without %s: %s is not available; install %s and rebuild", f->libraries,
                   f->provides, f->packages);
}
