// `diffuse-<width>`: the passes of a step, as the program's page lists them.
//
// The width of the image, WIDTH, is defined in front of this text. The header does not change before
// the last pass, so every invocation of the others may read it.

const hw_u32 MAX_STRIP_PIXELS = 1u << 30;
const hw_u32 MAX_ITERATIONS = 1000000u;

// Words of parameters.
const hw_u32 PIXELS = 0u;
const hw_u32 STRIP_INDEX = 1u;
const hw_u32 NEIGHBOURS = 2u;
const hw_u32 ITERATIONS = 3u;
const hw_u32 CONTRAST = 4u;
const hw_u32 RATE = 5u;

// Words of the header; a side is 0 above and 1 below.
const hw_u32 ITERATION = 0u;
const hw_u32 ANNOUNCED = 1u;
const hw_u32 ROWS_RECEIVED = 2u;
const hw_u32 HEADER_WORDS = 8u;

// Words of the header that mean something during a step only.
const hw_u32 PLAN = 4u;
const hw_u32 ROW_SLOTS = 5u;
const hw_u32 INVERSE_CONTRAST = 7u;

// What the first pass found out: bits of the plan. Above them, the rows that came from each side.
const hw_u32 PLAN_VALID = 1u;
const hw_u32 PLAN_FIRST = 2u;
const hw_u32 PLAN_READY = 4u;
const hw_u32 PLAN_ROWS_BITS = 8u;
const hw_u32 PLAN_ROWS = (1u << PLAN_ROWS_BITS) - 1u;

const hw_u32 ROWS = HEADER_WORDS;
const hw_u32 IMAGES = ROWS + 4u * WIDTH;

// An in-port and an out-port of a side have the side's number.
const hw_u32 OUT_PROGRESS = 2u;

const hw_u32 FAULT_STATE = 1u;
const hw_u32 FAULT_PARAMETERS = 2u;
const hw_u32 FAULT_MESSAGE = 3u;
const hw_u32 FAULT_ROW_REPEATED = 17u;
const hw_u32 FAULT_ROW_MISSING = 18u;
const hw_u32 FAULT_ROW_UNEXPECTED = 19u;
// The largest, so that it counts before what is wrong with a later message or, in an image, with any.
const hw_u32 FAULT_PIXEL_RANGE = 20u;

// The formula, number format included, is explained with its host twin.
const hw_u32 PIXEL_BITS = 8u;
const hw_u32 MAX_PIXEL = 255u << PIXEL_BITS;
const hw_u32 MIN_CONTRAST = 1u << PIXEL_BITS;
const hw_u32 RATE_BITS = 11u;
const hw_u32 MAX_RATE = 1u << (RATE_BITS - 2u);
const hw_u32 FLUX_BITS = 12u;
const hw_u32 CONDUCTANCE_BITS = 15u;
const hw_u32 CHANGE_SHIFT = RATE_BITS + FLUX_BITS - PIXEL_BITS;

// One number for each side.
struct Sides {
    hw_u32 above;
    hw_u32 below;
};

HW_FUNCTION Sides rows_received(const hw_Kernel &hw) {
    return Sides{hw_state(hw, ROWS_RECEIVED), hw_state(hw, ROWS_RECEIVED + 1u)};
}

HW_FUNCTION bool has_neighbour(const hw_Kernel &hw, hw_u32 side) {
    return ((hw_parameter(hw, NEIGHBOURS) >> side) & 1u) != 0u;
}

// Where the row received from a side with such a tag begins.
HW_FUNCTION hw_u32 row(hw_u32 side, hw_u32 tag) {
    return ROWS + (2u * side + (tag & 1u)) * WIDTH;
}

// Where the image after so many iterations begins.
HW_FUNCTION hw_u32 image(const hw_Kernel &hw, hw_u32 iteration) {
    return IMAGES + (iteration & 1u) * hw_parameter(hw, PIXELS);
}

HW_FUNCTION bool are_rows_possible(const hw_Kernel &hw, hw_u32 side, hw_u32 iteration) {
    const hw_u32 received = hw_state(hw, ROWS_RECEIVED + side);
    if (!has_neighbour(hw, side)) return received == 0u;
    return iteration <= received && received <= hw_parameter(hw, ITERATIONS)
        && received - iteration <= 2u;
}

HW_FUNCTION bool is_header_possible(const hw_Kernel &hw) {
    const hw_u32 iteration = hw_state(hw, ITERATION);
    const hw_u32 announced = hw_state(hw, ANNOUNCED);
    return (announced == 1u || (announced == 0u && iteration == 0u))
        && iteration <= hw_parameter(hw, ITERATIONS) && are_rows_possible(hw, 0u, iteration)
        && are_rows_possible(hw, 1u, iteration);
}

