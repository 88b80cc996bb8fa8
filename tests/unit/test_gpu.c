#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "gpu/devices.h"
#include "gpu/fault.h"
#include "gpu/gpu.h"
#include "gpu/manifest.h"

static void the_boundaries_are_those_of_the_contract(void **state)
{
	static const struct {
		const char *text;
		enum gpu_boundary boundary;
	} good[] = {{"auto", GPU_BY_AUTO}, {"present", GPU_BY_PRESENT}, {"submit", GPU_BY_SUBMIT},
		{"manual", GPU_BY_MANUAL}, {"label:frame", GPU_BY_LABEL}};
	static const char *const bad[] = {"", "label", "label:", "Auto", "submit ", "draw"};
	char label[GPU_LABEL_BYTES];
	enum gpu_boundary boundary;
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(gpu_boundary_parse(good[i].text, &boundary, label));
		assert_int_equal(boundary, good[i].boundary);
		assert_string_equal(label, boundary == GPU_BY_LABEL ? "frame" : "");
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(gpu_boundary_parse(bad[i], &boundary, label));
	}
}

static void a_prefix_of_a_label_is_taken_whole_or_not_at_all(void **state)
{
	char text[6 + GPU_LABEL_BYTES + 1], label[GPU_LABEL_BYTES];
	enum gpu_boundary boundary;
	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "label:", 6);
	text[6 + GPU_LABEL_BYTES - 1] = '\0';
	assert_true(gpu_boundary_parse(text, &boundary, label));
	assert_int_equal(strlen(label), GPU_LABEL_BYTES - 1);
	text[6 + GPU_LABEL_BYTES - 1] = 'x';
	text[6 + GPU_LABEL_BYTES] = '\0';
	assert_false(gpu_boundary_parse(text, &boundary, label));
}

static void each_fault_of_the_wire_has_a_code_a_cause_and_what_helps(void **state)
{
	static const struct {
		const char *code;
		enum error_code means;
	} faults[] = {{"layer_order", ERROR_BACKEND_UNAVAILABLE},
		{"renderdoc_missing", ERROR_BACKEND_UNAVAILABLE},
		{"renderdoc_too_old", ERROR_BACKEND_UNAVAILABLE}, {"document_missing", ERROR_IO},
		{"not_capturing", ERROR_GPU_FRAME_NOT_REACHED},
		{"nothing_recorded", ERROR_GPU_FRAME_NOT_REACHED}, {"busy", ERROR_CAPTURE_BUSY},
		{"device_not_found", ERROR_BACKEND_UNAVAILABLE},
		{"device_ambiguous", ERROR_BACKEND_UNAVAILABLE},
		{"start_failed", ERROR_BACKEND_UNAVAILABLE}, {"frame_passed", ERROR_GPU_FRAME_NOT_REACHED},
		{"output_not_writable", ERROR_IO}};
	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct error err = {0};
		fault_set(&err, faults[i].code, "what the layer says");
		assert_int_equal(err.code, faults[i].means);
		assert_string_equal(err.detail, faults[i].code);
		assert_non_null(strstr(err.message, "what the layer says"));
		assert_true(err.hint[0] != '\0');
	}
}

static void an_unknown_fault_is_told_as_it_came(void **state)
{
	struct error err = {0};
	(void)state;
	fault_set(&err, "gremlins", "in the bus");
	assert_int_equal(err.code, ERROR_IO);
	assert_string_equal(err.detail, "unknown_fault");
	assert_non_null(strstr(err.message, "in the bus"));
}

static const char *layer_text(const json_t *manifest, const char *name)
{
	return json_string_value(json_object_get(json_object_get(manifest, "layer"), name));
}

/* Its own would also switch on the manifest that is installed; and none that a user has set may switch this one off. */
static void assert_our_switch(const json_t *manifest)
{
	const json_t *layer = json_object_get(manifest, "layer");
	const json_t *on = json_object_get(layer, "enable_environment");
	const json_t *off = json_object_get(layer, "disable_environment");
	assert_int_equal(json_object_size(on), 1);
	assert_string_equal(json_string_value(json_object_get(on, "PROFD_GPU_RENDERDOC")), "1");
	assert_int_equal(json_object_size(off), 1);
	assert_null(json_object_get(off, "DISABLE_VULKAN_RENDERDOC_CAPTURE_1_24"));
}

