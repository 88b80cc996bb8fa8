#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyzer/export/svg.h"
#include "base/strings.h"

/*
 * The independent reader: Python's expat and json parse the file; the numbers in the data are decoded here a second time,
 * from their description in svg_pack.h. It prints one line per fact:
 *   file BYTES | cut C all N frames F | data DEPTH TOTAL SELF KIND IMAGE NAME | rect X Y WIDTH FILL TITLE | text TEXT
 * Names are repr()s of JSON without blanks: json.dumps with blanks as \u0020.
 */
static const char reader[] =
	"import sys, json, xml.parsers.expat as expat\n"
	"raw = open(sys.argv[1], 'rb').read()\n"
	"path, texts, rects, data, attrs = [], [], [], [], {}\n"
	"def start(name, given):\n"
	"    path.append((name, given)); texts.append([])\n"
	"    if name == 'rect': attrs['rect'] = given\n"
	"def end(name):\n"
	"    text, (_, given) = ''.join(texts.pop()), path.pop()\n"
	"    if name == 'script' and given.get('type') == 'application/json': data.append(text)\n"
	"    elif name == 'title' and path[-1][0] == 'g': attrs['title'] = text\n"
	"    elif name == 'text' and 'class' in given: lines.append(text)\n"
	"    elif name == 'g' and 'title' in attrs: rects.append((attrs.pop('rect'), "
	"attrs.pop('title')))\n"
	"def characters(text): texts[-1].append(text)\n"
	"lines = []\n"
	"parser = expat.ParserCreate()\n"
	"parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, "
	"end, characters\n"
	"parser.Parse(raw, True)\n"
	"word = lambda text: json.dumps(text).replace(' ', '\\\\u0020')\n"
	"doc = json.loads(data[0])\n"
	"digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'\n"
	"def numbers(text):\n"
	"    value = shift = 0\n"
	"    for digit in map(digits.index, text):\n"
	"        value |= (digit & 31) << shift; shift += 5\n"
	"        if digit < 32:\n"
	"            yield value\n"
	"            value = shift = 0\n"
	"flat = list(numbers(doc['symbols']))\n"
	"symbols = [flat[i:i + 3] for i in range(0, len(flat), 3)]\n"
	"assert len(symbols) == len(doc['names'])\n"
	"frames, depth, stream = [], 0, numbers(doc['tree'])\n"
	"for head in stream:\n"
	"    symbol = next(stream); self = next(stream) if head & 1 else 0\n"
	"    depth -= head >> 1; assert depth >= 0\n"
	"    frames.append([depth, self, self, symbol]); depth += 1\n"
	"up = []\n"
	"for frame in frames:\n"
	"    del up[frame[0]:]; assert len(up) == frame[0]\n"
	"    frame.append(up[-1] if up else None); up.append(frame)\n"
	"for frame in reversed(frames):\n"
	"    if frame[4]: frame[4][1] += frame[1]\n"
	"assert len(frames) == doc['frames']\n"
	"print('file', len(raw)); print('head', doc['cut'], doc['all'], doc['frames'])\n"
	"print('title', word(doc['title'])); print('subtitle', word(doc['subtitle']))\n"
	"for depth, total, self, symbol, _ in frames:\n"
	"    kind, shade, image = symbols[symbol]; assert shade < 32\n"
	"    print('data', depth, total, self, kind, word(doc['images'][image]), "
	"word(doc['names'][symbol]))\n"
	"for rect, title in rects: print('rect', rect['x'], rect['y'], rect['width'], rect['fill'], "
	"word(title))\n"
	"for line in lines: print('text', word(line))\n";

struct fixture {
	struct strings *names;
	struct tree *tree;
	struct buffer svg;
	char *facts; /* what the reader printed */
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	fixture->names = strings_create();
	fixture->tree = tree_create(fixture->names);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	buffer_finish(&fixture->svg);
	tree_destroy(fixture->tree);
	strings_destroy(fixture->names);
	free(fixture->facts);
	free(fixture);
	return 0;
}

static struct tree_frame frame(struct fixture *fixture, const char *name, size_t len, uint8_t kind)
{
	uint32_t id = strings_intern(fixture->names, name, len, NULL);
	assert_true(id > 0);
	return (struct tree_frame){.name = id, .kind = kind};
}

