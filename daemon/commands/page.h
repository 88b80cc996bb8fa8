#ifndef COMMANDS_PAGE_H
#define COMMANDS_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* A list that must fit one line: items are added while there is room, the rest is for the next page. Pure. */
struct page {
	json_t *items;  /* owned until page_finish */
	size_t bytes;   /* of the items as they will be sent */
	bool is_full;   /* something did not fit, or memory is out */
	bool is_shared; /* the line has other items: the first need not be added */
};

/* reserved: bytes of the line that other members need. */
void page_init(struct page *page, size_t reserved);

/* Takes item. False: the page is full, it was not added. The first item is always added, unless the line is shared. */
bool page_add(struct page *page, json_t *item);

/* The result {name: items}, with next_cursor when the page is full and cursor not NULL. Owned; NULL when memory is out. */
json_t *page_finish(struct page *page, const char *name, const char *cursor);

#endif