// What is wrong with parameters or state; 0 if nothing.
HW_FUNCTION hw_u32 strip_fault(const hw_Kernel &hw) {
    const hw_u32 pixels = hw_parameter(hw, PIXELS);
    const hw_u32 iterations = hw_parameter(hw, ITERATIONS);
    const hw_u32 contrast = hw_parameter(hw, CONTRAST);
    const hw_u32 rate = hw_parameter(hw, RATE);
    if (pixels == 0u || pixels % WIDTH != 0u || pixels > MAX_STRIP_PIXELS
        || hw_parameter(hw, NEIGHBOURS) > 3u || iterations == 0u || iterations > MAX_ITERATIONS
        || contrast < MIN_CONTRAST || contrast > MAX_PIXEL || rate == 0u || rate > MAX_RATE) {
        return FAULT_PARAMETERS;
    }
    if (hw_state_words(hw) != IMAGES + 2u * pixels || !is_header_possible(hw)) return FAULT_STATE;
    return 0u;
}

// What is wrong with a message, so many rows having come before it; 0 if nothing.
HW_FUNCTION hw_u32 row_fault(const hw_Kernel &hw, hw_u32 message, const Sides &received) {
    const hw_u32 side = hw_in_port(hw, message);
    const hw_u32 tag = hw_tag(hw, message);
    if (side > 1u || hw_length(hw, message) != WIDTH * 4u) return FAULT_MESSAGE;
    if (!has_neighbour(hw, side)) return FAULT_ROW_UNEXPECTED;
    const hw_u32 next = side == 1u ? received.below : received.above;
    if (tag < next) return FAULT_ROW_REPEATED;
    if (tag > next) return FAULT_ROW_MISSING;
    if (tag >= hw_parameter(hw, ITERATIONS) || tag > hw_state(hw, ITERATION) + 1u) {
        return FAULT_ROW_UNEXPECTED;
    }
    return 0u;
}

HW_FUNCTION void check(const hw_Kernel &hw, hw_u32 pixel) {
    if (pixel > MAX_PIXEL) hw_fault(hw, FAULT_PIXEL_RANGE);
}

// Whether an iteration is left, and the rows that it needs have come.
HW_FUNCTION bool has_rows(const hw_Kernel &hw, hw_u32 iteration, const Sides &received) {
    return iteration < hw_parameter(hw, ITERATIONS)
        && (!has_neighbour(hw, 0u) || received.above > iteration)
        && (!has_neighbour(hw, 1u) || received.below > iteration);
}

// Plans the step after all rows were right, and takes slots for what it will send.
HW_FUNCTION void begin(const hw_Kernel &hw, const Sides &received) {
    const hw_u32 iteration = hw_state(hw, ITERATION);
    const bool is_first = hw_state(hw, ANNOUNCED) == 0u;
    const bool is_ready = !is_first && has_rows(hw, iteration, received);
    const Sides before = rows_received(hw);
    hw_set_state(hw, PLAN,
        PLAN_VALID | (is_first ? PLAN_FIRST : 0u) | (is_ready ? PLAN_READY : 0u)
            | (received.above - before.above) << PLAN_ROWS_BITS
            | (received.below - before.below) << (2u * PLAN_ROWS_BITS));
    const hw_u32 contrast = hw_parameter(hw, CONTRAST);
    hw_set_state(hw, INVERSE_CONTRAST, hw_divide((1u << 24) + contrast / 2u, contrast));

    const hw_u32 finished = iteration + (is_ready ? 1u : 0u);
    const bool sends_rows = (is_first || is_ready) && finished < hw_parameter(hw, ITERATIONS);
    for (hw_u32 side = 0u; side < 2u; side++) {
        hw_u32 slot = HW_NO_SLOT;
        if (sends_rows && has_neighbour(hw, side)) {
            slot = hw_send(hw, side, finished, finished, WIDTH * 4u);
        }
        hw_set_state(hw, ROW_SLOTS + side, slot);
    }
    if (is_ready) {
        const hw_u32 progress = hw_send(hw, OUT_PROGRESS, finished, finished, 12u);
        hw_put(hw, progress, 0u, finished);
        hw_put(hw, progress, 1u, hw_parameter(hw, ITERATIONS));
        hw_put(hw, progress, 2u, hw_parameter(hw, STRIP_INDEX));
    }
}

// Puts a pixel of the image into the rows that are sent, if it belongs there.
HW_FUNCTION void publish(const hw_Kernel &hw, hw_u32 pixel, hw_u32 value) {
    const hw_u32 last_row = hw_parameter(hw, PIXELS) - WIDTH;
    if (pixel < WIDTH) hw_put(hw, hw_state(hw, ROW_SLOTS), pixel, value);
    if (pixel >= last_row) hw_put(hw, hw_state(hw, ROW_SLOTS + 1u), pixel - last_row, value);
}

// What flows from a neighbour to a pixel, as a signed number.
HW_FUNCTION int flux(const hw_Kernel &hw, hw_u32 centre, hw_u32 neighbour) {
    const int difference = (int)(neighbour - centre);
    const hw_u32 magnitude = difference < 0 ? 0u - (hw_u32)difference : (hw_u32)difference;
    const hw_u32 scaled = (magnitude * hw_state(hw, INVERSE_CONTRAST) + (1u << 15)) >> 16;
    // `scaled` has 16 bits, so that no divisor wraps or is zero.
    const hw_u32 conductance =
        (1u << (16u + CONDUCTANCE_BITS)) / ((1u << 16) + scaled * scaled);
    const hw_u32 size = (conductance * magnitude) >> (CONDUCTANCE_BITS + PIXEL_BITS - FLUX_BITS);
    return difference < 0 ? -(int)size : (int)size;
}

