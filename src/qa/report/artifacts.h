/* artifacts.h - files of a run that reports link to. */
#ifndef HOLORUN_QA_REPORT_ARTIFACTS_H
#define HOLORUN_QA_REPORT_ARTIFACTS_H

#include "trace/story.h"

/* `path` as a link from folder `from`: relative if it is below, else absolute; owned. */
char *artifact_link(const char *from, const char *path);
/* The folder of a file; owned. */
char *artifact_folder(const char *path);

/* Indices of the steps at which the last `most` distinct frames of a run were seen, oldest first; returns
 * how many. */
int artifact_last_steps(const struct story *s, int *steps, int most);
/* The numbers of those frames; 0 if there is no readable run. */
int artifact_last_frames(const char *run_dir, int *numbers, int most);
char *artifact_frame(const char *run_dir, int number); /* its path; owned */

#endif
