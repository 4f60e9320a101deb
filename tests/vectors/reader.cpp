// Reads vectors.txt (e4m3, layout plain) and verifies it with the C++20 standard library alone: the scale bytes
// of floor by a rule of its own, every payload code as the nearest one, the poison of NaN and Inf.
#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>
static std::ifstream in;
template <class T> static T named() { std::string name; T value{}; in >> name >> value; return value; }
static std::vector<uint32_t> numbers(size_t count, std::ios_base& (*base)(std::ios_base&)) {
    std::vector<uint32_t> all(in ? count : 0);
    for (auto& each : all) in >> base >> each;
    in >> std::dec;
    return all;
}
static std::vector<uint32_t> codes(size_t count) { std::string name; in >> name; return numbers(count, std::hex); }
static double value(uint32_t bits, const std::string& dtype) {
    const uint32_t e = bits >> 10 & 31, m = bits & 1023;
    const double half = std::ldexp(e ? 1024 + m : m, int(e ? e : 1) - 25);
    if (dtype != "fp16") return std::bit_cast<float>(dtype == "bf16" ? bits << 16 : bits);
    return std::copysign(e < 31 ? half : m ? NAN : INFINITY, bits >> 15 ? -1.0 : 1.0);
}
static double e4m3(int c) { return c < 0 || c > 126 ? 1e9 : c > 7 ? std::ldexp(8 + c % 8, c / 8 - 10) : std::ldexp(c, -9); }
static bool nearest(double x, int code) {  // x over its scale; saturated at 448, ties to the even code
    const int c = code & 127;
    const double a = std::fmin(std::fabs(x), 448), d = std::fabs(e4m3(c) - a);
    const double next = std::fmin(std::fabs(e4m3(c - 1) - a), std::fabs(e4m3(c + 1) - a));
    return std::signbit(x) == (code > 127) && (c % 2 ? d < next : d <= next);
}
int main(int, char** argv) {
    in.open(argv[1]);
    std::string head[4];  // format, spec, recipe, element
    for (auto& each : head) each = named<std::string>();
    const size_t tall = named<size_t>(), wide = numbers(1, std::dec).at(0);
    if (head[0] != "mxref-vectors-1" || head[3] != "e4m3" || named<std::string>() != "plain") return 2;
    const std::string contract = named<std::string>();
    for (size_t i = 0, cases = named<size_t>(); i < cases; i++) {
        const auto name = named<std::string>(), dtype = named<std::string>();
        auto shape = numbers(named<size_t>(), std::dec), grid = numbers(named<size_t>(), std::dec);
        size_t count = 1, scales = 1, rank = shape.size();
        for (size_t k = 0; k < rank; k++) count *= shape[k], scales *= grid[k];
        const auto x = codes(count), payload = codes(count), scale = codes(scales);
        if (!in) return std::cout << "the file ends in case " << name << "\n", 2;
        const size_t rows = rank > 1 ? shape[rank - 2] : 1, columns = shape[rank - 1], high = rank > 1 ? grid[rank - 2] : 1;
        std::vector<double> amax(scales);  // complete after the first pass
        for (size_t j = 0; j < 2 * count; j++) {
            const size_t k = j % count, row = k / columns;
            const size_t b = (row / rows * high + row % rows / tall) * grid[rank - 1] + k % columns / wide;
            const double v = value(x[k], dtype), a = amax[b] = std::isfinite(v) ? std::fmax(std::fabs(v), amax[b]) : INFINITY;
            const int floor = a > 1e300 ? 255 : a > 0 ? std::max(std::ilogb(a) - 8 + 127, 0) : 0, byte = scale[b];
            const bool right = byte == 255 ? payload[k] == 0x7F : nearest(std::ldexp(v, 127 - byte), payload[k]);
            if (j >= count && !(right && (head[2] != "floor" || byte == floor)))
                return std::cout << "case " << name << " of " << dtype << ", element " << k << "\n", 1;
        }
        if (i + 1 == cases) std::cout << head[2] << " " << cases << " cases\n";
    }
}
