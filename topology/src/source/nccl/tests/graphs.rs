//! Graph dumps.

use super::{all, read, texts};
use crate::{NodeKind, Tool};

fn labels(text: &str) -> Vec<String> {
    let observed = read(text).unwrap();
    observed.nodes.iter().filter_map(|node| node.label(Tool::Nccl)).map(str::to_owned).collect()
}

#[test]
fn channels_are_lists_of_what_they_pass() {
    let text = r#"<graphs version="1">
  <!-- a ring -->
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="20.5" speedinter="12"
         latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="0">
    <channel><net dev="5"/><gpu dev="0"/><gpu dev="0xa"/><net dev="0x5"/></channel>
  </graph>
  <graph id="3" pattern="5" nchannels="0" speedintra="0" typeintra=""/>
</graphs>"#;
    let observed = read(text).unwrap();
    assert_eq!(texts(&observed), [""; 0]);
    assert!(observed.links.is_empty());
    assert_eq!(labels(text), ["GPU0", "GPU10", "NET5"]);
    assert_eq!(all(&observed, NodeKind::Nic).len(), 1);
    let [ring, none] = &observed.channel_graphs[..] else { panic!("{observed:?}") };
    assert_eq!(
        (ring.id, ring.pattern, &ring.channels[..]),
        (
            0,
            4,
            &[vec!["NET5".to_owned(), "GPU0".to_owned(), "GPU10".to_owned(), "NET5".to_owned()]][..]
        )
    );
    assert_eq!((ring.intra_gb_per_s, ring.inter_gb_per_s), (Some(20.5), Some(12.0)));
    assert_eq!(
        (ring.intra_class.as_deref(), ring.inter_class.as_deref()),
        (Some("NVL"), Some("PIX"))
    );
    assert_eq!(
        (none.channels.len(), none.inter_gb_per_s, none.intra_class.as_ref()),
        (0, None, None)
    );
}

#[test]
fn a_channel_that_is_not_whole_is_left_out() {
    let start = "<graphs><graph id='0' pattern='4' nchannels='2'><channel><gpu dev='0'/></channel>";
    for end in ["<channel><gpu dev='1'/><gp", "<channel><gpu dev='1'/></graph></graphs>"] {
        let observed = read(&format!("{start}{end}")).unwrap();
        assert_eq!(observed.channel_graphs[0].channels, [["GPU0"]]);
        assert!(observed.warnings.len() >= 2, "{:?}", texts(&observed));
    }
    let observed =
        read(&format!("{start}<channel><gpu dev='x'/></channel></graph></graphs>")).unwrap();
    assert_eq!(observed.channel_graphs[0].channels.len(), 1);
    assert_eq!(texts(&observed).len(), 3);
}

#[test]
fn a_lost_channel_is_missed() {
    let text = "<graphs><graph id='0' pattern='4' nchannels='2'><channel><gpu dev='0'/></channel>\
                </graph><graph pattern='1'/></graphs>";
    let observed = read(text).unwrap();
    assert_eq!(observed.channel_graphs.len(), 1);
    assert_eq!(texts(&observed).len(), 2);
}

#[test]
fn a_dump_beside_its_topology_adds_only_what_is_new() {
    let text = "<system><cpu numaid='0'><pci busid='0000:01:00.0'><gpu dev='0' sm='90'/></pci></cpu>\
                </system>\n<graphs><graph id='0' pattern='4' nchannels='1'><channel><gpu dev='0'/>\
                <gpu dev='1'/></channel></graph></graphs>";
    assert_eq!(labels(text), ["GPU0", "GPU1"]);
}

#[test]
fn huge_numbers_cost_nothing() {
    let text = "<graphs><graph id='0' pattern='4' nchannels='18446744073709551615'><channel>\
                <gpu dev='4000000000'/><gpu dev='0x100000000000001'/></channel></graph></graphs>";
    assert_eq!(labels(text), ["GPU4000000000", "GPU72057594037927937"]);
    let text = text.replace("4000000000", "99999999999999999999");
    assert_eq!(read(&text).unwrap().channel_graphs[0].channels.len(), 0);
}
