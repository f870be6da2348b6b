//! A node reached from elsewhere, and what people see of one that is right here.

mod elsewhere;
mod seen;
mod supervisor;
mod supvisors;
