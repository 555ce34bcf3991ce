//! The formula of one pixel: bounds, accuracy, number format.

use proptest::prelude::*;

use hopwise_core::programs::diffuse::{
    Coefficients, DiffuseError, MAX_PIXEL, Settings, diffuse_pixel, from_grey, to_grey,
};

fn pixel() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..=MAX_PIXEL, 1 => Just(0), 1 => Just(MAX_PIXEL), 2 => 32_000..32_500u32]
}

fn contrast() -> impl Strategy<Value = u32> {
    let (least, most) = (Coefficients::MIN_CONTRAST, Coefficients::MAX_CONTRAST);
    prop_oneof![least..=most, least..=32 * 256, Just(least), Just(most)]
}

fn rate() -> impl Strategy<Value = u32> {
    prop_oneof![1..=Coefficients::MAX_RATE, Just(1), Just(Coefficients::MAX_RATE)]
}

/// The documented formula in 64 bits, where nothing can wrap.
fn in_64_bits(centre: u32, neighbours: [u32; 4], contrast: u32, rate: u32) -> i64 {
    let (centre, contrast) = (i64::from(centre), i64::from(contrast));
    let inverse = ((1 << 24) + contrast / 2) / contrast;
    let flux = |neighbour: u32| {
        let difference = i64::from(neighbour) - centre;
        let scaled = (difference.abs() * inverse + (1 << 15)) >> 16;
        let conductance = (1i64 << 31) / ((1 << 16) + scaled * scaled);
        difference.signum() * ((conductance * difference.abs()) >> 11)
    };
    let sum: i64 = neighbours.map(flux).iter().sum();
    centre + ((sum * i64::from(rate) + (1 << 14)) >> 15)
}

/// Perona and Malik's scheme in real numbers, in grey levels.
fn in_reals(centre: u32, neighbours: [u32; 4], contrast: f64, rate: f64) -> f64 {
    let grey = |pixel: u32| f64::from(pixel) / 256.0;
    let flux = |neighbour: u32| {
        let difference = grey(neighbour) - grey(centre);
        difference * contrast * contrast / (contrast * contrast + difference * difference)
    };
    grey(centre) + rate * neighbours.map(flux).iter().sum::<f64>()
}

proptest! {
    #[test]
    fn nothing_wraps_and_the_range_is_kept(
        centre in pixel(),
        neighbours in prop::array::uniform4(pixel()),
        contrast in contrast(),
        rate in rate(),
    ) {
        let coefficients = Coefficients::from_words(contrast, rate).unwrap();
        let [north, south, west, east] = neighbours;
        let result = diffuse_pixel(centre, north, south, west, east, coefficients);
        prop_assert_eq!(i64::from(result), in_64_bits(centre, neighbours, contrast, rate));
        let least = centre.min(*neighbours.iter().min().unwrap());
        let most = centre.max(*neighbours.iter().max().unwrap());
        prop_assert!((least..=most).contains(&result), "{} not in {}..={}", result, least, most);
        // The neighbours' order means nothing.
        let turned = diffuse_pixel(centre, west, east, south, north, coefficients);
        prop_assert_eq!(result, turned);
    }

    #[test]
    fn it_is_close_to_the_scheme_in_real_numbers(
        centre in pixel(),
        neighbours in prop::array::uniform4(pixel()),
        contrast in contrast(),
        rate in rate(),
    ) {
        let coefficients = Coefficients::from_words(contrast, rate).unwrap();
        let [north, south, west, east] = neighbours;
        let result = diffuse_pixel(centre, north, south, west, east, coefficients);
        let (contrast, rate) = (f64::from(contrast) / 256.0, f64::from(rate) / 2048.0);
        let exact = in_reals(centre, neighbours, contrast, rate);
        // Four fluxes of at most K / 2, each within half a percent, and one that far above K is
        // within 2^-15 of its difference; then half a step of rounding.
        let allowed = rate * 4.0 * (0.005 * contrast / 2.0 + 255.0 / 32_768.0) + 1.0 / 256.0;
        let error = (f64::from(result) / 256.0 - exact).abs();
        prop_assert!(error <= allowed, "{error} grey levels off, allowed {allowed}");
    }

    #[test]
    fn garbage_gives_garbage_without_a_panic(
        pixels in prop::array::uniform5(any::<u32>()),
        contrast in contrast(),
        rate in rate(),
    ) {
        let coefficients = Coefficients::from_words(contrast, rate).unwrap();
        let [centre, north, south, west, east] = pixels;
        let result = diffuse_pixel(centre, north, south, west, east, coefficients);
        let same = diffuse_pixel(result, result, result, result, result, coefficients);
        prop_assert_eq!(result, same, "a flat image stays as it is, whatever its level");
    }
}

#[test]
fn grey_values_survive_the_number_format() {
    for grey in 0..=u8::MAX {
        assert_eq!(to_grey(from_grey(grey)), grey);
    }
    assert_eq!(from_grey(255), MAX_PIXEL);
    assert_eq!([to_grey(127), to_grey(128), to_grey(u32::MAX)], [0, 1, 255]);
}

#[test]
fn settings_are_checked_and_rounded() {
    let settings = Settings::new(5, 10.0, 0.25).unwrap();
    assert_eq!((settings.contrast_word(), settings.rate_word()), (2560, 512));
    assert_eq!(Some(settings.coefficients()), Coefficients::from_words(2560, 512));
    assert_eq!(Settings::new(1, 1.0, 0.0005).unwrap().rate_word(), 1);
    let wrong = [
        (0, 10.0, 0.2),
        (1_000_001, 10.0, 0.2),
        (5, 0.99, 0.2),
        (5, 256.0, 0.2),
        (5, f64::NAN, 0.2),
        (5, 10.0, 0.0),
        (5, 10.0, 0.26),
        (5, 10.0, f64::INFINITY),
    ];
    for (iterations, contrast, rate) in wrong {
        let error = Settings::new(iterations, contrast, rate).unwrap_err();
        assert!(matches!(error, DiffuseError::Setting { .. }), "{error}");
    }
    for (contrast, rate) in [(255, 1), (MAX_PIXEL + 1, 1), (256, 0), (256, 513), (0, 1)] {
        assert_eq!(Coefficients::from_words(contrast, rate), None);
    }
}
