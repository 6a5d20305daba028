//! Synthetic clusters of 3, 6 and 12 hosts: every fault of the lab at every place is found, named and
//! attributed; healthy clusters stay silent; names and order do not matter.

mod at_times;
mod cluster;
mod drops;
mod faults;
mod mild;
mod ports;
mod two;

use cluster::{Cluster, Layout, SIX, THREE, TWELVE};
use faults::{Fault, Spot};
use linerate_diagnose::second_stage;
use linerate_diagnose::stats::Rng;
use linerate_knowledge::Knowledge;
use linerate_model::fact::{FactValue, Gap, GapSubject};
use linerate_model::finding::{Diagnosis, Direction, RankedCause, Suspect};
use linerate_model::inventory::Layer;
use linerate_model::kind::{RttPlan, TcpPlan};
use linerate_model::plan::Test;
use linerate_model::sample::{Outcome, Sample};
use linerate_model::snapshot::Snapshot;

const LAYOUTS: [Layout; 3] = [THREE, SIX, TWELVE];

fn diagnose(snapshot: &Snapshot, knowledge: &Knowledge) -> Diagnosis {
    linerate_report::words::written(linerate_diagnose::diagnose(snapshot, knowledge))
}

#[derive(Default)]
struct Tally {
    runs: usize,
    suspect: usize,
    top1: usize,
    top3: usize,
    wrong: Vec<String>,
}

fn judge(
    tally: &mut Tally,
    snapshot: &Snapshot,
    knowledge: &Knowledge,
    fault: &Fault,
    spot: &Spot,
    cluster: &Cluster,
) {
    let diagnosis = diagnose(snapshot, knowledge);
    tally.runs += 1;
    let Some(first) = diagnosis.findings.first() else {
        tally.wrong.push(format!("{} at {spot:?}: nothing found", fault.name));
        return;
    };
    let place = &first.places[0];
    let suspect = fault.accepts(spot, &place.suspect, place.direction, cluster);
    let at = first.causes.iter().position(|c| c.id == fault.cause);
    tally.suspect += usize::from(suspect);
    tally.top1 += usize::from(at == Some(0));
    tally.top3 += usize::from(at.is_some_and(|a| a < 3));
    if !suspect || at != Some(0) {
        let causes: Vec<String> =
            first.causes.iter().take(3).map(|c| format!("{} {:.2}", c.id, c.probability)).collect();
        tally.wrong.push(format!(
            "{} at {spot:?}: {:?} {:?}, {causes:?}",
            fault.name, place.suspect, place.direction
        ));
    }
}

#[test]
fn every_fault_is_located_and_attributed() {
    let knowledge = Knowledge::builtin().unwrap();
    let mut total = Tally::default();
    for layout in LAYOUTS {
        for fault in faults::ALL {
            // In the large cluster a third of the places, another third for each fault.
            let (step, first) = if layout.len() > 4 { (3, fault.name.len() % 3) } else { (1, 0) };
            let spots = fault.spots(layout);
            let first = first.min(spots.len() - 1);
            for (number, spot) in spots.into_iter().enumerate().skip(first).step_by(step) {
                let mut cluster = Cluster::new(layout);
                let damage = fault.inject(&mut cluster, &spot);
                let snapshot = cluster.measure(1000 + number as u64, &*damage);
                judge(&mut total, &snapshot, &knowledge, fault, &spot, &cluster);
            }
        }
    }
    let share = |n: usize| n as f64 / total.runs as f64;
    println!(
        "{} runs: suspect {:.1} %, top-1 {:.1} %, top-3 {:.1} %",
        total.runs,
        100.0 * share(total.suspect),
        100.0 * share(total.top1),
        100.0 * share(total.top3)
    );
    for line in &total.wrong {
        println!("{line}");
    }
    assert!(
        share(total.suspect) >= 0.97 && share(total.top1) >= 0.92 && share(total.top3) >= 0.98,
        "too many wrong"
    );
}

