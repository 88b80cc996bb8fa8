#ifndef PROFD_CLIENT_ADVICE_H
#define PROFD_CLIENT_ADVICE_H

#include <stdio.h>

/*
 * Prints what the daemon advises (a hint) as a person at a shell needs it: methods of the protocol as the commands that do the same
 * ("StopCapture" as "profctl stop --capture"), everything else as reply_print does. With --json hints stay as they came.
 */
void advice_print(FILE *out, const char *hint);

#endif
