// Recursion through trait objects and closures, panics that are caught half way up, a sort's callback and a thread, as rustc makes them. Runs for so
// many seconds as it is told.
use std::collections::BTreeMap;
use std::panic;
use std::time::{Duration, Instant};

trait Node {
    fn visit(&self, depth: u32, seed: u64) -> u64;
}

struct Plain;
struct Keeping(Vec<u64>);

#[inline(never)]
fn work(mut seed: u64) -> u64 {
    for _ in 0..2000 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    }
    seed
}

#[inline(never)]
fn sorted(mut seed: u64) -> u64 {
    let mut values: Vec<u64> = (0..200).map(|_| { seed = work(seed) >> 3; seed }).collect();
    values.sort_by(|left, right| (left | (work(*left) & 0)).cmp(right));
    values[100]
}

#[inline(never)]
fn step(depth: u32, seed: u64) -> u64 {
    if depth == 0 {
        return match seed % 16 {
            0..=4 => panic!("deep: {}", seed),
            5 => sorted(seed),
            _ => work(seed),
        };
    }
    let node: Box<dyn Node> = if depth % 3 == 0 { Box::new(Plain) } else { Box::new(Keeping(vec![seed; 8])) };
    node.visit(depth - 1, work(seed)).wrapping_add(depth.into())
}

impl Node for Plain {
    #[inline(never)]
    fn visit(&self, depth: u32, seed: u64) -> u64 {
        let again = move |more: u64| step(depth, seed ^ more);
        again(work(seed)) | 1
    }
}

impl Node for Keeping {
    #[inline(never)]
    fn visit(&self, depth: u32, seed: u64) -> u64 {
        step(depth, seed ^ self.0.iter().sum::<u64>()).wrapping_add(self.0[3])
    }
}

#[inline(never)]
fn run(end: Instant, mut seed: u64) -> u64 {
    let mut counts = BTreeMap::new();
    while Instant::now() < end {
        let result = panic::catch_unwind(move || step((seed % 20) as u32, seed));
        *counts.entry(result.is_ok()).or_insert(0u64) += 1;
        seed = work(seed ^ result.unwrap_or(7)) >> 1;
    }
    seed ^ counts.values().sum::<u64>()
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).expect("seconds").parse().expect("a number");
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    panic::set_hook(Box::new(|_| ()));
    let other = std::thread::spawn(move || run(end, 2));
    println!("{}", run(end, 1) ^ other.join().expect("a sum"));
}
