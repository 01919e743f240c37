/* view_none.c - a VNC viewer in a build without libvncserver: never served, because view_start() refuses
 * first (base/feature.h). */
#include "desk/view_impl.h"

void viewer_serve(int fd, const char *display, const char *password, struct viewer_shared *shared, int slot)
{
}
