/*
 * A program that shows frames in a window of X, by GLX or by EGL: each is a clear to another colour within a debug group "frame N". It reads
 * a pixel of each before it is shown, and ends with 1 where that is not the colour.
 *
 *   gl_window glx|old|egl [FRAMES [END]]
 *       old: GLX with a context of its first kind
 *       END: what it does at its end, instead of destroying all: stay (nothing), window (destroys that alone), display (closes it), release (the
 *       context, which is current no more); hand: the context is released after each frame, and made current again; nothing at the end
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <EGL/egl.h>
#define GL_GLEXT_PROTOTYPES
#include <GL/gl.h>
#include <GL/glext.h>
#include <GL/glx.h>
#include <X11/Xlib.h>

#define SIDE 64

static Display *display;
static Window window;
static GLXContext glx;
static EGLDisplay egl_display;
static EGLContext egl;
static EGLSurface egl_surface;

static void need(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "gl_window: %s\n", what);
		exit(2);
	}
}

static void make_window(const XVisualInfo *visual)
{
	Window root = RootWindow(display, visual->screen);
	XSetWindowAttributes attributes = {
		.colormap = XCreateColormap(display, root, visual->visual, AllocNone)};
	window = XCreateWindow(display, root, 0, 0, SIDE, SIDE, 0, visual->depth, InputOutput,
		visual->visual, CWColormap, &attributes);
	XMapWindow(display, window);
	XSync(display, False);
}

static void begin_glx(bool is_old)
{
	static const int wanted[] = {GLX_X_RENDERABLE, True, GLX_DOUBLEBUFFER, True, None};
	static const int version[] = {
		GLX_CONTEXT_MAJOR_VERSION_ARB, 4, GLX_CONTEXT_MINOR_VERSION_ARB, 3, None};
	int count = 0;
	GLXFBConfig *configs = glXChooseFBConfig(display, DefaultScreen(display), wanted, &count);
	need(count > 0, "no configuration");
	XVisualInfo *visual = glXGetVisualFromFBConfig(display, configs[0]);
	need(visual != NULL, "no visual");
	make_window(visual);
	PFNGLXCREATECONTEXTATTRIBSARBPROC create =
		(PFNGLXCREATECONTEXTATTRIBSARBPROC)glXGetProcAddressARB(
			(const GLubyte *)"glXCreateContextAttribsARB");
	glx = is_old ? glXCreateContext(display, visual, NULL, True)
				 : create(display, configs[0], NULL, True, version);
	need(glx != NULL && glXMakeCurrent(display, window, glx), "glXMakeCurrent");
	XFree(visual);
	XFree(configs);
}

static void begin_egl(void)
{
	static const EGLint wanted[] = {
		EGL_SURFACE_TYPE, EGL_WINDOW_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_NONE};
	EGLConfig config;
	EGLint count = 0, id = 0;
	int found = 0;
	egl_display = eglGetDisplay((EGLNativeDisplayType)display);
	need(eglInitialize(egl_display, NULL, NULL) && eglBindAPI(EGL_OPENGL_API), "eglInitialize");
	need(
		eglChooseConfig(egl_display, wanted, &config, 1, &count) && count == 1, "no configuration");
	eglGetConfigAttrib(egl_display, config, EGL_NATIVE_VISUAL_ID, &id);
	XVisualInfo like = {.visualid = (VisualID)id};
	XVisualInfo *visual = XGetVisualInfo(display, VisualIDMask, &like, &found);
	need(visual != NULL, "no visual");
	make_window(visual);
	XFree(visual);
	egl = eglCreateContext(egl_display, config, EGL_NO_CONTEXT, NULL);
	egl_surface = eglCreateWindowSurface(egl_display, config, window, NULL);
	need(eglMakeCurrent(egl_display, egl_surface, egl_surface, egl), "eglMakeCurrent");
}

static unsigned draw(unsigned frame)
{
	char name[32];
	unsigned char pixel[4] = {0};
	snprintf(name, sizeof(name), "frame %u", frame);
	glPushDebugGroup(GL_DEBUG_SOURCE_APPLICATION, 1, -1, name);
	glClearColor((float)(frame % 256) / 255, 0, 1, 1);
	glClear(GL_COLOR_BUFFER_BIT);
	glReadPixels(SIDE / 2, SIDE / 2, 1, 1, GL_RGBA, GL_UNSIGNED_BYTE, pixel);
	glPopDebugGroup();
	if (glx != NULL) {
		glXSwapBuffers(display, window);
	} else {
		need(eglSwapBuffers(egl_display, egl_surface), "eglSwapBuffers");
	}
	return pixel[0] | (unsigned)pixel[1] << 8 | (unsigned)pixel[2] << 16;
}

static void make_current(bool is)
{
	if (glx != NULL) {
		need(glXMakeCurrent(display, is ? window : None, is ? glx : NULL), "glXMakeCurrent");
	} else {
		EGLSurface surface = is ? egl_surface : EGL_NO_SURFACE;
		need(eglMakeCurrent(egl_display, surface, surface, is ? egl : EGL_NO_CONTEXT),
			"eglMakeCurrent");
	}
}

static void end(void)
{
	make_current(false);
	if (glx != NULL) {
		glXDestroyContext(display, glx);
	} else {
		eglDestroyContext(egl_display, egl);
		eglTerminate(egl_display);
	}
	XDestroyWindow(display, window);
	XCloseDisplay(display);
}

static void end_by(const char *how)
{
	if (strcmp(how, "all") == 0) {
		end();
	} else if (strcmp(how, "window") == 0) {
		XDestroyWindow(display, window);
		XSync(display, False);
	} else if (strcmp(how, "display") == 0) {
		XCloseDisplay(display);
	} else if (strcmp(how, "release") == 0) {
		make_current(false);
	}
}

int main(int argc, char **argv)
{
	unsigned frames = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5, wrong = 0;
	const char *how = argc > 3 ? argv[3] : "all";
	display = XOpenDisplay(NULL);
	need(argc > 1 && display != NULL, "no display");
	if (strcmp(argv[1], "egl") == 0) {
		begin_egl();
	} else {
		begin_glx(strcmp(argv[1], "old") == 0);
	}
	for (unsigned frame = 0; frame < frames; frame++) {
		wrong += draw(frame) != (frame % 256 | 255u << 16);
		if (strcmp(how, "hand") == 0) {
			make_current(false);
			make_current(true);
		}
	}
	printf("%u frames, %u wrong\n", frames, wrong);
	end_by(how);
	return wrong == 0 ? 0 : 1;
}
