#ifndef GPU_LAYER_GL_CONTEXTS_H
#define GPU_LAYER_GL_CONTEXTS_H

/*
 * The contexts of EGL and GLX that the program works with. Each is a device to profd, whose frames are counted from the moment in which it
 * is current for the first time. Any thread.
 */

/* The program is about to make this context current: before its first one profd is greeted, and waited for. */
void contexts_prepare(const void *context);
/* It is current in this thread. The first time profd is told of it, and its frame 0 begins. */
void contexts_current(const void *context);
/* What is drawn with it is shown now. */
void contexts_presented(const void *context);
/* It is about to give the GPU work: a recording that was asked for without frames begins or ends here. */
void contexts_working(const void *context);
/* A group of commands with this name begins in it. */
void contexts_labelled(const void *context, const char *label);
/* It draws into this window of X (0: no such) of this display, of X or EGL. */
void contexts_draw_into(const void *context, const void *display, unsigned long window);
/*
 * It is about to be current in no thread any more. A program that does that in each frame hands it from thread to thread; from any other it is the
 * beginning of the end, behind which RenderDoc finds no window: what is recorded of it ends.
 */
void contexts_released(const void *context);
/* A window, or a display with all that is in it, is about to be destroyed: what is recorded of it ends. */
void contexts_window_goes(const void *display, unsigned long window);
void contexts_display_goes(const void *display);
/* Before it is destroyed. */
void contexts_gone(const void *context);

#endif
