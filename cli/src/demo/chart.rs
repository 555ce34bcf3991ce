//! A noisy test chart: flat patches, ramps, edges of every direction and fine stripes, so that one
//! sees what smoothing takes away and what it keeps.

use super::image::GreyImage;

#[cfg(test)]
mod tests;

/// Width and height of the chart.
const SIZE: u32 = 512;

/// Greatest noise in grey levels, either way; its standard deviation is half of that.
const NOISE: i32 = 24;

/// The chart: the same pixels on every machine.
pub(crate) fn noisy() -> GreyImage {
    let mut noise = Noise(0x2545_f491);
    let mut pixels = Vec::with_capacity((SIZE * SIZE) as usize);
    for y in 0..SIZE.cast_signed() {
        for x in 0..SIZE.cast_signed() {
            let level = clean(x, y) + noise.next();
            pixels.push(u8::try_from(level.clamp(0, 255)).unwrap_or(u8::MAX));
        }
    }
    GreyImage { width: SIZE, height: SIZE, pixels }
}

/// The chart without noise. Four quarters of 256 x 256 pixels.
fn clean(x: i32, y: i32) -> i32 {
    let (column, row) = (x / 256, y / 256);
    let (x, y) = (x % 256, y % 256);
    match (column, row) {
        (0, 0) => rings(x - 128, y - 128),
        (1, 0) => steps(x, y),
        (0, _) => triangle(x, y),
        _ => stripes(x, y),
    }
}

/// Rings of falling contrast around the middle.
fn rings(x: i32, y: i32) -> i32 {
    let squared = x * x + y * y;
    let ring = (1..).find(|ring| ring * ring * 400 > squared).unwrap_or(0);
    let contrast = 110 - 15 * ring.min(6);
    if ring > 6 { 128 } else { 128 + if ring % 2 == 0 { contrast } else { -contrast } }
}

/// Patches from dark to light above a smooth ramp.
fn steps(x: i32, y: i32) -> i32 {
    if y < 128 { 20 + (x / 32) * 30 } else { 20 + x * 215 / 256 }
}

/// A light triangle on a dark ground: slanted edges.
fn triangle(x: i32, y: i32) -> i32 {
    let inside = (20..=230).contains(&y) && (x - 128).abs() * 2 < y - 20;
    if inside { 190 } else { 60 + y / 8 }
}

/// Stripes that get finer to the right, and fainter to the bottom.
fn stripes(x: i32, y: i32) -> i32 {
    let width = 16 >> (x / 64).min(3);
    let contrast = 100 - (y / 32) * 12;
    if (x / width) % 2 == 0 { 128 + contrast } else { 128 - contrast }
}

/// Noise from a fixed seed: the sum of four even draws, which looks much like a bell curve.
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> i32 {
        (0..4).map(|_| self.draw(NOISE / 2) - NOISE / 4).sum()
    }

    /// A number from 0 to `most`, by G. Marsaglia's xorshift ("Xorshift RNGs", Journal of
    /// Statistical Software 8(14), 2003).
    fn draw(&mut self, most: i32) -> i32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        (self.0 >> 8).cast_signed() % (most + 1)
    }
}
