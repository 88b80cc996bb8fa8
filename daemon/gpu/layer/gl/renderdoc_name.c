/* A librenderdoc.so to link with: a name and nothing else. */
extern const char renderdoc_name;
const char renderdoc_name = 0;
