/*
 * A program that uses OpenGL ES by EGL without a window: each frame is a compute shader, which goes on with 1024 numbers, and a clear of an
 * own framebuffer, and ends with eglSwapBuffers where there is a surface. It says what it has computed, compares that with its own
 * arithmetic, and ends with 1 where they differ.
 *
 *   gl_frames [--frames N] [--frame-ms MS]
 *             [--surfaceless]      without a surface: nothing is ever swapped
 *             [--by link|dlopen|proc]   where its functions of EGL are from: the linker, dlsym of libEGL.so.1, eglGetProcAddress
 *             [--exit-at FRAME]    exit(0) before this frame, nothing destroyed
 *             [--probe]            first makes a context that it only looks at
 *             [--leave]            at the end too nothing is destroyed
 *             [--own-phases LIST]  starts and stops of its own (gpu/phases.h); a stop is behind the swap
 *             [--no-labels] [--environment]   prints LD_PRELOAD and LD_LIBRARY_PATH
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl32.h>

#include "gpu/phases.h"

#define NUMBERS 1024
#define GROUP   64
#define SIDE    64 /* of the picture, in pixels */
#define ROUNDS  16

#define EGL_FUNCTIONS(each)                                                                        \
	each(eglGetPlatformDisplay) each(eglInitialize) each(eglChooseConfig) each(eglBindAPI)         \
		each(eglCreateContext) each(eglCreatePbufferSurface) each(eglMakeCurrent)                  \
			each(eglSwapBuffers) each(eglDestroyContext) each(eglDestroySurface)                   \
				each(eglTerminate) each(eglGetError)

#define DECLARE(name) __typeof__(&(name)) name##_;
static struct {
	EGL_FUNCTIONS(DECLARE)
} egl;

static struct {
	unsigned frames, frame_ms, exit_at;
	bool surfaceless, no_labels, leave, environment, probe;
	const char *by, *own_phases;
} options = {.frames = 5, .exit_at = UINT32_MAX, .by = "link"};

static struct {
	EGLDisplay display;
	EGLSurface surface;
	EGLContext context;
	GLuint program, numbers, framebuffer, picture;
	GLint frame_place;
} gl;

static const char *const fill =
	"#version 310 es\n"
	"layout(local_size_x = 64) in;\n"
	"layout(std430, binding = 0) buffer Numbers { uint number[]; };\n"
	"layout(location = 0) uniform uint frame;\n"
	"void main() {\n"
	"	uint i = gl_GlobalInvocationID.x;\n"
	"	uint value = number[i] ^ (i * 2654435761u + frame * 40503u + 1u);\n"
	"	for (int round = 0; round < 16; round++) {\n"
	"		value ^= value << 13;\n"
	"		value ^= value >> 17;\n"
	"		value ^= value << 5;\n"
	"	}\n"
	"	number[i] = value;\n"
	"}\n";

static void fail(const char *what)
{
	fprintf(stderr, "gl_frames: %s\n", what);
	exit(2);
}

static void need(bool ok, const char *what)
{
	if (!ok) {
		fail(what);
	}
}

static void *find(void *library, const char *name)
{
	void *function = strcmp(options.by, "proc") == 0 ? (void *)(uintptr_t)eglGetProcAddress(name)
													 : dlsym(library, name);
	need(function != NULL, name);
	return function;
}

static void find_functions(void)
{
#define LINKED(name) egl.name##_ = name;
#define FOUND(name)  *(void **)&egl.name##_ = find(library, #name);
	if (strcmp(options.by, "link") == 0) {
		EGL_FUNCTIONS(LINKED)
		return;
	}
	void *library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL);
	need(library != NULL, "no libEGL.so.1");
	EGL_FUNCTIONS(FOUND)
}

