//! The machine that is described by a text.

use std::env;

#[derive(Clone, Debug)]
pub struct Gpu {
    pub name: String,
    pub uuid: [u8; 16],
    pub parent_uuid: Option<[u8; 16]>,
    pub pci: String,
    pub memory_bytes: u64,
    pub capability: (i32, i32),
    pub cooperative: bool,
    /// How much longer everything in a stream takes.
    pub slow_us: u64,
}

#[derive(Debug, Default)]
pub struct Machine {
    pub driver_version: i32,
    pub gpus: Vec<Gpu>,
    /// Ordered pairs of places in `gpus`.
    pub peers: Vec<(usize, usize)>,
}

impl Machine {
    pub fn described() -> Self {
        Self::read(&env::var("HOPWISE_STAND_IN").unwrap_or_default())
    }

    pub fn read(text: &str) -> Self {
        let mut machine = Self { driver_version: 12_080, ..Self::default() };
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<_> = line.split_whitespace().collect();
            let value = |key: &str| {
                let find = |word: &&str| word.strip_prefix(key)?.strip_prefix('=').map(String::from);
                words.iter().find_map(find)
            };
            match words[0] {
                "driver" => machine.driver_version = number(value("version")),
                "gpu" => machine.gpus.push(gpu(machine.gpus.len(), value)),
                "peer" => machine.peers.push((place(words[1]), place(words[2]))),
                "peers" => {
                    let all = 0..machine.gpus.len();
                    let pairs = all.clone().flat_map(|a| all.clone().map(move |b| (a, b)));
                    machine.peers = pairs.filter(|(a, b)| a != b).collect();
                }
                other => panic!("the stand-in does not know `{other}`"),
            }
        }
        machine
    }

    /// The places that `CUDA_VISIBLE_DEVICES` leaves, in its order. The first entry that names
    /// nothing ends the list, as the driver has it.
    pub fn visible(&self) -> Vec<usize> {
        let Ok(list) = env::var("CUDA_VISIBLE_DEVICES") else {
            return (0..self.gpus.len()).collect();
        };
        let mut visible = Vec::new();
        for entry in list.split(',').map(str::trim) {
            let named = match entry.parse::<usize>() {
                Ok(number) => (number < self.gpus.len()).then_some(number),
                Err(_) => self.named(entry),
            };
            match named.filter(|place| !visible.contains(place)) {
                Some(place) => visible.push(place),
                None => break,
            }
        }
        visible
    }

    fn named(&self, prefix: &str) -> Option<usize> {
        let text = |gpu: &Gpu| {
            let kind = if gpu.parent_uuid.is_some() { "MIG" } else { "GPU" };
            let hex: String = gpu.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
            let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
            format!("{kind}-{}", parts.join("-"))
        };
        let fits = |gpu: &&Gpu| !prefix.is_empty() && text(gpu).starts_with(prefix);
        let mut found = self.gpus.iter().enumerate().filter(|(_, gpu)| fits(gpu));
        found.next().map(|(place, _)| place)
    }
}

fn gpu(place: usize, value: impl Fn(&str) -> Option<String>) -> Gpu {
    let place = u8::try_from(place).expect("few GPUs");
    let mut uuid = [0x57; 16];
    uuid[15] = place + 1;
    let capability = value("capability").unwrap_or_else(|| "9.0".to_owned());
    let (major, minor) = capability.split_once('.').expect("as in 9.0");
    let name = value("name").unwrap_or_else(|| "Stand-in".to_owned());
    Gpu {
        name: name.replace('_', " "),
        uuid: value("uuid").map_or(uuid, |text| bytes(&text)),
        parent_uuid: value("parent").map(|text| bytes(&text)),
        pci: value("pci").unwrap_or_else(|| format!("0000:{:02x}:00.0", 0x10 + place)),
        memory_bytes: u64::try_from(number(Some(
            value("memory_mib").unwrap_or_else(|| "256".to_owned()),
        )))
        .expect("positive")
            << 20,
        capability: (number(Some(major.to_owned())), number(Some(minor.to_owned()))),
        cooperative: value("cooperative").is_none_or(|text| text != "0"),
        slow_us: value("slow_us").map_or(0, |text| text.parse().expect("a number")),
    }
}

fn number(text: Option<String>) -> i32 {
    text.and_then(|text| text.parse().ok()).expect("a number")
}

fn place(text: &str) -> usize {
    text.parse().expect("the place of a GPU")
}

fn bytes(text: &str) -> [u8; 16] {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|digit| u8::try_from(digit).expect("one digit"))
        .collect();
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = pair[0] << 4 | pair.get(1).copied().unwrap_or(0);
    }
    bytes
}