/* A stack as "main;outer;inner"; the first frame is a thread. */
static void add(struct fixture *fixture, const char *stack, uint64_t weight)
{
	struct tree_frame frames[8];
	size_t count = 0;
	for (const char *at = stack; *at != '\0';) {
		size_t len = strcspn(at, ";");
		frames[count] = frame(fixture, at, len, count == 0 ? TREE_THREAD : TREE_NATIVE);
		count++;
		at += len + (at[len] == ';');
	}
	assert_true(tree_add(fixture->tree, frames, count, weight));
}

static void write_svg(struct fixture *fixture, const char *title, const char *subtitle)
{
	struct svg_options options = {.title = title, .subtitle = subtitle, .unit = "samples"};
	assert_true(tree_finish(fixture->tree));
	assert_true(svg_write(&fixture->svg, fixture->tree, &options));
}

static void save(const struct fixture *fixture, const char *path)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(fixture->svg.data, 1, fixture->svg.len, file), fixture->svg.len);
	assert_int_equal(fclose(file), 0);
}

static char *read_all(FILE *stream)
{
	struct buffer all = {0};
	char part[4096];
	size_t len;
	while ((len = fread(part, 1, sizeof(part), stream)) > 0) {
		assert_true(buffer_append(&all, part, len));
	}
	assert_true(buffer_byte(&all, 0));
	return (char *)all.data;
}