#[test]
fn healthy_clusters_stay_silent() {
    let knowledge = Knowledge::builtin().unwrap();
    let mut alarms = Vec::new();
    for seed in 0..200 {
        let cluster = Cluster::new(LAYOUTS[seed as usize % 3]);
        let diagnosis = diagnose(&cluster.measure(seed, &|_, _, _, _| {}), &knowledge);
        alarms.extend(diagnosis.findings.into_iter().map(|f| format!("seed {seed}: {}", f.sentence)));
    }
    assert!(alarms.is_empty(), "{} alarms:\n{}", alarms.len(), alarms.join("\n"));
}

/// A sender whose congestion control is another one, mildly and only towards one group: it looks like the way
/// between two groups, and the setting says what it is.
#[test]
fn a_setting_takes_over_a_loss_that_it_explains() {
    let knowledge = Knowledge::builtin().unwrap();
    let mut cluster = Cluster::new(SIX);
    let (sender, receivers) = (SIX[2].1[0], SIX[0].1);
    cluster.set(sender, "sysctl.net.ipv4.tcp_congestion_control", FactValue::Text("reno".to_owned()));
    let snapshot = cluster.measure(5, &|from, to, _, path| {
        if from == sender && receivers.contains(&to) {
            path.rate_bps *= 0.8;
        }
    });
    let diagnosis = diagnose(&snapshot, &knowledge);
    let told: Vec<&str> = diagnosis.findings.iter().map(|f| f.sentence.as_str()).collect();
    assert_eq!(told.len(), 1, "{told:#?}");
    let finding = &diagnosis.findings[0];
    assert_eq!(finding.places[0].suspect, Suspect::Host(sender.to_owned()), "{told:#?}");
    assert_eq!(finding.places[0].direction, Direction::Tx);
    assert_eq!(finding.causes[0].id, "congestion-control-differs");
    assert_eq!(finding.affected.len(), receivers.len());
    // Without the setting the place of the loss stays what it is.
    cluster.set(sender, "sysctl.net.ipv4.tcp_congestion_control", FactValue::Text("bbr".to_owned()));
    let snapshot = cluster.measure(5, &|from, to, _, path| {
        if from == sender && receivers.contains(&to) {
            path.rate_bps *= 0.8;
        }
    });
    let suspect = |d: &linerate_model::finding::Diagnosis| d.findings[0].places[0].suspect.clone();
    assert!(matches!(suspect(&diagnose(&snapshot, &knowledge)), Suspect::GroupToGroup(..)));
}

