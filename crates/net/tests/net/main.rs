//! Both directions of the network against each other, over loopback.

mod asking;
mod certified;
mod listening;
mod served;
