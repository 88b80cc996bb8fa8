#version 450
layout(location = 0) out vec4 color;
layout(push_constant) uniform Frame { uint frame; };

void main()
{
	color = vec4(float(frame % 256u) / 255.0, 1.0, 0.0, 1.0);
}