static void make_context(void)
{
	static const EGLint wanted[] = {
		EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES3_BIT, EGL_NONE};
	static const EGLint size[] = {EGL_WIDTH, SIDE, EGL_HEIGHT, SIDE, EGL_NONE};
	static const EGLint version[] = {
		EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 2, EGL_NONE};
	EGLConfig config;
	EGLint count = 0;
	gl.display = egl.eglGetPlatformDisplay_(EGL_PLATFORM_SURFACELESS_MESA, NULL, NULL);
	need(egl.eglInitialize_(gl.display, NULL, NULL), "eglInitialize");
	need(egl.eglBindAPI_(EGL_OPENGL_ES_API), "eglBindAPI");
	need(egl.eglChooseConfig_(gl.display, wanted, &config, 1, &count) && count == 1,
		"no configuration with pbuffers");
	gl.context = egl.eglCreateContext_(gl.display, config, EGL_NO_CONTEXT, version);
	need(gl.context != EGL_NO_CONTEXT, "eglCreateContext");
	gl.surface = options.surfaceless ? EGL_NO_SURFACE
									 : egl.eglCreatePbufferSurface_(gl.display, config, size);
	need(egl.eglMakeCurrent_(gl.display, gl.surface, gl.surface, gl.context), "eglMakeCurrent");
}

static void make_program(void)
{
	GLint is_good = 0;
	GLuint shader = glCreateShader(GL_COMPUTE_SHADER);
	glShaderSource(shader, 1, &fill, NULL);
	glCompileShader(shader);
	gl.program = glCreateProgram();
	glAttachShader(gl.program, shader);
	glLinkProgram(gl.program);
	glGetProgramiv(gl.program, GL_LINK_STATUS, &is_good);
	need(is_good, "the shader does not link");
	glDeleteShader(shader);
}

static void make_memory(void)
{
	static const uint32_t zeros[NUMBERS];
	glGenBuffers(1, &gl.numbers);
	glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, gl.numbers);
	glBufferData(GL_SHADER_STORAGE_BUFFER, sizeof(zeros), zeros, GL_DYNAMIC_READ);
	glGenTextures(1, &gl.picture);
	glBindTexture(GL_TEXTURE_2D, gl.picture);
	glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, SIDE, SIDE);
	glGenFramebuffers(1, &gl.framebuffer);
	glBindFramebuffer(GL_FRAMEBUFFER, gl.framebuffer);
	glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, gl.picture, 0);
	need(glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE, "framebuffer");
}

static void push(const char *name)
{
	if (!options.no_labels) {
		glPushDebugGroup(GL_DEBUG_SOURCE_APPLICATION, 1, -1, name);
	}
}

static void pop(void)
{
	if (!options.no_labels) {
		glPopDebugGroup();
	}
}

static void draw(unsigned frame)
{
	char name[32];
	snprintf(name, sizeof(name), "frame %u", frame);
	push(name);
	push("fill");
	glUseProgram(gl.program);
	glUniform1ui(0, frame);
	glDispatchCompute(NUMBERS / GROUP, 1, 1);
	glMemoryBarrier(GL_ALL_BARRIER_BITS);
	pop();
	push("clear");
	glBindFramebuffer(GL_FRAMEBUFFER, gl.framebuffer);
	glClearColor((float)(frame % 256) / 255, 0, 1, 1);
	glClear(GL_COLOR_BUFFER_BIT);
	pop();
	pop();
	if (options.surfaceless) {
		glFinish();
	} else {
		need(egl.eglSwapBuffers_(gl.display, gl.surface), "eglSwapBuffers");
	}
}

static uint32_t hash_bytes(const void *bytes, size_t count)
{
	uint32_t hash = 2166136261u;
	for (size_t i = 0; i < count; i++) {
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * 16777619u;
	}
	return hash;
}

/* What the shader makes of it. */
static uint32_t next_number(uint32_t number, uint32_t i, uint32_t frame)
{
	uint32_t value = number ^ (i * 2654435761u + frame * 40503u + 1u);
	for (int round = 0; round < ROUNDS; round++) {
		value ^= value << 13;
		value ^= value >> 17;
		value ^= value << 5;
	}
	return value;
}