#[test]
fn order_does_not_matter() {
    let knowledge = Knowledge::builtin().unwrap();
    for (number, fault) in faults::ALL.iter().enumerate() {
        let mut cluster = Cluster::new(SIX);
        let spot = fault.spots(SIX).remove(0);
        let damage = fault.inject(&mut cluster, &spot);
        let snapshot = cluster.measure(number as u64, &*damage);
        let mut shuffled = snapshot.clone();
        let mut rng = Rng::new(number as u64);
        for i in (1..shuffled.samples.len()).rev() {
            shuffled.samples.swap(i, rng.below(i + 1));
        }
        shuffled.inventory.hosts.reverse();
        shuffled.inventory.groups.reverse();
        let say = |s: &Snapshot| {
            diagnose(s, &knowledge)
                .findings
                .iter()
                .map(|f| {
                    (
                        f.places[0].suspect.clone(),
                        f.places[0].direction,
                        f.causes.first().map(|c| c.id.clone()),
                    )
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(say(&snapshot), say(&shuffled), "{}", fault.name);
    }
}

#[test]
fn names_do_not_matter() {
    let knowledge = Knowledge::builtin().unwrap();
    let mut cluster = Cluster::new(SIX);
    let fault = faults::ALL.iter().find(|f| f.name == "hypervisor-rx-cap").unwrap();
    let damage = fault.inject(&mut cluster, &Spot::Group("vs-4"));
    let snapshot = cluster.measure(3, &*damage);
    // The first letters turned round reverse every alphabetical order.
    let text = serde_json::to_string(&snapshot).unwrap();
    let renamed = text.replace("arc-", "zz-").replace("zz-1", "zz-9").replace("vs-4", "aa-4");
    let renamed: Snapshot = serde_json::from_str(&renamed).unwrap();
    let found = diagnose(&renamed, &knowledge);
    let place = &found.findings[0].places[0];
    assert_eq!((&place.suspect, place.direction), (&Suspect::Group("aa-4".to_owned()), Direction::Rx));
    assert_eq!(diagnose(&snapshot, &knowledge).findings[0].causes[0].id, found.findings[0].causes[0].id);
}

#[test]
fn the_snapshot_decides_everything() {
    let knowledge = Knowledge::builtin().unwrap();
    let cluster = Cluster::new(SIX);
    let snapshot = cluster.measure(5, &|_, to, _, path| {
        if to == "arc-3" {
            path.rate_bps *= 0.4;
        }
    });
    assert_eq!(diagnose(&snapshot, &knowledge), diagnose(&snapshot.clone(), &knowledge));
    assert!(diagnose(&Snapshot::default(), &knowledge).findings.is_empty());
}

#[test]
fn a_default_that_all_share_can_be_the_cause() {
    let knowledge = Knowledge::builtin().unwrap();
    let mut cluster = Cluster::new(THREE);
    for host in cluster.hosts() {
        cluster.set(host, "sysctl.net.ipv4.tcp_rmem", FactValue::Text("4096 65536 131072".to_owned()));
    }
    let snapshot = cluster.measure(11, &|_, _, _, path| path.window = Some((65536.0, true)));
    let found = diagnose(&snapshot, &knowledge);
    assert_eq!(found.findings[0].places[0].suspect, Suspect::All, "{}", found.headline);
    assert_eq!(found.findings[0].causes[0].id, "tcp-rmem-small", "{}", found.findings[0].sentence);
    let change = &found.findings[0].causes[0].remedy.as_ref().unwrap().changes;
    assert_eq!(change.len(), 3);
}

#[test]
fn a_lost_host_is_a_gap_and_no_finding() {
    let knowledge = Knowledge::builtin().unwrap();
    let cluster = Cluster::new(SIX);
    let mut snapshot =
        cluster.measure(12, &|from, to, _, path| path.blocked = from == "arc-3" || to == "arc-3");
    let lost = |what: GapSubject| Gap { what, reason: "it closed the stream".to_owned() };
    // Taken up again, it was there when nothing came through.
    snapshot.gaps.push(lost(GapSubject::Session("arc-3".to_owned())));
    assert!(!diagnose(&snapshot, &knowledge).findings.is_empty());
    snapshot.gaps.push(lost(GapSubject::Host("arc-3".to_owned())));
    let found = diagnose(&snapshot, &knowledge);
    assert!(found.findings.is_empty(), "{}", found.headline);
    assert_eq!(found.blind.len(), 2);
}

#[test]
fn a_single_slow_pair_is_tested_again_before_it_is_reported() {
    let knowledge = Knowledge::builtin().unwrap();
    let cluster = Cluster::new(SIX);
    let slow = |from: &str, to: &str, _: Layer, path: &mut cluster::Path| {
        if from == "arc-3" && to == "arc-5" {
            path.rate_bps *= 0.3;
        }
    };
    let mut snapshot = cluster.measure(13, &slow);
    assert!(diagnose(&snapshot, &knowledge).findings.is_empty());
    let wanted = second_stage(&snapshot, &knowledge, 5000);
    assert!(wanted.iter().all(|t| t.second_stage && t.serial && t.id >= 5000), "{wanted:?}");
    assert!(wanted.iter().any(|t| t.from == "arc-3" && t.to == "arc-5"), "{wanted:?}");
    // The repetition agrees: now it is a finding.
    let again: Vec<_> = snapshot
        .samples
        .iter()
        .filter(|s| s.test.from == "arc-3" && s.test.to == "arc-5")
        .cloned()
        .map(|mut s| {
            s.test.second_stage = true;
            s
        })
        .collect();
    snapshot.samples.extend(again);
    let found = diagnose(&snapshot, &knowledge);
    assert_eq!(found.findings.len(), 1, "{}", found.headline);
    assert_eq!(found.findings[0].affected, [("arc-3".to_owned(), "arc-5".to_owned())]);
}

/// Where transfers are few, a path that answers requests is not one through which nothing gets.
#[test]
fn a_dead_pair_is_no_dead_group_where_its_neighbours_answer() {
    let knowledge = Knowledge::builtin().unwrap();
    let cluster = Cluster::new(TWELVE);
    let is_dead = |from: &str, to: &str| [("n-2", "n-11"), ("n-11", "n-2")].contains(&(from, to));
    let groups = |sample: &Sample| [&sample.test.from, &sample.test.to].map(|host| cluster.group_of(host));
    let is_between = |sample: &Sample| groups(sample).contains(&"hv-1") && groups(sample).contains(&"hv-5");
    let mut judged = 0;
    for seed in 0..30 {
        let mut snapshot = cluster.measure(seed, &|from, to, layer, path| {
            path.blocked |= layer == Layer::Overlay && is_dead(from, to);
        });
        // Between these groups only requests were sent in the overlay, and one transfer on the dead path.
        snapshot.samples.retain(|s| {
            let is_open = s.test.layer == Layer::Underlay || !is_between(s);
            is_open || is_dead(&s.test.from, &s.test.to) || s.test.kind.is::<RttPlan>()
        });
        let of_overlay = |s: &&Sample| s.test.layer == Layer::Overlay && is_between(s);
        let answered =
            snapshot.samples.iter().filter(of_overlay).filter(|s| matches!(s.outcome, Outcome::Measured(_)));
        if answered.count() < 3 {
            continue;
        }
        let found = diagnose(&snapshot, &knowledge);
        let Some(first) = found.findings.first() else { continue };
        judged += 1;
        assert!(!found.headline.contains("hv-"), "seed {seed}: {}", found.headline);
        assert!(first.affected.iter().all(|(from, to)| is_dead(from, to)), "seed {seed}: {}", found.headline);
    }
    assert!(judged > 10, "{judged}");
}

/// A bucket may let a second through: a host with a limiter is measured longer, once in each direction that
/// it may hold back, before its full rate is believed.
#[test]
fn a_limiter_that_was_not_felt_is_measured_longer_once() {
    let knowledge = Knowledge::builtin().unwrap();
    let mut cluster = Cluster::new(THREE);
    let longer = |cluster: &Cluster| {
        let mut snapshot = cluster.measure(4, &|_, _, _, _| {});
        let is_long = |t: &Test| t.kind.get::<TcpPlan>().is_some_and(|tcp| tcp.duration_ms >= 2000);
        let wanted = second_stage(&snapshot, &knowledge, 5000);
        let long: Vec<Test> = wanted.into_iter().filter(is_long).collect();
        let measured = |test: &Test| {
            let like =
                |s: &&Sample| (&s.test.from, &s.test.to, s.test.layer) == (&test.from, &test.to, test.layer);
            let usual = snapshot.samples.iter().filter(like).find(|s| s.test.kind.is::<TcpPlan>());
            Sample { test: test.clone(), ..usual.expect("the path was measured").clone() }
        };
        let more: Vec<Sample> = long.iter().map(measured).collect();
        snapshot.samples.extend(more);
        let left = second_stage(&snapshot, &knowledge, 6000).iter().filter(|t| is_long(t)).count();
        (long, left)
    };
    assert_eq!(longer(&cluster).0, []);
    cluster.set(
        "node-2",
        "nic.eth0.filter.egress.0",
        FactValue::Text("matchall, police 1000 bit/s".to_owned()),
    );
    let (long, left) = longer(&cluster);
    assert_eq!(left, 0, "{long:?}");
    assert_eq!(long.iter().map(|t| t.from.as_str()).collect::<Vec<_>>(), ["node-2"], "{long:?}");
    cluster.set("node-2", "firewall.input.limits", FactValue::Int(1));
    let (long, left) = longer(&cluster);
    assert_eq!(left, 0, "{long:?}");
    for sides in [|t: &Test| t.from.clone(), |t: &Test| t.to.clone()] {
        assert_eq!(long.iter().map(sides).filter(|host| host == "node-2").count(), 1, "{long:?}");
    }
}

/// Probabilities of what explains a slow receiver that has one more fact than the others, by id.
fn causes_with(key: &str, value: FactValue) -> Vec<(String, f64)> {
    let mut cluster = Cluster::new(SIX);
    cluster.set("arc-3", key, value);
    let snapshot = cluster.measure(5, &|_, to, _, path| {
        if to == "arc-3" {
            path.rate_bps *= 0.4;
        }
    });
    let found = diagnose(&snapshot, &Knowledge::builtin().expect("the knowledge is good"));
    found.findings[0].causes.iter().map(|c| (c.id.clone(), c.probability)).collect()
}

#[test]
fn a_filter_or_program_that_only_the_suspect_has_competes() {
    let filter = "nic.eth0.filter.ingress.0";
    let known = causes_with(filter, FactValue::Text("matchall, police 80000000 bit/s drop".to_owned()));
    assert_eq!(known[0].0, "filter-drops", "{known:?}");
    let program = causes_with("nic.eth0.xdp", FactValue::Text("driver guard 12345678".to_owned()));
    assert!(program.iter().any(|(id, p)| id == "xdp-program-drops" && *p > 0.2), "{program:?}");
    // What no cause speaks of is no benign difference either.
    let unknown = causes_with(filter, FactValue::Text("u32, skbedit".to_owned()));
    let id = RankedCause::id_of_unknown(filter);
    assert!(unknown.iter().any(|(found, p)| *found == id && *p > 0.1), "{unknown:?}");
}

#[test]
fn a_count_of_zero_is_no_difference_from_hosts_without_the_count() {
    let key = "firewall.input.drops";
    let id = RankedCause::id_of_unknown(key);
    let competes = |count| causes_with(key, FactValue::Int(count)).iter().any(|(found, _)| *found == id);
    assert!(competes(2));
    assert!(!competes(0));
}

/// A limit of what is received also holds the acknowledgements of what is sent back.
#[test]
fn a_limit_in_the_input_is_no_limit_of_both_directions() {
    for (hook, words) in [("input", "what it receives"), ("output", "what it sends")] {
        let mut cluster = Cluster::new(SIX);
        cluster.set("arc-3", &format!("firewall.{hook}.limits"), FactValue::Int(1));
        let snapshot = cluster.measure(7, &|from, to, _, path| {
            if [from, to].contains(&"arc-3") {
                path.rate_bps *= 0.3;
            }
        });
        let found = diagnose(&snapshot, &Knowledge::builtin().unwrap());
        assert_eq!(found.findings[0].causes[0].id, "firewall-rate-limit", "{}", found.headline);
        assert!(found.findings[0].sentence.contains(words), "{}", found.findings[0].sentence);
    }
}

#[test]
fn a_rule_that_was_only_read_has_the_direction_of_its_hook() {
    let direction = |hook: &str| {
        let mut cluster = Cluster::new(SIX);
        cluster.set("arc-3", &format!("firewall.{hook}.random"), FactValue::Int(1));
        let snapshot = cluster.measure(5, &|_, _, _, _| {});
        let found = diagnose(&snapshot, &Knowledge::builtin().expect("the knowledge is good"));
        assert_eq!(found.findings[0].causes[0].id, "firewall-random-drop");
        let at = found.findings[0].places.first().expect("where");
        assert_eq!(at.suspect, Suspect::Host("arc-3".to_owned()));
        at.direction
    };
    assert_eq!(direction("input"), Direction::Rx);
    assert_eq!(direction("postrouting"), Direction::Tx);
}
