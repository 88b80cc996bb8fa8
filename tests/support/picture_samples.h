#ifndef TESTS_SUPPORT_PICTURE_SAMPLES_H
#define TESTS_SUPPORT_PICTURE_SAMPLES_H

#include "support/picture.h"

/* The pictures that several cases look at, and that tools/verify-svg opens in a browser. */

/* main 200 (compute 150 with multiply 120, read 50), worker 200 in the kernel; not written yet. */
void picture_add_plain(struct picture *picture);
/* Names of any bytes: 256 of one byte between letters, a long one, and PICTURE_TORTURES of markup and broken text. */
enum { PICTURE_TORTURES = 16 };
void picture_torture(struct picture *picture);
/* Files of these names, which have the colours; and a hostile note. */
void picture_torture_images(struct picture *picture);
/* A recursion of 5000. */
void picture_deep(struct picture *picture);
/* Leaves with names of 200 characters under ten parents, the first 20 of them heavy; 25,000 are more than fits. */
void picture_large(struct picture *picture, unsigned leaves);

/* Writes all of them as FOLDER/NAME.svg; 0. */
int picture_write_samples(const char *folder);

#endif
