//! The pages of the book and of the repository: what they tell a reader to type is typed here, and
//! what they show is held against what comes.
//!
//! A page is a story, told from top to bottom on a machine of its own (`machine`):
//!
//! | block | what is done with it |
//! |---|---|
//! | `sh` | run; it has to end with 0 |
//! | `text` that begins with a prompt, `$ ` or `# ` | a session: each command is run, and what the page shows has to come, in that order. A number stands for any number, `…` for anything |
//! | `toml` | passes `mainstay check` |
//!
//! Comments right before a block, which readers of the page do not see:
//!
//! | comment | meaning |
//! |---|---|
//! | `not run: REASON` | nothing is done with it |
//! | `first: COMMANDS` | run before it: what a reader has at this point |
//! | `file: NAME` | what the block shows is in that file from here on |
//! | `is: PATH` | it is that file of the repository, but for its comments |
//! | `printed by: COMMAND` | its lines come from that command, in this order |
//! | `beside: NAME, …` | the file has these jobs as well |

mod commands;
mod links;
mod machine;
mod page;
