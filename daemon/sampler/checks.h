#ifndef SAMPLER_CHECKS_H
#define SAMPLER_CHECKS_H

#include "base/checks.h"

/* What sampling will work on this system for this user, and what would change it. Opens and closes events on ourselves. Any thread. */
void sampler_checks(struct checks *checks);

#endif