static void renderdocs_layer_stays_an_implicit_one_with_our_switch(void **state)
{
	json_t *original = json_pack("{s:s, s:{s:s, s:s, s:s, s:{s:s}, s:{s:s}}}",
		"file_format_version", "1.1.2", "layer", "name", "VK_LAYER_RENDERDOC_Capture",
		"library_path", "../../../lib/librenderdoc.so", "api_version", "1.3.131",
		"enable_environment", "ENABLE_VULKAN_RENDERDOC_CAPTURE", "1", "disable_environment",
		"DISABLE_VULKAN_RENDERDOC_CAPTURE_1_24", "1");
	json_t *before = json_deep_copy(original);
	json_t *manifest = manifest_renderdoc(original, "/opt/librenderdoc.so");
	(void)state;
	assert_string_equal(layer_text(manifest, "library_path"), "/opt/librenderdoc.so");
	assert_string_equal(layer_text(manifest, "api_version"), "1.3.131");
	assert_our_switch(manifest);
	assert_true(json_equal(original, before));
	json_decref(manifest);
	json_decref(before);
	json_decref(original);
}

static void without_a_manifest_renderdocs_layer_has_one_made(void **state)
{
	json_t *manifest = manifest_renderdoc(NULL, "/opt/librenderdoc.so");
	(void)state;
	assert_string_equal(layer_text(manifest, "name"), MANIFEST_RENDERDOC_LAYER);
	assert_string_equal(layer_text(manifest, "library_path"), "/opt/librenderdoc.so");
	assert_string_equal(layer_text(manifest, "type"), "GLOBAL");
	assert_our_switch(manifest);
	json_decref(manifest);
}

static void our_layer_stays_an_implicit_one(void **state)
{
	json_t *original = json_pack("{s:{s:s, s:s, s:{s:s}}}", "layer", "name", "VK_LAYER_PROFD_gpu",
		"library_path", "../lib/libprofd_gpu.so", "enable_environment", "PROFD_GPU", "1");
	json_t *manifest = manifest_layer(original, "/opt/libprofd_gpu.so");
	(void)state;
	assert_string_equal(layer_text(manifest, "library_path"), "/opt/libprofd_gpu.so");
	assert_non_null(json_object_get(json_object_get(manifest, "layer"), "enable_environment"));
	json_decref(manifest);
	json_decref(original);
}

static void a_list_of_devices_has_each_once(void **state)
{
	static const struct gpu_device devices[] = {{.name = "GPU 2", .index = 11},
		{.name = "GPU", .index = 1}, {.name = "GPU 2", .index = 11}};
	char made[32] = "";
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		devices_add_name(made, sizeof(made), &devices[i]);
	}
	assert_string_equal(made, "11: GPU 2, 1: GPU");
	for (size_t i = 0; i < 5; i++) {
		const struct gpu_device more = {.name = "Another GPU", .index = i};
		devices_add_name(made, sizeof(made), &more);
	}
	assert_string_equal(made, "11: GPU 2, 1: GPU");
}

static void a_gpu_that_is_not_meant_is_told_with_those_that_there_are(void **state)
{
	static const struct gpu_device devices[] = {
		{.name = "Big GPU", .uuid = "0123456789abcdef0123456789abcdef"},
		{.name = "Small GPU", .index = 1}};
	struct error err = {0};
	(void)state;
	assert_true(devices_check(devices, 2, "small", ERROR_BAD_PARAMS, &err));
	assert_false(devices_check(devices, 2, "Voodoo", ERROR_BACKEND_UNAVAILABLE, &err));
	assert_int_equal(err.code, ERROR_BACKEND_UNAVAILABLE);
	assert_string_equal(err.detail, "device_not_found");
	assert_non_null(strstr(err.message,
		"Voodoo; there are: 0: Big GPU (0123456789abcdef0123456789abcdef), 1: Small GPU"));
	assert_non_null(strstr(err.hint, "uuid"));
	assert_false(devices_check(devices, 2, "GPU", ERROR_BAD_PARAMS, &err));
	assert_string_equal(err.detail, "device_ambiguous");
	assert_false(devices_check(devices, 0, "0", ERROR_BAD_PARAMS, &err));
	assert_non_null(strstr(err.message, "there are: none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_of_devices_has_each_once),
		cmocka_unit_test(a_gpu_that_is_not_meant_is_told_with_those_that_there_are),
		cmocka_unit_test(the_boundaries_are_those_of_the_contract),
		cmocka_unit_test(a_prefix_of_a_label_is_taken_whole_or_not_at_all),
		cmocka_unit_test(each_fault_of_the_wire_has_a_code_a_cause_and_what_helps),
		cmocka_unit_test(an_unknown_fault_is_told_as_it_came),
		cmocka_unit_test(renderdocs_layer_stays_an_implicit_one_with_our_switch),
		cmocka_unit_test(without_a_manifest_renderdocs_layer_has_one_made),
		cmocka_unit_test(our_layer_stays_an_implicit_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
