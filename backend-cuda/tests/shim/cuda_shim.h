// Lets a C++ compiler turn CUDA C of hopwise's subset into code for the host: a test fixture. It has
// the built-ins that our programs use, and runs the threads of a grid one after the other; programs
// whose threads wait for each other cannot be run this way.

#pragma once

#include <pthread.h>
#include <time.h>

#include <thread>
#include <vector>

#define __global__ __attribute__((visibility("default"), used))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __restrict__ __restrict

struct hw_shim_index {
    unsigned x, y, z;
};

static thread_local hw_shim_index threadIdx = {0, 0, 0};
static thread_local hw_shim_index blockIdx = {0, 0, 0};
static thread_local hw_shim_index blockDim = {1, 1, 1};
static thread_local hw_shim_index gridDim = {1, 1, 1};

static inline unsigned atomicAdd(unsigned *at, unsigned value) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
static inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long value) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
static inline unsigned atomicOr(unsigned *at, unsigned value) {
    return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}
static inline unsigned atomicAnd(unsigned *at, unsigned value) {
    return __atomic_fetch_and(at, value, __ATOMIC_RELAXED);
}
static inline unsigned atomicExch(unsigned *at, unsigned value) {
    return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}
static inline unsigned atomicMax(unsigned *at, unsigned value) {
    unsigned old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (old < value
           && !__atomic_compare_exchange_n(
               at, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
}
static inline unsigned atomicCAS(unsigned *at, unsigned expected, unsigned value) {
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// The barrier of a block whose threads run at the same time; none where they run one by one.
static thread_local pthread_barrier_t *hw_shim_block = nullptr;

static inline void __syncthreads() {
    if (hw_shim_block) pthread_barrier_wait(hw_shim_block);
}
static inline void __nanosleep(unsigned nanoseconds) {
    const timespec pause = {0, (long)nanoseconds};
    nanosleep(&pause, nullptr);
}
static inline unsigned long long hw_now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}

// Runs the threads of a grid of one dimension at the same time, as a cooperative launch does.
extern "C" __attribute__((visibility("default"))) void hw_shim_launch_together(
    void (*kernel)(const void *), const void *argument, const unsigned grid[3],
    const unsigned block[3]
) {
    std::vector<pthread_barrier_t> barriers(grid[0]);
    std::vector<std::thread> threads;
    for (unsigned b = 0; b < grid[0]; b++) {
        pthread_barrier_init(&barriers[b], nullptr, block[0]);
        for (unsigned t = 0; t < block[0]; t++) {
            threads.emplace_back([=, &barriers] {
                gridDim = {grid[0], 1, 1};
                blockDim = {block[0], 1, 1};
                blockIdx = {b, 0, 0};
                threadIdx = {t, 0, 0};
                hw_shim_block = &barriers[b];
                kernel(argument);
            });
        }
    }
    for (std::thread &thread : threads) thread.join();
}

// Runs every thread of a grid.
extern "C" __attribute__((visibility("default"))) void hw_shim_launch(
    void (*kernel)(const void *), const void *argument, const unsigned grid[3],
    const unsigned block[3]
) {
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    for (blockIdx.z = 0; blockIdx.z < grid[2]; blockIdx.z++) {
        for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++) {
            for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++) {
                for (threadIdx.z = 0; threadIdx.z < block[2]; threadIdx.z++) {
                    for (threadIdx.y = 0; threadIdx.y < block[1]; threadIdx.y++) {
                        for (threadIdx.x = 0; threadIdx.x < block[0]; threadIdx.x++) {
                            kernel(argument);
                        }
                    }
                }
            }
        }
    }
}
