/* version.h - the version of this release and the commit of its sources. */
#pragma once

#define HOLORUN_VERSION "0.1.0"

/* Returns git's description of the sources, "" if unknown.  Defined in the program only. */
const char *version_build(void);
