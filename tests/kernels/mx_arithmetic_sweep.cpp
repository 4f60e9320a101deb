// Every function of mx_arithmetic.cuh over all 2^32 fp32 inputs, against forms written differently:
// in double, by comparison of values with powers of two and with what lies halfway between codes. Arguments:
// a name and, to take every n-th input only, n. Prints the first differences and their number.
#include "mx_arithmetic.cuh"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

static float value_of(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

// Values by definition, each computed once: 2^k, those of the e4m3 codes and what lies halfway
// between two, and those of the 16-bit patterns.
static double powers[600], *const power = powers + 300;
static double middle[127];  // of codes c and c + 1
static float half_values[2][65536];

static float half_value(int type, uint32_t half) {
    if (type == MX_BF16) return value_of(half << 16);
    const int field = half >> 10 & 31, fraction = half & 1023;
    const double sign = half & 0x8000 ? -1.0 : 1.0;
    if (field == 31) return fraction ? NAN : (float)(sign * INFINITY);
    return (float)(sign * std::ldexp(field ? 1024.0 + fraction : fraction, (field ? field : 1) - 25));
}

static double e4m3_value(int code) {
    const int field = code >> 3, fraction = code & 7;
    return std::ldexp(field ? 8.0 + fraction : fraction, (field ? field : 1) - 10);
}

static void fill_tables() {
    for (int k = -300; k < 300; ++k) power[k] = std::ldexp(1.0, k);
    for (int code = 0; code < 127; ++code) {
        middle[code] = (e4m3_value(code) + e4m3_value(code + 1)) / 2;
    }
    for (uint32_t half = 0; half < 65536; ++half) {
        for (int type : {MX_BF16, MX_FP16}) half_values[type][half] = half_value(type, half);
    }
}

// Whether a scale byte obeys the definition of its rule: the power of two it stands for is the
// largest at or below (floor, even) or the smallest at or above (ceil, rceil) what is divided.
static bool is_byte(int rule, float amax, uint32_t byte) {
    if (!std::isfinite(amax)) return byte == 255;
    if (byte > 247) return false;
    const int exponent = (int)byte - 127;
    if (rule == MX_RCEIL || rule == MX_CEIL) {
        const double ratio = rule == MX_CEIL ? amax / 256.0 : (double)(float)(amax * (double)(1.0f / 448.0f));
        return ratio <= power[exponent] && (byte == 0 || ratio > power[exponent - 1]);
    }
    const double least = rule == MX_EVEN ? 2 - 0.0625 : 1, most = rule == MX_EVEN ? 4 - 0.125 : 2;
    const double low = rule == MX_EVEN ? power[exponent + 7] * least : power[exponent + 8] * least;
    const double high = rule == MX_EVEN ? power[exponent + 7] * most : power[exponent + 8] * most;
    return amax < high && (byte == 0 || amax >= low);
}

// Whether an e4m3 code is the nearest one to x, the even one of two, the largest beyond it.
static bool is_code(double x, uint32_t code) {
    if (std::isnan(x)) return code == 0x7F;
    if (code >> 7 != (uint32_t)std::signbit(x)) return false;
    const int at = code & 0x7F;
    const double size = std::fabs(x);
    if (at == 127) return false;
    const bool even = at % 2 == 0;
    const bool above = at == 0 || size > middle[at - 1] || (even && size == middle[at - 1]);
    return above && (at == 126 || size < middle[at] || (even && size == middle[at]));
}

static bool same(float a, float b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

typedef bool (*Check)(uint32_t bits);

template <int RULE>
static bool scale(uint32_t bits) {
    const uint32_t amax = bits & 0x7FFFFFFF;  // an amax has no sign
    const uint32_t got = mx_scale_byte(amax, mx_rule_addend(RULE), mx_rule_exception(RULE));
    return is_byte(RULE, value_of(amax), got);
}

static bool e4m3(uint32_t bits) { return is_code(value_of(bits), mx_round_e4m3(bits)); }

static bool four(uint32_t bits) {
    const float x = value_of(bits);
    const uint32_t word = mx_cast_four(x, 1.0f, -x, -2.0f);
    return (word & 0xFF00FF00) == 0xC0003800 && is_code(x, word & 0xFF) && is_code(-x, word >> 16 & 0xFF);
}

// A block of one fp32 size: byte, multiplier, product and code together.
static bool element(uint32_t bits) {
    const uint32_t amax = bits & 0x7FFFFFFF;
    const uint32_t byte = mx_byte<MX_FP32>(amax, MX_RCEIL, mx_rule_addend(MX_RCEIL), mx_rule_exception(MX_RCEIL));
    float scaled;
    mx_scaled<MX_FP32>(bits, mx_factor<MX_FP32>(byte), &scaled);
    const uint32_t code = mx_round_e4m3(mx_bits(scaled));
    if (byte == 255) return code == 0x7F;
    return is_code(value_of(bits) * power[127 - (int)byte], code);
}

// A word of two 16-bit elements, half by half: widening, maxima, and products with a multiplier
// that changes from word to word.
template <int TYPE>
static bool halves(uint32_t bits) {
    const uint32_t low = bits & 0xFFFF, high = bits >> 16;
    const float first = half_values[TYPE][low], second = half_values[TYPE][high];
    if (!same(value_of(mx_element_bits<TYPE, 0>(bits)), first)) return false;
    if (!same(value_of(mx_element_bits<TYPE, 1>(bits)), second)) return false;
    const uint32_t a = low & 0x7FFF, b = high & 0x7FFF, most = a > b ? a : b;
    if (mx_sizes<TYPE>(bits) != (a | b << 16)) return false;
    if (mx_larger<TYPE>(a | b << 16, b | a << 16) != (most | most << 16)) return false;
    const uint32_t hash = bits * 2654435761u >> 24, byte = hash > 247 ? 255 : hash;
    float out[2];
    mx_scaled<TYPE>(bits, mx_factor<TYPE>(byte), out);
    if (byte == 255) return std::isnan(out[0]) && std::isnan(out[1]);
    const double factor = power[127 - (int)byte];
    return same(out[0], (float)(first * factor)) && same(out[1], (float)(second * factor));
}

// The number of inputs, every `step`th one below `end`, that a check finds wrong.
template <Check CHECK>
static uint64_t count_wrong(const char* name, uint64_t step, uint64_t end) {
    const unsigned workers = std::max(1u, std::thread::hardware_concurrency());
    std::vector<uint64_t> wrong(workers);
    std::vector<std::thread> threads;
    for (unsigned at = 0; at < workers; ++at) {
        threads.emplace_back([&, at] {
            uint64_t found = 0;
            for (uint64_t bits = at * step; bits < end; bits += workers * step) {
                if (!CHECK((uint32_t)bits) && found++ < 4) {
                    std::printf("%s: wrong for %#010x\n", name, (unsigned)bits);
                }
            }
            wrong[at] = found;
        });
    }
    uint64_t total = 0;
    for (unsigned at = 0; at < workers; ++at) {
        threads[at].join();
        total += wrong[at];
    }
    return total;
}

struct Named {
    const char* name;
    uint64_t (*count)(const char* name, uint64_t step, uint64_t end);
    uint64_t end;
};
static const uint64_t ALL = 1ull << 32, SIZES = 1ull << 31;
static const Named CHECKS[] = {
    {"floor", count_wrong<scale<MX_FLOOR>>, SIZES}, {"rceil", count_wrong<scale<MX_RCEIL>>, SIZES},
    {"ceil", count_wrong<scale<MX_CEIL>>, SIZES},   {"even", count_wrong<scale<MX_EVEN>>, SIZES},
    {"e4m3", count_wrong<e4m3>, ALL},               {"four", count_wrong<four>, ALL},
    {"element", count_wrong<element>, ALL},         {"bf16", count_wrong<halves<MX_BF16>>, ALL},
    {"fp16", count_wrong<halves<MX_FP16>>, ALL},
};

int main(int count, char** words) {
    const uint64_t step = count > 2 ? std::strtoull(words[2], nullptr, 10) : 1;
    fill_tables();
    for (const Named& named : CHECKS) {
        if (count < 2 || std::strcmp(named.name, words[1])) continue;
        const uint64_t total = named.count(named.name, step, named.end);
        std::printf("%s: %llu wrong\n", named.name, (unsigned long long)total);
        return total != 0;
    }
    std::fprintf(stderr, "no such check\n");
    return 2;
}
