//! The agent dies at every step between an input and its consequences, once for each step of a
//! story; the story that is told in the end is the same as without.

mod story;

use story::Story;

/// The places of the agent's loop at which it can be made to die: before a step is written down,
/// then before it is seen, before the keeper hears of it, before it is acted on, and after that.
const POINTS: [&str; 5] = ["input", "journaled", "published", "acknowledged", "commanded"];

/// Dies when it gets to `point` for the first time, the second, the third, until the story is over
/// before that.
fn die_at(point: &str) {
    assert!(POINTS.contains(&point));
    let undisturbed = Story::tell(None);
    let mut deaths = 0;
    for count in 1.. {
        let story = Story::tell(Some((point, count)));
        story.compare(&undisturbed);
        if !story.died() {
            break;
        }
        deaths += 1;
    }
    println!("{deaths} deaths at '{point}'");
    assert!(deaths > 15, "the story has more steps than {deaths}");
}

#[test]
fn the_agent_may_die_before_a_step_is_written_down() {
    die_at("input");
}

#[test]
fn the_agent_may_die_after_a_step_is_written_down() {
    die_at("journaled");
}

#[test]
fn the_agent_may_die_after_a_step_is_published() {
    die_at("published");
}

#[test]
fn the_agent_may_die_after_a_step_is_acknowledged() {
    die_at("acknowledged");
}

#[test]
fn the_agent_may_die_after_a_step_is_commanded() {
    die_at("commanded");
}
