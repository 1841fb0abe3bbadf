//! Misses, answers and the damping between them.

use std::time::Duration;

use super::super::health::{Health, HealthRules, Status};
use seqsvr_core::clock::Moment;

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn die(health: &mut Health, rules: &HealthRules, now: u64) {
    (0..rules.dead_after).for_each(|_| health.missed(at(now), rules));
    assert_eq!(health.status(), Status::Dead);
}

/// How many answers it takes until it is live again.
fn answers_needed(health: &mut Health, rules: &HealthRules, now: u64) -> u32 {
    let mut count = 0;
    while !matches!(health.status(), Status::Live(_)) {
        health.answered(at(now), rules, 1);
        count += 1;
        assert!(count <= 1_000);
    }
    count
}

#[test]
fn two_misses_are_forgiven_and_the_third_is_death() {
    let rules = HealthRules::default();
    let mut health = Health::default();
    assert_eq!(health.status(), Status::Unknown);
    health.answered(at(0), &rules, 1);
    for _ in 0..10 {
        health.missed(at(1), &rules);
        health.missed(at(1), &rules);
        assert_eq!(health.status(), Status::Live(1));
        health.answered(at(1), &rules, 1);
    }
    die(&mut health, &rules, 2);
}

#[test]
fn a_node_that_dies_again_and_again_must_prove_itself_ever_longer() {
    let rules = HealthRules::default();
    let mut health = Health::default();
    health.answered(at(0), &rules, 1);
    let needed: Vec<u32> = (0..7)
        .map(|death| {
            die(&mut health, &rules, death * 10_000);
            answers_needed(&mut health, &rules, death * 10_000)
        })
        .collect();
    assert_eq!(needed, [15, 30, 60, 80, 80, 80, 80]);
    let calm = 60_000 + rules.calm.as_millis() as u64;
    die(&mut health, &rules, calm);
    assert_eq!(answers_needed(&mut health, &rules, calm), 15, "after a calm time all is forgotten");
}

#[test]
fn one_miss_on_the_way_back_begins_the_count_anew() {
    let rules = HealthRules::default();
    let mut health = Health::default();
    health.answered(at(0), &rules, 1);
    die(&mut health, &rules, 1);
    (0..4).for_each(|_| health.answered(at(2), &rules, 1));
    assert_eq!(health.status(), Status::Answering(1));
    health.missed(at(3), &rules);
    assert_eq!(health.status(), Status::Answering(1), "what it serves stays with it");
    assert_eq!(answers_needed(&mut health, &rules, 4), 15);
}

#[test]
fn who_is_not_trusted_is_dead_after_as_many_misses_as_who_is() {
    let rules = HealthRules::default();
    let mut health = Health::default();
    health.answered(at(0), &rules, 1);
    die(&mut health, &rules, 1);
    for _ in 0..10 {
        health.answered(at(2), &rules, 1);
        health.missed(at(3), &rules);
        health.missed(at(3), &rules);
        assert_eq!(health.status(), Status::Answering(1));
    }
    health.missed(at(3), &rules);
    assert_eq!(health.status(), Status::Dead);
}

#[test]
fn a_restart_is_known_at_once_but_a_row_of_them_counts_as_death() {
    let rules = HealthRules { calm: Duration::from_secs(60), restarts: 4, ..HealthRules::default() };
    let mut health = Health::default();
    (1..=4).for_each(|life| health.answered(at(life), &rules, life));
    assert_eq!(health.status(), Status::Live(4));
    health.answered(at(5), &rules, 5);
    assert_eq!(health.status(), Status::Answering(5));
}

#[test]
fn who_was_never_heard_of_starts_at_its_first_answer() {
    let rules = HealthRules::default();
    let mut health = Health::default();
    die(&mut health, &rules, 0);
    assert_eq!(answers_needed(&mut health, &rules, 1), 1);
}

#[test]
fn who_says_goodbye_is_gone_at_once_and_welcome_back_at_once() {
    let rules = HealthRules::default();
    let mut health = Health::default();
    health.answered(at(0), &rules, 1);
    health.left();
    assert_eq!(health.status(), Status::Dead);
    (0..10).for_each(|_| health.missed(at(1), &rules));
    assert_eq!(answers_needed(&mut health, &rules, 2), 1);
}
