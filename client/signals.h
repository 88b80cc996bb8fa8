#ifndef CLIENT_SIGNALS_H
#define CLIENT_SIGNALS_H

/* The number of a signal that the daemon tells by its name ("SIGTERM", "SIGRTMIN+3"); 0 when it is unknown here. */
int signals_number(const char *name);

#endif
