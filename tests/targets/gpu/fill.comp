#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Numbers { uint number[]; };
layout(push_constant) uniform Frame { uint frame; };

void main()
{
	uint i = gl_GlobalInvocationID.x;
	uint value = number[i] ^ (i * 2654435761u + frame * 40503u + 1u);
	for (int round = 0; round < 16; round++) {
		value ^= value << 13;
		value ^= value >> 17;
		value ^= value << 5;
	}
	number[i] = value;
}