// The value of a pixel after the next iteration.
HW_FUNCTION hw_u32 next_pixel(
    const hw_Kernel &hw, hw_u32 source, hw_u32 pixel, hw_u32 iteration
) {
    const hw_u32 x = pixel % WIDTH;
    const hw_u32 at = source + pixel;
    hw_u32 north = at;
    if (pixel >= WIDTH) {
        north = at - WIDTH;
    } else if (has_neighbour(hw, 0u)) {
        north = row(0u, iteration) + x;
    }
    hw_u32 south = at;
    if (pixel < hw_parameter(hw, PIXELS) - WIDTH) {
        south = at + WIDTH;
    } else if (has_neighbour(hw, 1u)) {
        south = row(1u, iteration) + x;
    }
    const hw_u32 west = x == 0u ? at : at - 1u;
    const hw_u32 east = x == WIDTH - 1u ? at : at + 1u;
    const hw_u32 centre = hw_state(hw, at);
    const int sum = flux(hw, centre, hw_state(hw, north)) + flux(hw, centre, hw_state(hw, south))
        + flux(hw, centre, hw_state(hw, west)) + flux(hw, centre, hw_state(hw, east));
    const int change = sum * (int)hw_parameter(hw, RATE);
    const int rounded = (change + (1 << (CHANGE_SHIFT - 1u))) >> CHANGE_SHIFT;
    return centre + (hw_u32)rounded;
}

// One invocation for each column: all go through the messages in their order and store a pixel of
// each row; the first one also says what the step is to do.
HW_PASS(receive) {
    if (hw_index(hw) >= WIDTH) return;
    const hw_u32 x = (hw_u32)hw_index(hw);
    hw_u32 fault = strip_fault(hw);
    const bool is_valid = fault == 0u;
    Sides received = rows_received(hw);
    for (hw_u32 message = 0u; message < hw_message_count(hw) && fault == 0u; message++) {
        fault = row_fault(hw, message, received);
        if (fault == 0u) {
            const hw_u32 side = hw_in_port(hw, message);
            (side == 1u ? received.below : received.above) += 1u;
            const hw_u32 pixel = hw_payload(hw, message, x);
            check(hw, pixel);
            hw_set_state(hw, row(side, hw_tag(hw, message)) + x, pixel);
        }
    }
    if (x != 0u) return;
    if (fault == 0u) {
        begin(hw, received);
    } else {
        // The image is checked even so, unless nobody knows where it is.
        hw_set_state(hw, PLAN, is_valid ? PLAN_VALID : 0u);
        hw_fault(hw, fault);
    }
}

// One invocation for each word of state: those of the next image compute a pixel.
HW_PASS(smooth_image) {
    if (hw_index(hw) < IMAGES || hw_index(hw) >= hw_state_words(hw)) return;
    const hw_u32 plan = hw_state(hw, PLAN);
    if ((plan & PLAN_VALID) == 0u) return;
    // A valid strip has fewer words than 32 bits count.
    const hw_u32 word = (hw_u32)hw_index(hw);
    const hw_u32 iteration = hw_state(hw, ITERATION);
    const hw_u32 source = image(hw, iteration);
    const hw_u32 next = image(hw, iteration + 1u);
    if (word - source < hw_parameter(hw, PIXELS)) {
        if (iteration != 0u) return;
        const hw_u32 pixel = hw_state(hw, word);
        check(hw, pixel);
        if ((plan & PLAN_FIRST) != 0u) publish(hw, word - source, pixel);
    } else if ((plan & PLAN_READY) != 0u) {
        const hw_u32 pixel = next_pixel(hw, source, word - next, iteration);
        hw_set_state(hw, word, pixel);
        publish(hw, word - next, pixel);
    }
}

// One invocation: brings the header up to date.
HW_PASS(commit) {
    if (hw_index(hw) != 0u || hw_faulted(hw)) return;
    const hw_u32 plan = hw_state(hw, PLAN);
    const hw_u32 iteration = hw_state(hw, ITERATION) + ((plan & PLAN_READY) != 0u ? 1u : 0u);
    const Sides received = rows_received(hw);
    hw_set_state(hw, ITERATION, iteration);
    hw_set_state(hw, ANNOUNCED, 1u);
    hw_set_state(hw, ROWS_RECEIVED, received.above + ((plan >> PLAN_ROWS_BITS) & PLAN_ROWS));
    hw_set_state(hw, ROWS_RECEIVED + 1u,
        received.below + ((plan >> (2u * PLAN_ROWS_BITS)) & PLAN_ROWS));
    for (hw_u32 word = PLAN; word < HEADER_WORDS; word++) {
        hw_set_state(hw, word, 0u);
    }
    if (has_rows(hw, iteration, rows_received(hw))) hw_run_again(hw);
}