/* Runs the reader over the picture. Fails the test when it finds the file broken. */
static void read_facts(struct fixture *fixture)
{
	char folder[] = "/tmp/test_svg.XXXXXX";
	char svg[64], script[64], command[256];
	assert_non_null(mkdtemp(folder));
	snprintf(svg, sizeof(svg), "%s/picture.svg", folder);
	snprintf(script, sizeof(script), "%s/reader.py", folder);
	save(fixture, svg);
	FILE *file = fopen(script, "w");
	assert_non_null(file);
	assert_true(fputs(reader, file) >= 0);
	assert_int_equal(fclose(file), 0);
	snprintf(command, sizeof(command), "python3 %s %s", script, svg);
	FILE *stream = popen(command, "r");
	assert_non_null(stream);
	fixture->facts = read_all(stream);
	int status = pclose(stream);
	unlink(svg);
	unlink(script);
	rmdir(folder);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
		print_message("# python3 is missing: nothing here can parse the picture\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* Whether one of the reader's lines is exactly this. */
static bool is_fact(const struct fixture *fixture, const char *line)
{
	size_t len = strlen(line);
	for (const char *at = fixture->facts; (at = strstr(at, line)) != NULL; at += len) {
		if ((at == fixture->facts || at[-1] == '\n') && at[len] == '\n') {
			return true;
		}
	}
	return false;
}

static void assert_fact(const struct fixture *fixture, const char *line)
{
	if (!is_fact(fixture, line)) {
		print_message("# not found: %s\n", line);
		fail();
	}
}

static size_t count_facts(const struct fixture *fixture, const char *kind)
{
	size_t count = 0, len = strlen(kind);
	for (const char *at = fixture->facts; at != NULL && *at != '\0'; at = strchr(at, '\n') + 1) {
		count += strncmp(at, kind, len) == 0 && at[len] == ' ';
	}
	return count;
}

static bool svg_holds(const struct fixture *fixture, const char *text)
{
	return memmem(fixture->svg.data, fixture->svg.len, text, strlen(text)) != NULL;
}

static void add_plain(struct fixture *fixture)
{
	add(fixture, "main;compute", 30);
	add(fixture, "main;compute;multiply", 120);
	add(fixture, "main;read", 50);
	struct tree_frame frames[] = {frame(fixture, "worker", 6, TREE_THREAD),
		frame(fixture, "write", 5, TREE_NATIVE), frame(fixture, "vfs_write", 9, TREE_KERNEL)};
	frames[1].image = strings_intern(fixture->names, "/lib/libc.so.6", 14, NULL);
	assert_true(tree_add(fixture->tree, frames, 3, 200));
}

static void embeds_every_frame_with_its_weights_kind_and_image(void **state)
{
	struct fixture *fixture = *state;
	add_plain(fixture);
	write_svg(fixture, "plain", "a <subtitle>");
	read_facts(fixture);
	assert_fact(fixture, "head 1 8 8");
	assert_fact(fixture, "title \"plain\"");
	assert_fact(fixture, "subtitle \"a\\u0020<subtitle>\"");
	assert_int_equal(count_facts(fixture, "data"), 8);
	assert_fact(fixture, "data 0 400 0 6 \"\" \"all\"");
	assert_fact(fixture, "data 1 200 0 0 \"\" \"main\"");
	assert_fact(fixture, "data 2 150 30 1 \"\" \"compute\"");
	assert_fact(fixture, "data 3 120 120 1 \"\" \"multiply\"");
	assert_fact(fixture, "data 2 50 50 1 \"\" \"read\"");
	assert_fact(fixture, "data 1 200 0 0 \"\" \"worker\"");
	assert_fact(fixture, "data 2 200 0 1 \"/lib/libc.so.6\" \"write\"");
	assert_fact(fixture, "data 3 200 200 2 \"\" \"vfs_write\"");
}

static void draws_frames_as_wide_as_their_share_above_their_parents(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		const char *title;
		double x, width;
		int row;
	} expected[] = {{"all (400 samples, 100.00%)", 0, 1, 0},
		{"main (200 samples, 50.00%)", 0, .5, 1}, {"compute (150 samples, 37.50%)", 0, .375, 2},
		{"multiply (120 samples, 30.00%)", 0, .3, 3}, {"read (50 samples, 12.50%)", .375, .125, 2},
		{"worker (200 samples, 50.00%)", .5, .5, 1}, {"write (200 samples, 50.00%)", .5, .5, 2},
		{"vfs_write (200 samples, 50.00%)", .5, .5, 3}};
	add_plain(fixture);
	write_svg(fixture, "plain", NULL);
	read_facts(fixture);
	assert_int_equal(count_facts(fixture, "rect"), 8);
	const char *line = strstr(fixture->facts, "\nrect ");
	double left = 0, span = 0, top = 0, height = 0;
	for (size_t i = 0; i < 8; i++, line = strchr(line + 1, '\n')) {
		double x, y, width;
		char title[64];
		assert_int_equal(sscanf(line, " rect %lf %lf %lf %*s %63s", &x, &y, &width, title), 4);
		left = i == 0 ? x : left;
		span = i == 0 ? width : span;
		top = i == 0 ? y : top;
		height = i == 1 ? y - top : height;
		assert_float_equal(x - left, expected[i].x * span, .02);
		assert_float_equal(width, expected[i].width * span, .02);
		assert_float_equal(y - top, expected[i].row * height, .01);
		assert_memory_equal(title + 1, expected[i].title, strcspn(expected[i].title, " "));
	}
	assert_true(span > 1000 && height > 10);
}

static void kernel_frames_look_unlike_the_program_s(void **state)
{
	struct fixture *fixture = *state;
	char fill[2][16];
	add_plain(fixture);
	write_svg(fixture, "plain", NULL);
	read_facts(fixture);
	static const char *const names[] = {"\"write\\u0020", "\"vfs_write\\u0020"};
	for (size_t i = 0; i < 2; i++) {
		const char *at = strstr(fixture->facts, names[i]);
		assert_non_null(at);
		snprintf(fill[i], sizeof(fill[i]), "%.7s", at - 8);
		assert_int_equal(fill[i][0], '#');
	}
	/* Warm: more red than blue; the kernel's: more blue than red. */
	assert_true(strncmp(fill[0] + 1, fill[0] + 5, 2) > 0);
	assert_true(strncmp(fill[1] + 1, fill[1] + 5, 2) < 0);
}

/* The names that the torture tree holds, one by one. */
static size_t torture_name(size_t i, char *name)
{
	static const char *const texts[] = {"<script>alert(1)</script>", "]]><!--", "</title></svg>",
		"&amp;&nbsp;", "\" onload=\"alert(1)", "' onload='alert(1)", "\xed\xa0\x80", "\xc0\xaf",
		"\xf4\x90\x80\x80", "\xe2\x80\xa8line\xe2\x80\xa9", "\xef\xbf\xbe\xef\xbf\xbf",
		"\xf0\x9f\x94\xa5", "\xe2\x82", "\\u0041\\", "<?xml?>", "\xc2\x85\xc2\xa0"};
	const size_t count = sizeof(texts) / sizeof(texts[0]);
	if (i < 256) {
		name[0] = 'a';
		name[1] = (char)i;
		name[2] = 'z';
		return 3;
	}
	if (i == 256) {
		memset(name, '<', 5000);
		return 5000;
	}
	if (i - 257 < count) {
		strcpy(name, texts[i - 257]);
		return strlen(texts[i - 257]);
	}
	return 0;
}

static void add_torture(struct fixture *fixture)
{
	char name[5000];
	size_t len;
	for (size_t i = 0; (len = torture_name(i, name)) > 0; i++) {
		struct tree_frame frames[] = {
			frame(fixture, "<main>", 6, TREE_THREAD), frame(fixture, name, len, TREE_NATIVE)};
		assert_true(tree_add(fixture->tree, frames, 2, 1));
	}
	write_svg(fixture, "]]></title><script>alert(1)</script>\xff\x1b", "\"'<&>\x01\xc3");
}

static void is_well_formed_whatever_bytes_a_name_holds(void **state)
{
	struct fixture *fixture = *state;
	add_torture(fixture);
	read_facts(fixture);
	assert_int_equal(count_facts(fixture, "data"), 2 + 256 + 1 + 16);
	assert_fact(fixture, "title \"]]></title><script>alert(1)</script>\\ufffd\\u001b\"");
	assert_fact(fixture, "data 2 1 1 1 \"\" \"a\\u0000z\"");
	assert_fact(fixture, "data 2 1 1 1 \"\" \"a\\u001bz\"");
	assert_fact(fixture, "data 2 1 1 1 \"\" \"a\\\"z\"");
	assert_fact(fixture, "data 2 1 1 1 \"\" \"a\\ufffdz\"");
	assert_fact(fixture, "data 2 1 1 1 \"\" \"a\\u007fz\"");
	assert_fact(fixture, "data 2 1 1 1 \"\" \"<script>alert(1)</script>\"");
	assert_fact(fixture, "data 2 1 1 1 \"\" \"\\ufffd\\ufffd\\ufffd\\ufffd\"");
	assert_fact(fixture, "data 2 1 1 1 \"\" \"\\u2028line\\u2029\"");
	assert_fact(fixture, "data 2 1 1 1 \"\" \"\\ufffe\\uffff\"");
	assert_fact(fixture, "data 2 1 1 1 \"\" \"\\ud83d\\udd25\"");
	assert_fact(fixture, "data 2 1 1 1 \"\" \"\\\\u0041\\\\\"");
	assert_fact(fixture, "text \"\\\"'<&>\\ufffd\\ufffd\"");
	assert_non_null(strstr(fixture->facts, "\"a\\ufffdz\\u0020(1\\u0020samples"));
	assert_non_null(strstr(fixture->facts, "\"a\\nz\\u0020(1\\u0020samples"));
}

static void holds_no_markup_that_came_from_a_name(void **state)
{
	struct fixture *fixture = *state;
	add_torture(fixture);
	assert_false(svg_holds(fixture, "<script>alert"));
	assert_false(svg_holds(fixture, "</title></svg>"));
	assert_false(svg_holds(fixture, "onload=\""));
	assert_false(svg_holds(fixture, "onload='"));
	assert_false(svg_holds(fixture, "&nbsp;"));
	assert_false(svg_holds(fixture, "\xe2\x80\xa8"));
}

static void shortens_a_long_name_in_the_picture_and_keeps_it_in_the_data(void **state)
{
	struct fixture *fixture = *state;
	char name[5001];
	memset(name, 'n', 5000);
	name[5000] = '\0';
	add(fixture, name, 1);
	write_svg(fixture, "long", NULL);
	read_facts(fixture);
	assert_true(svg_holds(fixture, name));
	const char *rect = strstr(fixture->facts, "rect ");
	assert_non_null(rect);
	rect = strstr(rect, "\"nnn");
	assert_non_null(rect);
	assert_int_equal(strspn(rect + 1, "n"), 199);
	assert_int_equal(strncmp(rect + 200, "\\u2026", 6), 0);
}

static void asks_for_nothing_from_outside(void **state)
{
	struct fixture *fixture = *state;
	add_plain(fixture);
	write_svg(fixture, "plain", NULL);
	const char *text = (const char *)fixture->svg.data;
	size_t addresses = 0;
	for (size_t i = 0; i + 3 < fixture->svg.len; i++) {
		if (memcmp(text + i, "://", 3) == 0) {
			addresses++;
			assert_true(i > 5 && (memcmp(text + i + 3, "www.w3.org/2000/svg\"", 20) == 0 ||
									 memcmp(text + i + 3, "www.w3.org/1999/xhtml\"", 22) == 0));
		}
	}
	assert_true(addresses > 0);
	static const char *const forbidden[] = {
		"href", "@import", "url(", "fetch(", "XMLHttpRequest", "innerHTML", "eval(", " src="};
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		assert_false(svg_holds(fixture, forbidden[i]));
	}
}