/* False: the GPU and this processor differ. */
static bool tell_result(unsigned frames)
{
	static uint32_t expected[NUMBERS];
	static unsigned char pixels[4 * SIDE * SIDE];
	for (uint32_t i = 0; i < NUMBERS; i++) {
		for (unsigned frame = 0; frame < frames; frame++) {
			expected[i] = next_number(expected[i], i, frame);
		}
	}
	const void *numbers =
		glMapBufferRange(GL_SHADER_STORAGE_BUFFER, 0, sizeof(expected), GL_MAP_READ_BIT);
	need(numbers != NULL, "glMapBufferRange");
	glReadPixels(0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
	printf("numbers %08x pixels %08x first %u\n", hash_bytes(numbers, sizeof(expected)),
		hash_bytes(pixels, sizeof(pixels)), pixels[0]);
	bool is_same = memcmp(numbers, expected, sizeof(expected)) == 0 &&
				   pixels[0] == (frames - 1) % 256 && pixels[2] == 255;
	glUnmapBuffer(GL_SHADER_STORAGE_BUFFER);
	return is_same;
}

static bool read_number(const char *word, const char *name, const char *value, unsigned *out)
{
	if (value == NULL || strcmp(word, name) != 0) {
		return false;
	}
	*out = (unsigned)strtoul(value, NULL, 10);
	return true;
}

static bool read_switch(const char *word, const char *name, bool *out)
{
	*out |= strcmp(word, name) == 0;
	return strcmp(word, name) == 0;
}

static void read_options(char **argv)
{
	for (char **at = argv + 1; *at != NULL; at++) {
		if (read_number(*at, "--frames", at[1], &options.frames) ||
			read_number(*at, "--frame-ms", at[1], &options.frame_ms) ||
			read_number(*at, "--exit-at", at[1], &options.exit_at)) {
			at++;
		} else if (strcmp(*at, "--by") == 0 && at[1] != NULL) {
			options.by = *++at;
		} else if (strcmp(*at, "--own-phases") == 0 && at[1] != NULL) {
			options.own_phases = *++at;
		} else if (!read_switch(*at, "--surfaceless", &options.surfaceless) &&
				   !read_switch(*at, "--no-labels", &options.no_labels) &&
				   !read_switch(*at, "--leave", &options.leave) &&
				   !read_switch(*at, "--probe", &options.probe) &&
				   !read_switch(*at, "--environment", &options.environment)) {
			fail(*at);
		}
	}
}

static void tell_environment(void)
{
	const char *preload = getenv("LD_PRELOAD"), *path = getenv("LD_LIBRARY_PATH");
	printf("LD_PRELOAD=%s LD_LIBRARY_PATH=%s\n", preload != NULL ? preload : "",
		path != NULL ? path : "");
}

static void end_context(void)
{
	egl.eglMakeCurrent_(gl.display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
	egl.eglDestroyContext_(gl.display, gl.context);
	egl.eglTerminate_(gl.display);
}

int main(int argc, char **argv)
{
	(void)argc;
	read_options(argv);
	if (options.environment) {
		tell_environment();
	}
	phases_early(options.own_phases);
	find_functions();
	make_context();
	if (options.probe) {
		end_context();
		make_context();
	}
	make_program();
	make_memory();
	for (unsigned frame = 0; frame < options.frames; frame++) {
		struct timespec pause = {0, (long)options.frame_ms * 1000000};
		if (frame == options.exit_at) {
			exit(0);
		}
		phases_run(options.own_phases, frame, false, false);
		draw(frame);
		phases_run(options.own_phases, frame, true, false);
		nanosleep(&pause, NULL);
	}
	bool is_same = tell_result(options.frames);
	if (!options.leave) {
		end_context();
	}
	return is_same ? 0 : 1;
}
