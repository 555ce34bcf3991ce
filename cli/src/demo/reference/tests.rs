//! Tests of the plain loop.

use super::*;

fn image(width: u32, pixels: &[u8]) -> GreyImage {
    let height = u32::try_from(pixels.len()).unwrap() / width;
    GreyImage { width, height, pixels: pixels.to_vec() }
}

#[test]
fn a_flat_image_stays_and_a_pixel_alone_has_no_neighbours() {
    let settings = Settings::new(20, 10.0, 0.25).unwrap();
    assert_eq!(smooth(&image(3, &[70; 9]), &settings, drop), vec![from_grey(70); 9]);
    assert_eq!(smooth(&image(1, &[200]), &settings, drop), [from_grey(200)]);
}

#[test]
fn a_speck_spreads_to_all_sides_alike() {
    let settings = Settings::new(1, 255.0, 0.25).unwrap();
    let smooth = smooth(&image(3, &[10, 10, 10, 10, 14, 10, 10, 10, 10]), &settings, drop);
    let [corner, side, centre] = [smooth[0], smooth[1], smooth[4]];
    assert_eq!(smooth, [corner, side, corner, side, centre, side, corner, side, corner]);
    assert_eq!(corner, from_grey(10));
    assert!(side > from_grey(10) && centre < from_grey(14));
}

#[test]
fn the_first_difference_is_found_in_row_and_column() {
    let expected = [1, 2, 3, 4, 5, 6];
    assert_eq!(first_difference(&expected, &expected, 3), None);
    let found = first_difference(&expected, &[1, 2, 3, 4, 9, 9], 3);
    assert_eq!(found, Some(Difference { row: 1, column: 1, expected: 5, found: 9 }));
}
