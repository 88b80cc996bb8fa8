#ifndef PROFD_CLIENT_ADVICE_H
#define PROFD_CLIENT_ADVICE_H

#include <stdio.h>

/*
 * Prints what the daemon advises (a hint) as a person at a shell needs it: methods of the protocol as the commands that do the same
 * ("StopCapture" as "profctl stop --capture"), parameters as options, everything else as reply_print does. With --json hints stay as they came.
 */
void advice_print(FILE *out, const char *hint);
/*
 * A message of the daemon's about what our own options asked for: parameters of the protocol as those options ("frame_by" as "--frame-by"),
 * everything else as reply_print does. Not of what the user has said in the protocol's words (profctl call).
 */
void advice_print_message(FILE *out, const char *message);

#endif