static void says_no_samples_when_there_are_none(void **state)
{
	struct fixture *fixture = *state;
	write_svg(fixture, "nothing", "the process was idle");
	read_facts(fixture);
	assert_fact(fixture, "text \"no\\u0020samples\"");
	assert_fact(fixture, "data 0 0 0 6 \"\" \"all\"");
	assert_int_equal(count_facts(fixture, "rect"), 0);
}

static void draws_the_widest_frames_and_says_how_many_are_missing(void **state)
{
	struct fixture *fixture = *state;
	char stack[32];
	for (unsigned i = 0; i < 7000; i++) {
		snprintf(stack, sizeof(stack), "main;leaf_%u", i);
		add(fixture, stack, i < 1500 ? 2 : 1);
	}
	write_svg(fixture, "wide", NULL);
	read_facts(fixture);
	assert_int_equal(count_facts(fixture, "data"), 7002);
	assert_int_equal(count_facts(fixture, "rect"), 2000);
	assert_non_null(
		strstr(fixture->facts, "text \"5,002\\u0020narrow\\u0020frames\\u0020not\\u0020drawn."));
	assert_non_null(strstr(fixture->facts, "\"leaf_0\\u0020(2"));
	assert_non_null(strstr(fixture->facts, "\"leaf_1499\\u0020(2"));
}

