//! Tests of reading and writing images.

use std::io::Cursor;

use super::*;

fn png(color: ColorType, depth: BitDepth, width: u32, height: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    let palette_bytes = [0, 0, 0, 255, 255, 255];
    if color == ColorType::Indexed {
        encoder.set_palette(&palette_bytes[..]);
    }
    encoder.write_header().unwrap().write_image_data(data).unwrap();
    bytes
}

fn read_bytes(bytes: &[u8]) -> Result<GreyImage, String> {
    decode(Cursor::new(bytes))
}

fn pixels(color: ColorType, depth: BitDepth, width: u32, data: &[u8]) -> Vec<u8> {
    let image = read_bytes(&png(color, depth, width, 1, data)).unwrap();
    assert_eq!((image.width, image.height), (width, 1));
    image.pixels
}

#[test]
fn what_is_written_is_read_back() {
    let image = GreyImage { width: 7, height: 5, pixels: (0..35).map(|at| at * 7).collect() };
    let mut bytes = Vec::new();
    encode(&mut bytes, &image).unwrap();
    assert_eq!(read_bytes(&bytes), Ok(image));
}

#[test]
fn every_colour_type_becomes_grey() {
    let (eight, sixteen) = (BitDepth::Eight, BitDepth::Sixteen);
    assert_eq!(pixels(ColorType::Grayscale, eight, 3, &[0, 7, 255]), [0, 7, 255]);
    assert_eq!(pixels(ColorType::GrayscaleAlpha, eight, 2, &[9, 0, 8, 255]), [9, 8]);
    let rgb = [255, 255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 255];
    assert_eq!(pixels(ColorType::Rgb, eight, 4, &rgb), [255, 76, 150, 29]);
    assert_eq!(pixels(ColorType::Rgba, eight, 1, &[20, 20, 20, 0]), [20]);
    let words = [0, 0, 255, 255, 128, 0, 0, 128, 0, 129];
    assert_eq!(pixels(ColorType::Grayscale, sixteen, 5, &words), [0, 255, 128, 0, 1]);
    assert_eq!(pixels(ColorType::Grayscale, BitDepth::One, 3, &[0b1010_0000]), [255, 0, 255]);
    assert_eq!(pixels(ColorType::Indexed, BitDepth::One, 2, &[0b0100_0000]), [0, 255]);
}

#[test]
fn what_is_no_image_is_told() {
    assert!(read_bytes(b"").unwrap_err().contains("no PNG"));
    assert!(read_bytes(b"GIF89a, which is something else").unwrap_err().contains("no PNG"));
    let whole = png(ColorType::Grayscale, BitDepth::Eight, 64, 64, &[5; 64 * 64]);
    for length in 1..whole.len() - 12 {
        assert!(read_bytes(&whole[..length]).is_err(), "{length} bytes");
    }
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    assert!(read_bytes(&damaged).unwrap_err().contains("damaged"));
}

#[test]
fn an_image_that_is_too_large_is_refused_before_it_is_decoded() {
    // Only the header counts: the data of such an image would not fit a test.
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, 65_537, 1);
    encoder.set_color(ColorType::Grayscale);
    encoder.write_header().unwrap().write_image_data(&[0; 65_537]).unwrap();
    let error = read_bytes(&bytes).unwrap_err();
    assert!(error.contains("65537 x 1 pixels are too many"), "{error}");
    assert!(error.contains("scale it down"), "{error}");
}

#[test]
fn errors_name_the_file() {
    let error = read(Path::new("no/such/picture.png")).unwrap_err().to_string();
    assert!(error.contains("no/such/picture.png") && error.contains("cannot open"), "{error}");
    let image = GreyImage { width: 1, height: 1, pixels: vec![0] };
    let error = write(Path::new("no/such/picture.png"), &image).unwrap_err().to_string();
    assert!(error.contains("cannot write image no/such/picture.png"), "{error}");
}
