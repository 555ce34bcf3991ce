// `diffuse-<width>`: the passes of a step, as the program's page lists them.
//
// The width of the image, WIDTH, is declared behind this text. The header does not change before
// the last pass, so every invocation of the others may read it.

const MAX_STRIP_PIXELS = 1u << 30u;
const MAX_ITERATIONS = 1000000u;

// Words of parameters.
const PIXELS = 0u;
const STRIP_INDEX = 1u;
const NEIGHBOURS = 2u;
const ITERATIONS = 3u;
const CONTRAST = 4u;
const RATE = 5u;

// Words of the header; a side is 0 above and 1 below.
const ITERATION = 0u;
const ANNOUNCED = 1u;
const ROWS_RECEIVED = 2u;
const HEADER_WORDS = 8u;

// Words of the header that mean something during a step only.
const PLAN = 4u;
const ROW_SLOTS = 5u;
const INVERSE_CONTRAST = 7u;

// What the first pass found out: bits of the plan. Above them, the rows that came from each side.
const PLAN_VALID = 1u;
const PLAN_FIRST = 2u;
const PLAN_READY = 4u;
const PLAN_ROWS_BITS = 8u;

const ROWS = HEADER_WORDS;
const IMAGES = ROWS + 4u * WIDTH;

// An in-port and an out-port of a side have the side's number.
const OUT_PROGRESS = 2u;

const FAULT_STATE = 1u;
const FAULT_PARAMETERS = 2u;
const FAULT_MESSAGE = 3u;
const FAULT_ROW_REPEATED = 17u;
const FAULT_ROW_MISSING = 18u;
const FAULT_ROW_UNEXPECTED = 19u;
// The largest, so that it counts before what is wrong with a later message or, in an image, with any.
const FAULT_PIXEL_RANGE = 20u;

// One invocation for each column: all go through the messages in their order and store a pixel of
// each row; the first one also says what the step is to do.
@compute @workgroup_size(64)
fn receive(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let x = hw_index(id, groups, 64u);
    if (x >= WIDTH) {
        return;
    }
    var fault = strip_fault();
    let is_valid = fault == 0u;
    var received = rows_received();
    for (var message = 0u; message < hw_message_count() && fault == 0u; message++) {
        fault = row_fault(message, received);
        if (fault == 0u) {
            let side = hw_in_port(message);
            received[side] += 1u;
            store(row(side, hw_tag(message)) + x, hw_payload(message, x));
        }
    }
    if (x == 0u) {
        if (fault == 0u) {
            begin(received);
        } else {
            // The image is checked even so, unless nobody knows where it is.
            hw_set_state(PLAN, select(0u, PLAN_VALID, is_valid));
            hw_fault(fault);
        }
    }
}

// One invocation for each word of state: those of the next image compute a pixel.
@compute @workgroup_size(64)
fn smooth_image(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let word = hw_index(id, groups, 64u);
    if (word < IMAGES || word >= hw_state_words()) {
        return;
    }
    let plan = hw_state(PLAN);
    if ((plan & PLAN_VALID) == 0u) {
        return;
    }
    let iteration = hw_state(ITERATION);
    let source = image(iteration);
    let next = image(iteration + 1u);
    let pixels = hw_parameter(PIXELS);
    if (word - source < pixels) {
        if (iteration == 0u) {
            let pixel = hw_state(word);
            check(pixel);
            if ((plan & PLAN_FIRST) != 0u) {
                publish(word - source, pixel);
            }
        }
    } else if ((plan & PLAN_READY) != 0u) {
        let pixel = next_pixel(source, word - next, iteration);
        hw_set_state(word, pixel);
        publish(word - next, pixel);
    }
}

// One invocation: brings the header up to date.
@compute @workgroup_size(1)
fn commit() {
    if (hw_faulted()) {
        return;
    }
    let plan = hw_state(PLAN);
    let iteration = hw_state(ITERATION) + select(0u, 1u, (plan & PLAN_READY) != 0u);
    let received = rows_received() + rows_of_plan(plan);
    hw_set_state(ITERATION, iteration);
    hw_set_state(ANNOUNCED, 1u);
    hw_set_state(ROWS_RECEIVED, received[0]);
    hw_set_state(ROWS_RECEIVED + 1u, received[1]);
    for (var word = PLAN; word < HEADER_WORDS; word++) {
        hw_set_state(word, 0u);
    }
    if (has_rows(iteration, received)) {
        hw_run_again();
    }
}

