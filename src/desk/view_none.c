/* view_none.c - VNC viewers in a build without libvncserver: never called, because view_start() fails first
 * (base/feature.h). */
#include "desk/view_impl.h"

void viewer_serve(int fd, const char *display, const char *password, struct viewer_shared *shared, int slot)
{
}
