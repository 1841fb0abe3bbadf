//! Nodes that answer and do not serve, and names that come and go.

use super::*;

#[test]
fn a_node_that_answers_but_does_not_serve_loses_its_sections() {
    let mut world = ArbiterWorld::new(2);
    world.run(300);
    world.stuck.insert("n1".to_owned(), (0, 10, Duration::from_millis(4_900)));
    world.run(1_000);
    assert_eq!(world.count("n1"), 10, "it may still come");
    world.stuck.insert("n1".to_owned(), (0, 10, Duration::from_secs(5)));
    world.run(300);
    assert_eq!([world.count("n0"), world.count("n1"), world.count("n2")], [15, 0, 15]);
    // Without sections nothing is late; it is tried again after a minute, and then after two.
    world.stuck.remove("n1");
    world.run(59_000);
    assert_eq!(world.count("n1"), 0);
    world.run(2_500);
    assert_eq!(world.count("n1"), 10, "another try");
    world.stuck.insert("n1".to_owned(), (0, 10, Duration::from_secs(5)));
    world.run(300);
    world.stuck.remove("n1");
    world.run(119_000);
    assert_eq!(world.count("n1"), 0, "twice as long");
    world.nodes.insert("n1".to_owned(), Some(44));
    world.run(300);
    assert_eq!(world.count("n1"), 10, "a restart is a try of its own");
    assert_eq!(world.acting(), [0]);
}

#[test]
fn what_no_node_can_serve_costs_one_node_at_a_time() {
    let mut world = ArbiterWorld::new(1);
    world.run(300);
    for node in ["n0", "n1", "n2"] {
        world.stuck.insert(node.to_owned(), (9, 1, Duration::from_secs(9)));
    }
    world.run(30_000);
    let idle = (0..3).filter(|index| world.count(&format!("n{index}")) == 0).count();
    assert_eq!((idle, world.acting()), (1, vec![0]));
    for node in ["n0", "n1", "n2"] {
        world.stuck.insert(node.to_owned(), (0, 10, Duration::from_secs(9)));
    }
    world.run(30_000);
    let idle = (0..3).filter(|index| world.count(&format!("n{index}")) == 0).count();
    assert_eq!(idle, 2, "the last one keeps what nobody else could take");
}

#[test]
fn names_that_come_and_go_exhaust_nothing() {
    let mut world = ArbiterWorld::new(1);
    let mut full = rules(0);
    full.seed.nodes =
        (0..1_024).map(|index| (format!("n{index}"), format!("http://127.0.0.1:{}", index + 1))).collect();
    world.arbiters = vec![Some(Arbiter::new(full))];
    world.tell(0, ArbiterEvent::Start);
    world.run(1_500);
    // Each is never heard of, so it counts as dead before the next comes.
    for index in 2_000..2_005 {
        world.change(0, u64::from(index), add(index));
        world.run(1_000);
        let outcome = &world.answers[&u64::from(index)];
        assert!(matches!(outcome, ChangeOutcome::Done(_)), "{index}: {outcome:?}");
        assert_eq!(world.table().nodes.len(), 1_024);
    }
    assert_eq!([world.count("n0"), world.count("n1"), world.count("n2")], [10, 10, 10]);
    world.change(0, 1, Change::Remove("n2004".to_owned()));
    assert!(matches!(&world.answers[&1], ChangeOutcome::Done(table) if table.nodes.len() == 1_023));
    world.change(0, 2, Change::Remove("n0".to_owned()));
    assert!(matches!(&world.answers[&2], ChangeOutcome::Refused(line) if line.contains("still serves")));
}