static void add_deep(struct fixture *fixture)
{
	struct tree_frame *frames = calloc(5000, sizeof(*frames));
	assert_non_null(frames);
	for (size_t i = 0; i < 5000; i++) {
		frames[i] = frame(fixture, i % 2 ? "even" : "odd", i % 2 ? 4 : 3, TREE_NATIVE);
	}
	assert_true(tree_add(fixture->tree, frames, 5000, 7));
	assert_true(tree_add(fixture->tree, frames, 4000, 1));
	free(frames);
	write_svg(fixture, "deep", NULL);
}

static void draws_a_recursion_of_5000(void **state)
{
	struct fixture *fixture = *state;
	add_deep(fixture);
	read_facts(fixture);
	assert_int_equal(count_facts(fixture, "data"), 5001);
	assert_int_equal(count_facts(fixture, "rect"), 2000);
	assert_fact(fixture, "data 1 8 0 1 \"\" \"odd\"");
	assert_fact(fixture, "data 4000 8 1 1 \"\" \"even\"");
	assert_fact(fixture, "data 5000 7 7 1 \"\" \"even\"");
}

/* More than fits: 60,000 leaves with names of 200 characters, and a few heavy ones. */
static void add_large(struct fixture *fixture)
{
	char name[256];
	for (unsigned i = 0; i < 60000; i++) {
		unsigned parent = i % 10;
		snprintf(name, sizeof(name), "main;parent_%u;%0190u", parent, i);
		add(fixture, name, i < 20 ? 1000000 : i % 50 + 1);
	}
	write_svg(fixture, "large", NULL);
}

static void sums_up_small_frames_when_the_file_would_be_too_large(void **state)
{
	struct fixture *fixture = *state;
	add_large(fixture);
	uint64_t total = tree_total(fixture->tree);
	read_facts(fixture);
	unsigned long long bytes, cut, all, frames, embedded, smaller = 0;
	assert_int_equal(
		sscanf(fixture->facts, "file %llu\nhead %llu %llu %llu\n", &bytes, &cut, &all, &frames), 4);
	assert_true(bytes <= 4 * 1024 * 1024 && bytes > 2 * 1024 * 1024);
	assert_int_equal(all, 60012);
	assert_true(cut > 1 && frames < all && frames > 10000);
	assert_int_equal(
		sscanf(strstr(fixture->facts, "\ndata "), "\ndata 0 %llu 0 6 \"\" \"all\"", &embedded), 1);
	assert_int_equal(embedded, total);
	/* By strchr and strtoull: strstr and sscanf measure all that follows, each time. */
	for (const char *at = fixture->facts; *at != '\0'; at = strchr(at, '\n') + 1) {
		if (strncmp(at, "data ", 5) == 0) {
			char *end = (char *)at + 5;
			unsigned long long depth = strtoull(end, &end, 10), weight = strtoull(end, &end, 10);
			strtoull(end, &end, 10);
			unsigned long long kind = strtoull(end, &end, 10);
			assert_true(kind == 6 || weight >= cut);
			smaller += kind == 6 && depth == 3;
		}
	}
	assert_int_equal(smaller, 10);
	assert_non_null(strstr(fixture->facts, "\"(smaller\\u0020frames)\""));
}

