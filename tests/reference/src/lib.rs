//! The reference crates at work: sectors, circuits, keys and proofs of the vectors, and checks of what another program made.
pub mod cases;
pub mod digest;
pub mod fast;
pub mod post;
pub mod record;
pub mod seal;
pub mod setup;
pub mod shapes;
pub mod tiny;
pub mod util;
pub mod vectors;
pub mod verify;
