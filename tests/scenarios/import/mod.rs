//! Files of other supervisors: printed as ours, and run as they are.

mod case;
mod commands;
mod corpus;
