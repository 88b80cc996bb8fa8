groupshared uint seen[8];

[numthreads(8, 1, 1)]
void step(uint3 id : SV_DispatchThreadID, uint index : SV_GroupIndex)
{
	seen[index] = id.x * 5;
}
