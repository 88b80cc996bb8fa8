// A WebGPU program for Deno and for Node: each frame is one submit of a compute shader, which goes on with 1024 numbers. The frame's number is in
// the size of its dispatch (16, 1 + frame, 1), so that a document tells which frames it has. It prints the numbers' hash, and ends with 1 where
// they are not what this processor computes.
//
//   deno run --allow-all fill.mjs FRAMES
//   node fill.mjs FRAMES PATH_OF_WEBGPU/index.js [BACKEND]    of Dawn: vulkan, opengles
const NUMBERS = 1024, GROUP = 64, ROUNDS = 16;

const shader = `
@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;

@compute @workgroup_size(${GROUP})
fn main(@builtin(global_invocation_id) id: vec3u) {
	if (id.y > 0u) {
		return;
	}
	var value = numbers[id.x] ^ (id.x * 2654435761u + 1u);
	for (var round = 0; round < ${ROUNDS}; round++) {
		value ^= value << 13u;
		value ^= value >> 17u;
		value ^= value << 5u;
	}
	numbers[id.x] = value;
}
`;

const isDeno = globalThis.Deno !== undefined;
const args = isDeno ? Deno.args : process.argv.slice(2);
const frames = Number(args[0]);

async function findGpu() {
	if (isDeno) {
		return navigator.gpu;
	}
	const { create, globals } = await import(args[1]);
	Object.assign(globalThis, globals);
	return create(args[2] ? ["backend=" + args[2]] : []);
}

function expected() {
	const numbers = new Uint32Array(NUMBERS);
	for (let frame = 0; frame < frames; frame++) {
		for (let i = 0; i < NUMBERS; i++) {
			let value = numbers[i] ^ (Math.imul(i, 2654435761) + 1);
			for (let round = 0; round < ROUNDS; round++) {
				value ^= value << 13;
				value ^= value >>> 17;
				value ^= value << 5;
			}
			numbers[i] = value;
		}
	}
	return numbers;
}

function hash(numbers) {
	let result = 2166136261;
	for (const byte of new Uint8Array(numbers.buffer)) {
		result = Math.imul(result ^ byte, 16777619);
	}
	return (result >>> 0).toString(16).padStart(8, "0");
}

const gpu = await findGpu();
const adapter = await gpu.requestAdapter(args[2] === "opengles" ? { featureLevel: "compatibility" } : {});
if (!adapter) {
	console.log("no adapter");
	(isDeno ? Deno : process).exit(2);
}
const device = await adapter.requestDevice();
const size = NUMBERS * 4;
const numbers = device.createBuffer({ size, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC });
const back = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
const pipeline = device.createComputePipeline({
	layout: "auto",
	compute: { module: device.createShaderModule({ code: shader }), entryPoint: "main" },
});
const group = device.createBindGroup({
	layout: pipeline.getBindGroupLayout(0),
	entries: [{ binding: 0, resource: { buffer: numbers } }],
});

for (let frame = 0; frame < frames; frame++) {
	const encoder = device.createCommandEncoder();
	encoder.pushDebugGroup("frame " + frame);
	const pass = encoder.beginComputePass();
	pass.setPipeline(pipeline);
	pass.setBindGroup(0, group);
	pass.dispatchWorkgroups(NUMBERS / GROUP, 1 + frame, 1);
	pass.end();
	encoder.popDebugGroup();
	device.queue.submit([encoder.finish()]);
	await device.queue.onSubmittedWorkDone();
}

const encoder = device.createCommandEncoder();
encoder.copyBufferToBuffer(numbers, 0, back, 0, size);
device.queue.submit([encoder.finish()]);
await back.mapAsync(GPUMapMode.READ);
const got = new Uint32Array(back.getMappedRange().slice(0));
back.unmap();
device.destroy();
console.log(`${frames} frames, numbers ${hash(got)}`);
(isDeno ? Deno : process).exit(hash(got) === hash(expected()) ? 0 : 1);
