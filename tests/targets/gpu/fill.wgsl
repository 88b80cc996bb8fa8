@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;
var<immediate> frame: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
	let i = id.x;
	var value = numbers[i] ^ (i * 2654435761u + frame * 40503u + 1u);
	for (var round = 0; round < 16; round++) {
		value ^= value << 13u;
		value ^= value >> 17u;
		value ^= value << 5u;
	}
	numbers[i] = value;
}
