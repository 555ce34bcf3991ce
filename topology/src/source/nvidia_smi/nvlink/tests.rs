//! Our own lists of links.

use super::{read, recognizes};

const UUID: &str = "GPU-01234567-89ab-cdef-0123-456789abcdef";

#[test]
fn links_that_are_up_are_counted_with_their_rate() {
    let text = format!(
        "GPU 0: NVIDIA X (UUID: {UUID})\n\t Link 0: 25.781 GB/s\n\t Link 1: <inactive>\n\
         \t Link 2: 25.781 GB/s\nGPU 1: NVIDIA X\n\t Link 0: 20 GB/s\n\t Link 1: 25 GB/s\n\
         \t Link 2: 25 GB/s\n"
    );
    assert!(recognizes(&text));
    let all = read(&text).unwrap();
    assert_eq!(all.nodes[0].uuid.as_deref(), Some(UUID));
    assert_eq!((all.nodes[0].nvlinks_up, all.nodes[1].nvlinks_up), (Some(2), Some(3)));
    assert_eq!(all.nodes[0].nvlink_gb_per_s.to_string(), "=25.781");
    assert_eq!(all.nodes[1].nvlink_gb_per_s.to_string(), "=20");
    assert!(all.warnings[0].text.contains("differ in speed"));
}

#[test]
fn what_is_left_out_or_moved_makes_the_count_unknown() {
    let gpu = "GPU 0: X\n";
    for links in [
        " Link 0: 25 GB/s\n ...\n Link 17: 25 GB/s\n",
        " Link 0: 25 GB/s\n Link 2: 25 GB/s\n",
        " Link 1: 25 GB/s\n Link 0: 25 GB/s\n",
        " Link 0: 25 GB/s\n Link 1: 2",
        " Link 0: many\n",
    ] {
        let all = read(&format!("{gpu}{links}")).unwrap();
        assert_eq!(all.nodes[0].nvlinks_up, None, "{links}");
        assert!(!all.warnings.is_empty(), "{links}");
    }
}

#[test]
fn a_gpu_without_links_says_so_or_nothing() {
    let none = "GPU 0: X\nNVML: Unable to retrieve NVLink information as all links are inActive\n";
    assert_eq!(read(none).unwrap().nodes[0].nvlinks_up, Some(0));
    assert_eq!(read("GPU 0: X\n").unwrap().nodes[0].nvlinks_up, None);
    assert!(read("nothing").is_err());
}
