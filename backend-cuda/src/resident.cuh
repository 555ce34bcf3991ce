// A kernel that stays on the GPU: it waits for a step, runs the passes, tells that it is done, and
// waits again. Stands behind a program's own text; in front of it, HW_PASSES names the passes.
//
// All blocks run at the same time (a cooperative launch), so they can wait for each other.

// What the host and the kernel share: in page-locked memory of the host.
struct hw_Control {
    hw_u32 asked;      // byte  0: number of the step that the host wants
    hw_u32 done;       // byte  4: number of the last step that is done
    hw_u32 stop;       // byte  8: not 0: the kernel is to end
    hw_u32 ended;      // byte 12: set by the kernel when it ends
    hw_u64 idle_ns;    // byte 16: it ends when nothing was asked for so long
    hw_u64 life_ns;    // byte 24: it ends between two steps when it has run for so long
};

// The argument: 48 bytes of device memory.
struct hw_Resident {
    hw_Control *control;      // byte  0
    const hw_Kernel *table;   // byte  8: an entry for each pass, in page-locked memory
    const hw_u32 *header_in;  // byte 16: header of the outbox, as it begins
    hw_u32 *outbox_out;       // byte 24: header and slots, for the host
    hw_u32 *words;            // byte 32: of the device: arrived, generation, command, number
    hw_u64 reserved;          // byte 40
};

#ifdef __CUDACC_RTC__
HW_FUNCTION hw_u64 hw_now_ns() {
    hw_u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
#endif

// A word that others change meanwhile.
HW_FUNCTION hw_u32 hw_seen(const hw_u32 *word) { return *(const volatile hw_u32 *)word; }

HW_FUNCTION hw_Kernel hw_seen_kernel(const hw_Kernel *kernel) {
    const volatile hw_Kernel *seen = kernel;
    hw_Kernel hw;
    hw.state = seen->state;
    hw.state_words = seen->state_words;
    hw.parameters = seen->parameters;
    hw.inbox = seen->inbox;
    hw.outbox_header = seen->outbox_header;
    hw.outbox_slots = seen->outbox_slots;
    hw.invocations = seen->invocations;
    hw.first = 0u;
    return hw;
}

HW_FUNCTION void hw_pause() {
#if !defined(__CUDACC_RTC__) || __CUDA_ARCH__ >= 700
    __nanosleep(200);
#endif
}

// Waits until every block has come here. What one wrote before, all see after.
HW_FUNCTION void hw_meet(hw_u32 *words) {
    __syncthreads();
    if (threadIdx.x == 0u) {
        const hw_u32 generation = hw_seen(words + 1);
        __threadfence();
        if (atomicAdd(words, 1u) == gridDim.x - 1u) {
            atomicExch(words, 0u);
            __threadfence();
            atomicAdd(words + 1, 1u);
        } else {
            while (hw_seen(words + 1) == generation) hw_pause();
        }
        __threadfence();
    }
    __syncthreads();
}

// Waits for the host, on one thread: the number of the next step, or `done` again for the end. The
// clock is a watchdog: a host that is gone or busy elsewhere does not keep the GPU, and calls of the
// driver that wait for the device wait for a bounded time.
HW_FUNCTION hw_u32 hw_next(hw_Control *control, hw_u32 done, hw_u64 begun) {
    const hw_u64 since = hw_now_ns();
    for (;;) {
        const hw_u32 asked = hw_seen(&control->asked);
        // A step that was asked for before the kernel was to stop is left for the next launch.
        if (hw_seen(&control->stop) != 0u || hw_now_ns() - begun > control->life_ns) return done;
        if (asked != done) {
            __threadfence_system();
            return asked;
        }
        if (hw_now_ns() - since > control->idle_ns) return done;
        hw_pause();
    }
}

extern "C" __global__ void __launch_bounds__(HW_BLOCK_THREADS, 1) hw_resident(
    const hw_Resident *argument
) {
    const hw_Resident own = *argument;
    const hw_u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    const hw_u32 threads = gridDim.x * blockDim.x;
    const hw_u64 begun = hw_now_ns();
    for (;;) {
        if (thread == 0u) {
            const hw_u32 done = hw_seen(&own.control->done);
            own.words[3] = done;
            own.words[2] = hw_next(own.control, done, begun);
        }
        hw_meet(own.words);
        const hw_u32 number = hw_seen(own.words + 2);
        if (number == hw_seen(own.words + 3)) break;
        const hw_Kernel *table = own.table;
        hw_u32 *header = table->outbox_header;
        for (hw_u32 word = thread; word < HW_BOX_HEADER_WORDS; word += threads) {
            header[word] = hw_seen(own.header_in + word);
        }
        hw_meet(own.words);
        hw_u32 pass = 0u;
#define HW_RUN(name)                                                                       \
    {                                                                                      \
        hw_Kernel hw = hw_seen_kernel(table + pass);                                       \
        hw.first = (hw_u64)blockIdx.x * blockDim.x;                                        \
        for (; hw.first < hw.invocations; hw.first += threads) {                           \
            hw_body_##name(hw);                                                            \
            __syncthreads();                                                               \
        }                                                                                  \
        pass++;                                                                            \
        hw_meet(own.words);                                                                \
    }
        HW_PASSES
#undef HW_RUN
        hw_u32 sent = hw_seen(header);
        if (sent > HW_OUTBOX_SLOTS) sent = HW_OUTBOX_SLOTS;
        for (hw_u32 word = thread; word < HW_BOX_HEADER_WORDS; word += threads) {
            own.outbox_out[word] = hw_seen(header + word);
        }
        const hw_u64 words = (hw_u64)sent * HW_OUTBOX_SLOT_WORDS;
        for (hw_u64 word = thread; word < words; word += threads) {
            own.outbox_out[HW_BOX_HEADER_WORDS + word] = hw_seen(table->outbox_slots + word);
        }
        __threadfence_system();
        hw_meet(own.words);
        if (thread == 0u) {
            __threadfence_system();
            *(volatile hw_u32 *)&own.control->done = number;
        }
    }
    // All blocks are past their last step here.
    hw_meet(own.words);
    if (thread == 0u) {
        __threadfence_system();
        *(volatile hw_u32 *)&own.control->ended = 1u;
    }
}
