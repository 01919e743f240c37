/* prompt_tty.c - reads the terminal modes of a process's children from /proc and /dev/pts; see prompt_tty.h.
 *
 * Programs that edit the line themselves (shells, editors) switch both echo and line mode off; a password
 * prompt keeps line mode.
 */
#include "record/prompt_tty.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { PTS_FIRST = 136, PTS_LAST = 143 }; /* major device numbers of pseudo terminals */

/* Returns the number of the pseudo terminal of a process. Returns -1 if the process is not a child of
 * `parent` or has no pseudo terminal. */
static int pts_of_child(const char *process, int parent)
{
    char path[300], text[512];
    int ppid, tty;
    snprintf(path, sizeof path, "/proc/%s/stat", process);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *after = strrchr(text, ')'); /* the name in parentheses may contain any bytes */
    if (!after || sscanf(after + 1, " %*c %d %*d %*d %d", &ppid, &tty) != 2 || ppid != parent)
        return -1;
    int major = tty >> 8 & 0xfff, minor = (tty & 0xff) | (tty >> 12 & 0xfff00);
    return major >= PTS_FIRST && major <= PTS_LAST ? (major - PTS_FIRST) * 256 + minor : -1;
}

static bool hides(int pts)
{
    char path[40];
    struct termios t;
    snprintf(path, sizeof path, "/dev/pts/%d", pts);
    int fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    bool yes = fd >= 0 && tcgetattr(fd, &t) == 0 && t.c_lflag & ICANON && !(t.c_lflag & ECHO);
    if (fd >= 0)
        close(fd);
    return yes;
}

bool prompt_tty_hides(int pid)
{
    DIR *proc = pid > 0 ? opendir("/proc") : NULL;
    bool found = false;
    for (struct dirent *d; proc && !found && (d = readdir(proc));) {
        int pts = isdigit((unsigned char)*d->d_name) ? pts_of_child(d->d_name, pid) : -1;
        found = pts >= 0 && hides(pts);
    }
    if (proc)
        closedir(proc);
    return found;
}
