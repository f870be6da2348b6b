//! From inputs that mean something to inputs that nobody meant.

use mainstay_tests::Random;

/// Longer inputs find little that shorter ones do not.
const LONGEST: usize = 16 << 10;

#[derive(Debug)]
pub(crate) struct Mutator {
    corpus: Vec<Vec<u8>>,
    tokens: &'static [&'static str],
}

/// What all formats stumble over.
const ANYWHERE: [&[u8]; 22] = [
    b"\0",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b" ",
    b"\"",
    b"'",
    b"\\",
    b"${",
    b"}",
    b"%(",
    b")s",
    b"-1",
    b"0",
    b"18446744073709551616",
    b"9223372036854775807",
    b"1e999",
    b"\xff",
    b"\xf0\x9f\x92\xa5",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
];

impl Mutator {
    pub(crate) fn new(seeds: Vec<Vec<u8>>, tokens: &'static [&'static str]) -> Mutator {
        assert!(!seeds.is_empty(), "a target without seeds");
        Mutator { corpus: seeds, tokens }
    }

    /// Every seed as it is first, then changed ones.
    pub(crate) fn input(&mut self, number: u64, random: &mut Random) -> Vec<u8> {
        let seed = usize::try_from(number).ok().and_then(|number| self.corpus.get(number));
        if let Some(seed) = seed {
            return seed.clone();
        }
        let mut input = random.pick(&self.corpus).clone();
        // One change most often, sometimes many.
        let changes = 1 << random.within(0..5);
        for _ in 0..random.within(1..changes + 1) {
            self.change(&mut input, random);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&self, input: &mut Vec<u8>, random: &mut Random) {
        let (from, to) = stretch(input.len(), random);
        match random.within(0..10) {
            0 if !input.is_empty() => {
                input[from.min(to.saturating_sub(1))] ^= 1 << random.within(0..8)
            }
            1 => {
                let count = usize::try_from(random.within(1..9)).unwrap_or(1);
                input.splice(from..from, random.bytes(count));
            }
            2 => drop(input.drain(from..to)),
            3 => {
                let copy = input[from..to].to_vec();
                input.splice(from..from, copy);
            }
            4 => {
                let times = usize::try_from(random.within(2..200)).unwrap_or(2);
                let copy = input[from..to.min(from + 64)].repeat(times);
                input.splice(from..from, copy);
            }
            5 => input.truncate(from),
            6 => {
                let other = random.pick(&self.corpus);
                let (first, last) = stretch(other.len(), random);
                input.splice(from..to, other[first..last].iter().copied());
            }
            7 if !self.tokens.is_empty() => {
                let token = random.pick(self.tokens).as_bytes();
                input.splice(from..from, token.iter().copied());
            }
            8 if !self.tokens.is_empty() => {
                let token = random.pick(self.tokens).as_bytes();
                input.splice(from..to.min(from + 12), token.iter().copied());
            }
            _ => {
                let token = random.pick(&ANYWHERE);
                input.splice(from..to.min(from + 4), token.iter().copied());
            }
        }
    }
}

/// Two places in an input, most often near each other.
fn stretch(length: usize, random: &mut Random) -> (usize, usize) {
    let at = |random: &mut Random, most: usize| {
        usize::try_from(random.within(0..most as u64 + 1)).unwrap_or(0)
    };
    let from = at(random, length);
    let reach = if random.within(0..8) == 0 { length } else { 16 };
    (from, (from + at(random, reach)).min(length))
}
