/* Our description of RenderDoc's in-application API against RenderDoc's own header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu/layer/renderdoc_api.h"

#ifdef HAS_RENDERDOC_APP
#include <renderdoc_app.h>

#define SAME_PLACE(member)                                                                         \
	assert_int_equal(offsetof(struct renderdoc_api, member), offsetof(RENDERDOC_API_1_4_1, member))

static void functions_are_where_renderdoc_has_them(void **state)
{
	(void)state;
	assert_int_equal(RENDERDOC_API_1_4_1_NUMBER, eRENDERDOC_API_Version_1_4_1);
	SAME_PLACE(GetAPIVersion);
	SAME_PLACE(SetFocusToggleKeys);
	SAME_PLACE(SetCaptureKeys);
	SAME_PLACE(GetOverlayBits);
	SAME_PLACE(MaskOverlayBits);
	SAME_PLACE(SetCaptureFilePathTemplate);
	SAME_PLACE(GetCaptureFilePathTemplate);
	SAME_PLACE(GetNumCaptures);
	SAME_PLACE(GetCapture);
	SAME_PLACE(StartFrameCapture);
	SAME_PLACE(IsFrameCapturing);
	SAME_PLACE(EndFrameCapture);
	SAME_PLACE(DiscardFrameCapture);
}
#else
static void functions_are_where_renderdoc_has_them(void **state)
{
	(void)state;
	skip(); /* no renderdoc_app.h (librenderdoc-dev) */
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_where_renderdoc_has_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
