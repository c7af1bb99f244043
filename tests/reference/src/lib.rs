//! The reference crates at work: sectors, circuits, keys and proofs of the vectors, and checks of what another program made.
pub mod cases;
pub mod digest;
pub mod fast;
pub mod other;
pub mod post;
#[cfg(feature = "prover")]
pub mod prove;
pub mod record;
pub mod seal;
pub mod setup;
pub mod shapes;
#[cfg(feature = "prover")]
pub mod tiny;
pub mod util;
pub mod vectors;
pub mod verify;