static void stays_below_its_limit_when_names_alone_exceed_it(void **state)
{
	struct fixture *fixture = *state;
	static char name[60001];
	for (unsigned i = 0; i < 200; i++) {
		memset(name, 'a', 60000);
		int len = snprintf(name, 60000, "n%u", i);
		name[len] = '_';
		add(fixture, name, 1);
	}
	write_svg(fixture, "names", NULL);
	read_facts(fixture);
	assert_true(fixture->svg.len <= 4 * 1024 * 1024);
	assert_fact(fixture, "head 1 201 201");
}

static void gives_equal_bytes_for_equal_profiles(void **state)
{
	struct fixture *fixture = *state;
	void *other_state;
	assert_int_equal(setup(&other_state), 0);
	struct fixture *other = other_state;
	add(fixture, "main;a;b", 1);
	add(fixture, "main;c", 2);
	add(other, "main;c", 1);
	add(other, "main;a;b", 1);
	add(other, "main;c", 1);
	write_svg(fixture, "same", NULL);
	write_svg(other, "same", NULL);
	assert_int_equal(fixture->svg.len, other->svg.len);
	assert_memory_equal(fixture->svg.data, other->svg.data, other->svg.len);
	assert_int_equal(teardown(&other_state), 0);
}

static void appends_behind_what_the_buffer_holds(void **state)
{
	struct fixture *fixture = *state;
	assert_true(buffer_text(&fixture->svg, "before"));
	write_svg(fixture, "nothing", NULL);
	assert_memory_equal(fixture->svg.data, "before<?xml ", 12);
	assert_memory_equal(fixture->svg.data + fixture->svg.len - 7, "</svg>\n", 7);
}

static void make_plain(struct fixture *fixture)
{
	add_plain(fixture);
	write_svg(fixture, "plain", "400 samples of main and worker");
}

static void make_empty(struct fixture *fixture)
{
	write_svg(fixture, "empty", "the process was idle");
}

/* For tools/verify-svg, which opens them in a browser: test_svg --write FOLDER. */
static int write_samples(const char *folder)
{
	static const struct {
		const char *name;
		void (*make)(struct fixture *);
	} samples[] = {{"plain", make_plain}, {"torture", add_torture}, {"empty", make_empty},
		{"deep", add_deep}, {"large", add_large}};
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		char path[4096];
		void *fixture;
		setup(&fixture);
		samples[i].make(fixture);
		snprintf(path, sizeof(path), "%s/%s.svg", folder, samples[i].name);
		save(fixture, path);
		teardown(&fixture);
	}
	return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(embeds_every_frame_with_its_weights_kind_and_image),
		CASE(draws_frames_as_wide_as_their_share_above_their_parents),
		CASE(kernel_frames_look_unlike_the_program_s),
		CASE(is_well_formed_whatever_bytes_a_name_holds),
		CASE(holds_no_markup_that_came_from_a_name),
		CASE(shortens_a_long_name_in_the_picture_and_keeps_it_in_the_data),
		CASE(asks_for_nothing_from_outside),
		CASE(says_no_samples_when_there_are_none),
		CASE(draws_the_widest_frames_and_says_how_many_are_missing),
		CASE(draws_a_recursion_of_5000),
		CASE(sums_up_small_frames_when_the_file_would_be_too_large),
		CASE(stays_below_its_limit_when_names_alone_exceed_it),
		CASE(gives_equal_bytes_for_equal_profiles),
		CASE(appends_behind_what_the_buffer_holds),
	};
	if (argc == 3 && strcmp(argv[1], "--write") == 0) {
		return write_samples(argv[2]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
