//! The plain loop that the kernels' result is compared with: two whole images, no strips, no
//! messages. It shares the formula for one pixel with the fleet, and nothing else.

use hopwise_core::programs::diffuse::{Settings, diffuse_pixel, from_grey};

use super::image::GreyImage;

#[cfg(test)]
mod tests;

/// The image after all iterations, pixels with 8 fraction bits. `progress` hears how many are done.
pub(crate) fn smooth(image: &GreyImage, settings: &Settings, progress: impl Fn(u64)) -> Vec<u32> {
    let (width, height) = (image.width as usize, image.height as usize);
    let coefficients = settings.coefficients();
    let mut now: Vec<u32> = image.pixels.iter().map(|&grey| from_grey(grey)).collect();
    let mut next = now.clone();
    for iteration in 0..settings.iterations() {
        for row in 0..height {
            for column in 0..width {
                let at = row * width + column;
                // Outside the image lies a mirror: the neighbour there is the pixel itself.
                let north = if row == 0 { now[at] } else { now[at - width] };
                let south = if row + 1 == height { now[at] } else { now[at + width] };
                let west = if column == 0 { now[at] } else { now[at - 1] };
                let east = if column + 1 == width { now[at] } else { now[at + 1] };
                next[at] = diffuse_pixel(now[at], north, south, west, east, coefficients);
            }
        }
        std::mem::swap(&mut now, &mut next);
        progress(u64::from(iteration) + 1);
    }
    now
}

/// The first pixel in which two results differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Difference {
    /// Row, from 0 at the top.
    pub(crate) row: usize,
    /// Column, from 0 at the left.
    pub(crate) column: usize,
    /// What the plain loop has there, with 8 fraction bits.
    pub(crate) expected: u32,
    /// What the kernels have there, with 8 fraction bits.
    pub(crate) found: u32,
}

/// Compares pixel by pixel, bit for bit.
pub(crate) fn first_difference(expected: &[u32], found: &[u32], width: u32) -> Option<Difference> {
    let width = width as usize;
    let pairs = expected.iter().zip(found).enumerate();
    pairs
        .filter(|(_, (expected, found))| expected != found)
        .map(|(at, (&expected, &found))| Difference {
            row: at / width,
            column: at % width,
            expected,
            found,
        })
        .next()
}
