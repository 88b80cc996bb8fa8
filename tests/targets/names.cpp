/*
 * Functions whose names are hard to read as the linker knows them. Each burns 60 ms. Rust's are given by hand: what rustc would make
 * of a function, in its two manners.
 */
#include "burn.h"

namespace shop {

template <typename Type, int Count> struct shelf {
	NOINLINE void fill() const
	{
		burn_ms(60);
	}

	NOINLINE bool operator<(const shelf &) const
	{
		burn_ms(60);
		return false;
	}

	NOINLINE int operator()(const Type *, unsigned char) const
	{
		burn_ms(60);
		return Count;
	}

	NOINLINE operator bool() const
	{
		burn_ms(60);
		return true;
	}
};

template <typename... Types> NOINLINE void variadic(Types...)
{
	burn_ms(60);
}

inline NOINLINE void in_lambda()
{
	auto lambda = [](int) __attribute__((noinline))
	{
		burn_ms(60);
	};

	lambda(1);
}

} // namespace shop

namespace {

NOINLINE void hidden(unsigned long)
{
	burn_ms(60);
}

} // namespace

static NOINLINE void local(char)
{
	burn_ms(60);
}

extern "C" {
void rust_v0(void) __asm__("_RNvCs15kBYyAo9fc_7mycrate7example");
void rust_v0_generic(void) __asm__("_RINvNtC3std3mem8align_ofjdE");
void rust_legacy(void) __asm__("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE");

NOINLINE void rust_v0(void)
{
	burn_ms(60);
}

NOINLINE void rust_v0_generic(void)
{
	burn_ms(60);
}

NOINLINE void rust_legacy(void)
{
	burn_ms(60);
}
}

int main()
{
	shop::shelf<int, 3> first;
	shop::shelf<shop::shelf<char, 1>, 7> second;

	first.fill();
	second.fill();
	(void)(first < first);
	(void)second(nullptr, 0);
	(void)static_cast<bool>(first);
	shop::variadic(1, 2.0, &first);
	hidden(1);
	local('a');
	shop::in_lambda();
	rust_v0();
	rust_v0_generic();
	rust_legacy();
	KEEP_FRAME();
	return 0;
}