fn rows_received() -> vec2<u32> {
    return vec2(hw_state(ROWS_RECEIVED), hw_state(ROWS_RECEIVED + 1u));
}

fn rows_of_plan(plan: u32) -> vec2<u32> {
    let mask = (1u << PLAN_ROWS_BITS) - 1u;
    return vec2((plan >> PLAN_ROWS_BITS) & mask, plan >> (2u * PLAN_ROWS_BITS));
}

fn has_neighbour(side: u32) -> bool {
    return ((hw_parameter(NEIGHBOURS) >> side) & 1u) != 0u;
}

// Where the row received from a side with such a tag begins.
fn row(side: u32, tag: u32) -> u32 {
    return ROWS + (2u * side + (tag & 1u)) * WIDTH;
}

// Where the image after so many iterations begins.
fn image(iteration: u32) -> u32 {
    return IMAGES + (iteration & 1u) * hw_parameter(PIXELS);
}

// What is wrong with parameters or state; 0 if nothing.
fn strip_fault() -> u32 {
    let pixels = hw_parameter(PIXELS);
    let iterations = hw_parameter(ITERATIONS);
    let contrast = hw_parameter(CONTRAST);
    let rate = hw_parameter(RATE);
    if (pixels == 0u || pixels % WIDTH != 0u || pixels > MAX_STRIP_PIXELS
        || hw_parameter(NEIGHBOURS) > 3u
        || iterations == 0u || iterations > MAX_ITERATIONS
        || contrast < MIN_CONTRAST || contrast > MAX_PIXEL
        || rate == 0u || rate > MAX_RATE) {
        return FAULT_PARAMETERS;
    }
    if (hw_state_words() != IMAGES + 2u * pixels || !is_header_possible()) {
        return FAULT_STATE;
    }
    return 0u;
}

fn is_header_possible() -> bool {
    let iteration = hw_state(ITERATION);
    let announced = hw_state(ANNOUNCED);
    return (announced == 1u || (announced == 0u && iteration == 0u))
        && iteration <= hw_parameter(ITERATIONS)
        && are_rows_possible(0u, iteration)
        && are_rows_possible(1u, iteration);
}

fn are_rows_possible(side: u32, iteration: u32) -> bool {
    let received = hw_state(ROWS_RECEIVED + side);
    if (!has_neighbour(side)) {
        return received == 0u;
    }
    return iteration <= received
        && received <= hw_parameter(ITERATIONS)
        && received - iteration <= 2u;
}

// What is wrong with a message, so many rows having come before it; 0 if nothing.
fn row_fault(message: u32, received: vec2<u32>) -> u32 {
    let side = hw_in_port(message);
    let tag = hw_tag(message);
    if (side > 1u || hw_length(message) != WIDTH * 4u) {
        return FAULT_MESSAGE;
    }
    if (!has_neighbour(side)) {
        return FAULT_ROW_UNEXPECTED;
    }
    let next = select(received.x, received.y, side == 1u);
    if (tag < next) {
        return FAULT_ROW_REPEATED;
    }
    if (tag > next) {
        return FAULT_ROW_MISSING;
    }
    if (tag >= hw_parameter(ITERATIONS) || tag > hw_state(ITERATION) + 1u) {
        return FAULT_ROW_UNEXPECTED;
    }
    return 0u;
}

fn store(word: u32, pixel: u32) {
    check(pixel);
    hw_set_state(word, pixel);
}

fn check(pixel: u32) {
    if (pixel > MAX_PIXEL) {
        hw_fault(FAULT_PIXEL_RANGE);
    }
}

