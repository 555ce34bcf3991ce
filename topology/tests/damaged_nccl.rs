//! Damage to an NCCL topology file costs facts, and never changes those about devices whose lines
//! are intact.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(clippy::print_stdout, reason = "a test that says what it skips")]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use damaged_nccl::damage::{Damage, damages, extents};
use damaged_nccl::facts::{facts, lies};
use hopwise_topology::{Format, Reading, SourceError, read_text};
use proptest::test_runner::{Config, TestCaseError, TestRunner};

mod damaged_nccl {
    pub(super) mod damage;
    pub(super) mod facts;
}

/// Two sockets, switches in two levels, direct NVLinks, NICs with one and two ports.
const BRIDGED: &str = r#"<system version="1">
  <cpu numaid="0" affinity="00ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="8.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x060400" link_speed="8.0 GT/s PCIe" link_width="8">
        <pci busid="0000:12:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
          <gpu dev="0" sm="70" rank="0" gdr="1">
            <nvlink target="0000:13:00.0" count="2" tclass="0x030200"/>
            <nvlink target="0000:22:00.0" count="1" tclass="0x030200"/>
          </gpu>
        </pci>
        <pci busid="0000:13:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
          <gpu dev="1" sm="70" rank="1" gdr="1">
            <nvlink target="0000:12:00.0" count="2" tclass="0x030200"/>
          </gpu>
        </pci>
      </pci>
      <pci busid="0000:14:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="8">
        <nic>
          <net name="mlx5_0" dev="0" speed="100000" port="1" gdr="1"/>
          <net name="mlx5_1" dev="1" speed="100000" port="2" gdr="1"/>
        </nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ff00" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:20:00.0" class="0x060400" link_speed="8.0 GT/s PCIe" link_width="16">
      <pci busid="0000:22:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16">
        <gpu dev="2" sm="70" rank="2" gdr="1">
          <nvlink target="0000:12:00.0" count="1" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:23:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16"/>
    </pci>
    <pci busid="0000:30:00.0" class="0x020000" link_speed="2.5 GT/s PCIe" link_width="1">
      <nic>
        <net name="eth0" dev="2" speed="1000" port="0" gdr="0"/>
      </nic>
    </pci>
  </cpu>
</system>
"#;

/// Switches by address on one GPU, the peers on the other two, a coherent link to the CPU.
const SWITCHED: &str = r#"<system version="1">
  <cpu numaid="0" affinity="ff" arch="arm64">
    <pci busid="0008:00:00.0" class="0x030200" link_speed="" link_width="0">
      <gpu dev="0" sm="90" rank="0" gdr="1">
        <nvlink target="0000:07:00.0" count="10" tclass="0x068000"/>
        <nvlink target="0000:08:00.0" count="8" tclass="0x068000"/>
        <c2c bw="44712" count="10"/>
      </gpu>
    </pci>
  </cpu>
  <cpu numaid="3" affinity="ff00" arch="arm64">
    <pci busid="0009:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="90" rank="1" gdr="1">
        <nvlink target="0008:00:00.0" count="18" tclass="0x068000"/>
        <nvlink target="0018:00:00.0" count="18" tclass="0x068000"/>
      </gpu>
    </pci>
    <pci busid="0018:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="2" sm="90" rank="2" gdr="1">
        <nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>
      </gpu>
    </pci>
  </cpu>
</system>
"#;

/// Our own files and, where they are, the recorded ones.
fn files() -> Vec<(String, String)> {
    let own = [("bridged", BRIDGED), ("switched", SWITCHED)];
    let mut files: Vec<(String, String)> =
        own.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/nccl-xml");
    let Ok(entries) = fs::read_dir(&folder) else {
        println!("skipped: there is no corpus at {}", folder.display());
        return files;
    };
    for path in entries.map(|entry| entry.unwrap().path()) {
        files.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
    }
    files
}

fn check(text: &str, damage: &Damage) -> Result<(), TestCaseError> {
    let truth = facts(&read_text(text, Some(Format::NcclXml)).unwrap()[0].observations);
    let damaged = damage.apply(text);
    let readings = read(&damaged.text)?;
    let Ok(readings) = readings else { return Ok(()) };
    let said = facts(&readings[0].observations);
    for (address, extent) in extents(text) {
        let (Some(truth), Some(said)) = (truth.get(&address), said.get(&address)) else {
            continue;
        };
        if extent.is_intact(&damaged) {
            let lies = lies(truth, said, extent.is_place_intact(&damaged), damaged.is_moved);
            if !lies.is_empty() {
                let message =
                    format!("{address}: {lies:?}\n{truth:#?}\n{said:#?}\n{}", damaged.text);
                return Err(TestCaseError::fail(message));
            }
        }
    }
    Ok(())
}

type Outcome = Result<Vec<Reading>, SourceError>;

/// Reads a text; fails if that takes long.
fn read(text: &str) -> Result<Outcome, TestCaseError> {
    let start = Instant::now();
    let outcome = read_text(text, Some(Format::NcclXml));
    if start.elapsed() > Duration::from_secs(5) {
        return Err(TestCaseError::fail("it took too long"));
    }
    Ok(outcome)
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

#[test]
fn intact_lines_say_the_same_whatever_happens_to_others() {
    for (name, text) in files() {
        let cases = if name.contains('/') { 60 } else { 1500 };
        let mut runner = runner(cases);
        if let Err(error) = runner.run(&damages(), |damage| check(&text, &damage)) {
            panic!("{name}: {error}");
        }
    }
}

#[test]
fn any_amount_of_damage_is_read_in_bounded_time() {
    for (name, text) in files() {
        let mut runner = runner(if name.contains('/') { 10 } else { 500 });
        let result = runner.run(&proptest::collection::vec(damages(), 1..12), |damages| {
            let damage_further = |text: String, damage: &Damage| {
                if text.lines().count() < 2 { text } else { damage.apply(&text).text }
            };
            let text = damages.iter().fold(text.clone(), damage_further);
            let _ = read(&text)?;
            Ok(())
        });
        if let Err(error) = result {
            panic!("{name}: {error}");
        }
    }
}

#[test]
fn every_cut_of_our_own_files_is_read() {
    for text in [BRIDGED, SWITCHED] {
        for at in 0..text.len() {
            check(text, &Damage::Cut(at)).unwrap();
        }
    }
}

#[test]
fn any_text_is_read_in_bounded_time() {
    let pieces = [
        "<system ",
        "<cpu numaid='0'",
        "<pci ",
        "busid='0000:01:00.0'",
        "<gpu ",
        "dev='4000000000'",
        "<nvlink target='0000:01:00.0' count='65535'/>",
        ">",
        "/>",
        "</pci>",
        "</cpu>",
        "\"",
        "<!--",
        "\n",
        "<graphs>",
        "<",
    ];
    let texts = proptest::collection::vec(0..pieces.len(), 0..60);
    let mut runner = runner(2000);
    let result = runner.run(&texts, |indices| {
        let text: String = indices.iter().map(|&index| pieces[index]).collect();
        let _ = read(&text)?;
        Ok(())
    });
    result.unwrap();
}
