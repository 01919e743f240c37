/* version.h - the number of this release. */
#ifndef HOLORUN_VERSION_H
#define HOLORUN_VERSION_H

#define HOLORUN_VERSION "0.1.0"

#endif
