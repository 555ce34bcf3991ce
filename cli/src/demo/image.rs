//! Grey images from PNG files and into them.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use hopwise_core::programs::diffuse::MAX_WIDTH;
use png::{BitDepth, ColorType, Decoder, DecodingError, Encoder, EncodingError, Limits};
use png::{Reader, Transformations};

use crate::failure::Failure;

#[cfg(test)]
mod tests;

/// Most pixels of an image: 64 Mi. The plain loop holds two words for each, the kernels two more.
const MOST_PIXELS: u64 = 64 << 20;

/// Most bytes that the decoder may take for everything but the pixels asked for: 64 MiB.
const DECODER_BYTES: usize = 64 << 20;

/// An image in 256 levels of grey, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GreyImage {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) pixels: Vec<u8>,
}

/// Reads a PNG of any colour type. Colours become grey by the weights of Recommendation ITU-R
/// BT.601, 16 bits become 8 by rounding, transparency is dropped.
///
/// # Errors
///
/// [`Failure::Failed`] with the file's name: no such file, no PNG, damaged, too large.
pub(crate) fn read(path: &Path) -> Result<GreyImage, Failure> {
    let fail = |reason: String| Failure::failed(format!("image {}: {reason}", path.display()));
    let file = File::open(path).map_err(|error| fail(format!("cannot open it: {error}")))?;
    decode(BufReader::new(file)).map_err(fail)
}

fn decode(source: impl io::BufRead + io::Seek) -> Result<GreyImage, String> {
    let mut decoder = Decoder::new_with_limits(source, Limits { bytes: DECODER_BYTES });
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(|error| explain(&error))?;
    let (width, height) = reader.info().size();
    let pixels = u64::from(width) * u64::from(height);
    if width > MAX_WIDTH || pixels > MOST_PIXELS {
        return Err(format!(
            "{width} x {height} pixels are too many; at most {MAX_WIDTH} a row and \
             {MOST_PIXELS} in all are allowed, so scale it down"
        ));
    }
    let raw = read_pixels(&mut reader)?;
    let pixels = to_grey(&raw, reader.output_color_type())?;
    Ok(GreyImage { width, height, pixels })
}

fn read_pixels(reader: &mut Reader<impl io::BufRead + io::Seek>) -> Result<Vec<u8>, String> {
    let bytes = reader.output_buffer_size().ok_or("its size does not fit this machine's memory")?;
    let mut raw = vec![0; bytes];
    let frame = reader.next_frame(&mut raw).map_err(|error| explain(&error))?;
    raw.truncate(frame.buffer_size());
    Ok(raw)
}

fn explain(error: &DecodingError) -> String {
    match error {
        DecodingError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            "it ends too early; the file is no PNG or was cut off".to_owned()
        }
        DecodingError::IoError(error) => format!("cannot read it: {error}"),
        DecodingError::Format(error) => {
            format!("it is no PNG or is damaged ({error}); give a PNG file")
        }
        other => format!("it cannot be decoded ({other}); give another PNG file"),
    }
}

/// Makes 8-bit grey of whatever the decoder gave.
fn to_grey(raw: &[u8], (color, depth): (ColorType, BitDepth)) -> Result<Vec<u8>, String> {
    let narrowed;
    let samples = match depth {
        BitDepth::Eight => raw,
        BitDepth::Sixteen => {
            narrowed = narrow(raw);
            &narrowed
        }
        other => return Err(format!("samples of {other:?} bits were not expanded to 8")),
    };
    Ok(match color {
        ColorType::Grayscale => samples.to_vec(),
        ColorType::GrayscaleAlpha => samples.chunks_exact(2).map(|pixel| pixel[0]).collect(),
        ColorType::Rgb => samples.chunks_exact(3).map(luma).collect(),
        ColorType::Rgba => samples.chunks_exact(4).map(luma).collect(),
        ColorType::Indexed => return Err("its palette was not expanded to colours".to_owned()),
    })
}

/// 16-bit samples, high byte first, to 8 bits: 65,535 becomes 255.
fn narrow(raw: &[u8]) -> Vec<u8> {
    let rounded = raw.chunks_exact(2).map(|bytes| {
        let sample = u32::from(u16::from_be_bytes([bytes[0], bytes[1]]));
        u8::try_from((sample * 255 + 32_767) / 65_535).unwrap_or(u8::MAX)
    });
    rounded.collect()
}

/// Red, green and blue to grey by the weights of ITU-R BT.601, in thousandths.
fn luma(pixel: &[u8]) -> u8 {
    let [red, green, blue] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
    u8::try_from((299 * red + 587 * green + 114 * blue + 500) / 1000).unwrap_or(u8::MAX)
}

/// Writes an 8-bit grey PNG.
///
/// # Errors
///
/// [`Failure::Failed`] with the file's name.
pub(crate) fn write(path: &Path, image: &GreyImage) -> Result<(), Failure> {
    let written = File::create(path).and_then(|file| {
        let mut file = BufWriter::new(file);
        encode(&mut file, image)?;
        file.flush()
    });
    written
        .map_err(|error| Failure::failed(format!("cannot write image {}: {error}", path.display())))
}

fn encode(target: impl Write, image: &GreyImage) -> io::Result<()> {
    let mut encoder = Encoder::new(target, image.width, image.height);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::Eight);
    let io_error = |error| match error {
        EncodingError::IoError(error) => error,
        other => io::Error::other(other),
    };
    let mut writer = encoder.write_header().map_err(io_error)?;
    writer.write_image_data(&image.pixels).map_err(io_error)?;
    writer.finish().map_err(io_error)
}
