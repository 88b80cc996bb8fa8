var<workgroup> seen: array<u32, 8>;

@compute @workgroup_size(8)
fn step(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    seen[index] = id.x * 7u;
}
