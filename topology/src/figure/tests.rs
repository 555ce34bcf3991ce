//! Tests of figures and of their order.

use proptest::prelude::*;

use super::*;

#[test]
fn figures_that_are_not_positive_and_finite_are_refused() {
    for value in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for refused in [
            Figure::measured(value, 0),
            Figure::reported(value, "tool"),
            Figure::estimated(value, "rule"),
        ] {
            let error = refused.expect_err("the figure is not usable");
            assert!(matches!(error, TopologyError::InvalidFigure { .. }));
            assert!(error.to_string().contains("positive finite"), "{error}");
        }
    }
}

#[test]
fn quality_is_a_strict_order() {
    let ascending = [Quality::Unknown, Quality::Estimated, Quality::Reported, Quality::Measured];
    assert!(ascending.is_sorted_by(|worse, better| worse < better));
    assert_eq!(Figure::default().quality(), Quality::Unknown);
    assert_eq!(Figure::reported(1.0, "tool").unwrap().quality(), Quality::Reported);
}

#[test]
fn every_quality_prints_differently() {
    let printed = [
        Figure::unknown().to_string(),
        Figure::estimated(12.0, "rule").unwrap().to_string(),
        Figure::reported(12.0, "tool").unwrap().to_string(),
        Figure::measured(12.0, 7).unwrap().to_string(),
    ];
    assert_eq!(printed, ["?", "~12", "=12", "12"]);
}

#[test]
fn a_small_figure_is_not_printed_as_zero() {
    assert_eq!(Figure::measured(0.000_04, 7).unwrap().to_string(), "4.0e-5");
    assert_eq!(Figure::measured(24.0 / 7.0, 7).unwrap().to_string(), "3.429");
}

proptest! {
    #[test]
    fn a_known_figure_keeps_its_value(value in f64::MIN_POSITIVE..f64::MAX) {
        let figure = Figure::estimated(value, "rule").unwrap();
        prop_assert_eq!(figure.value(), Some(value));
        prop_assert!(!figure.is_unknown());
    }
}
