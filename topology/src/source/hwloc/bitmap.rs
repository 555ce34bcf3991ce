//! Sets of CPUs and NUMA nodes as hwloc writes them: `0x000000ff,,0xffff0000`.

/// Words of a set, at most: enough for 131,072 CPUs.
const MOST_WORDS: usize = 4096;

/// Length of a list such as `0-7,16-23`, at most.
const MOST_LIST_BYTES: usize = 256;

/// A finite set of small numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bitmap {
    /// 32 numbers each, the lowest first.
    words: Vec<u32>,
}

impl Bitmap {
    /// Reads a set; `None` if the text is none, or the set has no end (`0xf...f`).
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.bytes().filter(|&byte| byte == b',').count() >= MOST_WORDS {
            return None;
        }
        let words: Option<Vec<u32>> =
            text.rsplit(',').map(|word| parse_word(word.trim())).collect();
        Some(Self { words: words? })
    }

    /// The numbers in ascending order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.words.iter().zip((0_u32..).step_by(32)).flat_map(|(&word, first)| {
            (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    pub(super) fn is_within(&self, other: &Self) -> bool {
        let others = other.words.iter().copied().chain(std::iter::repeat(0));
        self.words.iter().zip(others).all(|(&word, other)| word & !other == 0)
    }

    pub(super) fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(&word, &other)| word & other != 0)
    }

    /// The set as Linux writes it: `0-7,16-23`. `None` if it is empty or the list long.
    pub(super) fn list(&self) -> Option<String> {
        let mut list = String::new();
        let mut numbers = self.numbers().peekable();
        while let Some(first) = numbers.next() {
            let mut last = first;
            while let Some(next) = numbers.next_if(|&next| next == last + 1) {
                last = next;
            }
            let comma = if list.is_empty() { "" } else { "," };
            let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
            list = list + comma + &range;
            if list.len() > MOST_LIST_BYTES {
                return None;
            }
        }
        (!list.is_empty()).then_some(list)
    }
}

/// An empty word is zero.
fn parse_word(word: &str) -> Option<u32> {
    if word.is_empty() {
        return Some(0);
    }
    let digits = word.strip_prefix("0x")?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u32::from_str_radix(digits, 16).ok())?
}
