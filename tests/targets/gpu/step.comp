#version 450
layout(local_size_x = 8) in;
shared uint seen[8];

void main()
{
	seen[gl_LocalInvocationIndex] = gl_GlobalInvocationID.x * 3u;
}
