// Enough of CUDA for a host compiler to run a kernel: one fiber for each thread of a thread block.
//
// Blocks run one after another. A thread runs until it synchronises or exchanges, then the next one
// runs; all threads of a block must do so equally often, which is checked. What an exchange gives
// is kept twice over, so that a fast thread does not overwrite what a slow one still reads.
#pragma once
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline
#define __launch_bounds__(...)

struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx;

namespace shim {
constexpr int MOST = 1024, STACK = 256 << 10;
static ucontext_t scheduler, fibers[MOST];
static std::vector<char> stacks;
static int threads, current;
static unsigned slots[2][MOST];
static int phase[MOST];
static bool done[MOST];
static void (*body)();

static void wait() {
    ++phase[current];
    swapcontext(&fibers[current], &scheduler);
}
static void entry() {
    body();
    done[current] = true;
    swapcontext(&fibers[current], &scheduler);
}
static void run_block() {
    for (int i = 0; i < threads; ++i) {
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks.data() + (size_t)i * STACK;
        fibers[i].uc_stack.ss_size = STACK;
        fibers[i].uc_link = &scheduler;
        makecontext(&fibers[i], entry, 0);
        phase[i] = 0;
        done[i] = false;
    }
    for (int left = threads; left;) {
        for (current = 0; current < threads; ++current) {
            if (done[current]) continue;
            threadIdx.x = current;
            swapcontext(&scheduler, &fibers[current]);
            if (done[current]) --left;
        }
        for (int i = 1; i < threads; ++i) {
            if (phase[i] != phase[0] || done[i] != done[0]) {
                std::fprintf(stderr, "threads 0 and %d synchronise unequally\n", i);
                std::exit(3);
            }
        }
    }
}
static void launch(const long long* grid, int block, void (*kernel)()) {
    threads = block;
    body = kernel;
    stacks.resize((size_t)block * STACK);
    for (unsigned z = 0; z < grid[2]; ++z)
        for (unsigned y = 0; y < grid[1]; ++y)
            for (unsigned x = 0; x < grid[0]; ++x) {
                blockIdx = {x, y, z};
                run_block();
            }
}
}  // namespace shim

static inline void __syncthreads() { shim::wait(); }
static inline unsigned __shfl_xor_sync(unsigned, unsigned value, int step) {
    const int self = shim::current, at = shim::phase[self] & 1;
    shim::slots[at][self] = value;
    shim::wait();
    return shim::slots[at][(self & ~31) | ((self ^ step) & 31)];
}
