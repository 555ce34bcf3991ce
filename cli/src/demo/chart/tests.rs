//! Tests of the test chart.

use super::*;

#[test]
fn the_chart_is_the_same_every_time() {
    let chart = noisy();
    assert_eq!(chart.pixels.len(), 512 * 512);
    assert_eq!(chart, noisy());
}

#[test]
fn noise_is_centred_and_bounded() {
    let mut noise = Noise(1);
    let draws: Vec<_> = (0..10_000).map(|_| noise.next()).collect();
    assert!(draws.iter().all(|draw| draw.abs() <= NOISE));
    assert!(draws.iter().sum::<i32>().abs() < 5_000);
    assert!(draws.iter().any(|draw| draw.abs() > NOISE / 2));
}

#[test]
fn every_quarter_has_light_and_dark() {
    for (left, top) in [(0, 0), (256, 0), (0, 256), (256, 256)] {
        let levels = (top..top + 256).flat_map(|y| (left..left + 256).map(move |x| clean(x, y)));
        let (darkest, lightest) = (levels.clone().min().unwrap(), levels.max().unwrap());
        assert!(darkest >= 0 && lightest <= 255, "{darkest} to {lightest}");
        assert!(lightest - darkest > 100, "{left},{top}: {darkest} to {lightest}");
    }
}
