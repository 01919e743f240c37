/* version.h - the number of this release, and where its sources came from. */
#ifndef HOLORUN_CLI_VERSION_H
#define HOLORUN_CLI_VERSION_H

#define HOLORUN_VERSION "0.1.0"

const char *
version_build(void); /* what git calls the sources, "" when it is not known; part of the program only */

#endif