// Plans the step after all rows were right, and takes slots for what it will send.
fn begin(received: vec2<u32>) {
    let iteration = hw_state(ITERATION);
    let is_first = hw_state(ANNOUNCED) == 0u;
    let is_ready = !is_first && has_rows(iteration, received);
    let rows = received - rows_received();
    hw_set_state(PLAN, PLAN_VALID
        | select(0u, PLAN_FIRST, is_first)
        | select(0u, PLAN_READY, is_ready)
        | rows.x << PLAN_ROWS_BITS
        | rows.y << (2u * PLAN_ROWS_BITS));
    let contrast = hw_parameter(CONTRAST);
    hw_set_state(INVERSE_CONTRAST, hw_divide((1u << 24u) + contrast / 2u, contrast));

    let finished = iteration + select(0u, 1u, is_ready);
    let sends_rows = (is_first || is_ready) && finished < hw_parameter(ITERATIONS);
    for (var side = 0u; side < 2u; side++) {
        var slot = HW_NO_SLOT;
        if (sends_rows && has_neighbour(side)) {
            slot = hw_send(side, finished, finished, WIDTH * 4u);
        }
        hw_set_state(ROW_SLOTS + side, slot);
    }
    if (is_ready) {
        let progress = hw_send(OUT_PROGRESS, finished, finished, 12u);
        hw_put(progress, 0u, finished);
        hw_put(progress, 1u, hw_parameter(ITERATIONS));
        hw_put(progress, 2u, hw_parameter(STRIP_INDEX));
    }
}

// Whether an iteration is left, and the rows that it needs have come.
fn has_rows(iteration: u32, received: vec2<u32>) -> bool {
    return iteration < hw_parameter(ITERATIONS)
        && (!has_neighbour(0u) || received.x > iteration)
        && (!has_neighbour(1u) || received.y > iteration);
}

// Puts a pixel of the image into the rows that are sent, if it belongs there.
fn publish(pixel: u32, value: u32) {
    let last_row = hw_parameter(PIXELS) - WIDTH;
    if (pixel < WIDTH) {
        hw_put(hw_state(ROW_SLOTS), pixel, value);
    }
    if (pixel >= last_row) {
        hw_put(hw_state(ROW_SLOTS + 1u), pixel - last_row, value);
    }
}

// The value of a pixel after the next iteration.
fn next_pixel(source: u32, pixel: u32, iteration: u32) -> u32 {
    let x = pixel % WIDTH;
    let at = source + pixel;
    var north = at;
    if (pixel >= WIDTH) {
        north = at - WIDTH;
    } else if (has_neighbour(0u)) {
        north = row(0u, iteration) + x;
    }
    var south = at;
    if (pixel < hw_parameter(PIXELS) - WIDTH) {
        south = at + WIDTH;
    } else if (has_neighbour(1u)) {
        south = row(1u, iteration) + x;
    }
    let west = select(at - 1u, at, x == 0u);
    let east = select(at + 1u, at, x == WIDTH - 1u);
    return diffuse_pixel(
        hw_state(at),
        vec4(hw_state(north), hw_state(south), hw_state(west), hw_state(east)),
    );
}

// The formula, number format included, is explained with its host twin.

const PIXEL_BITS = 8u;
const MAX_PIXEL = 255u << PIXEL_BITS;
const MIN_CONTRAST = 1u << PIXEL_BITS;
const RATE_BITS = 11u;
const MAX_RATE = 1u << (RATE_BITS - 2u);
const FLUX_BITS = 12u;
const CONDUCTANCE_BITS = 15u;
const CHANGE_SHIFT = RATE_BITS + FLUX_BITS - PIXEL_BITS;

fn diffuse_pixel(centre: u32, neighbours: vec4<u32>) -> u32 {
    let differences = bitcast<vec4<i32>>(neighbours - centre);
    let magnitudes = bitcast<vec4<u32>>(abs(differences));
    let scaled = (magnitudes * hw_state(INVERSE_CONTRAST) + (1u << 15u)) >> vec4(16u);
    // Each of `scaled` has 16 bits, so that no divisor wraps or is zero.
    let conductances = (1u << (16u + CONDUCTANCE_BITS)) / ((1u << 16u) + scaled * scaled);
    let cut = vec4(CONDUCTANCE_BITS + PIXEL_BITS - FLUX_BITS);
    let sizes = bitcast<vec4<i32>>((conductances * magnitudes) >> cut);
    let fluxes = select(sizes, -sizes, differences < vec4(0i));
    let sum = fluxes.x + fluxes.y + fluxes.z + fluxes.w;
    let change = sum * bitcast<i32>(hw_parameter(RATE));
    let rounded = (change + (1i << (CHANGE_SHIFT - 1u))) >> CHANGE_SHIFT;
    return centre + bitcast<u32>(rounded);
}
