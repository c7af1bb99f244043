//! The reference crates at work: sectors, circuits, keys and proofs of the vectors, and checks of what another program made.
//!
//! Without the feature `program` only what other programs of the tree call.
#![cfg_attr(not(feature = "program"), allow(unused_imports, dead_code))]

pub mod cases;
pub mod digest;
pub mod fast;
pub mod other;
pub mod post;
#[cfg(feature = "program")]
pub mod prove;
pub mod record;
pub mod seal;
pub mod setup;
pub mod shapes;
#[cfg(feature = "program")]
pub mod tiny;
pub mod util;
#[cfg(feature = "program")]
pub mod vectors;
#[cfg(feature = "program")]
pub mod verify;

#[cfg(feature = "program")]
pub(crate) use filecoin_proofs::with_shape;

/// Calls a function with the tree shape of 2 KiB sectors, as the macro of filecoin_proofs does for all sizes.
#[cfg(not(feature = "program"))]
macro_rules! with_shape_2k {
    ($size:expr, $f:ident, $($arg:expr),*) => {
        match $size {
            filecoin_proofs::constants::SECTOR_SIZE_2_KIB => $f::<filecoin_proofs::constants::SectorShape2KiB>($($arg),*),
            size => Err(anyhow::anyhow!("{} bytes: only the program knows other sizes than 2 KiB", size)),
        }
    };
}
#[cfg(not(feature = "program"))]
pub(crate) use with_shape_2k as with_shape;
