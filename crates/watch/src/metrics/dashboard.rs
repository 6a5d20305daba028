//! A dashboard for Grafana, made of the table of panels.

use serde_json::{Value, json};

use super::{
    ACTIVE_LOSS, CHANGES, DOWNLOAD_RATE, DOWNLOADS_FAILED, GAPS, HOSTS, RECEIVED, RECEIVED_LOST, RTT, SENT,
    SENT_LOST, SLOW, UNDELIVERED, WATCHED,
};

/// A panel: a query, what its lines are called, and its unit as Grafana names it.
struct Panel {
    title: &'static str,
    expr: String,
    legend: &'static str,
    unit: &'static str,
}

/// Of hosts that are chosen in the dashboard.
const CHOSEN: &str = "{host=~\"$host\"}";

fn panels() -> Vec<Panel> {
    let panel = |title, expr, legend, unit| Panel { title, expr, legend, unit };
    let rate = |name: &str| format!("rate({name}{CHOSEN}[$__rate_interval])");
    let share = |lost: &str, all: &str| format!("{} / {}", rate(lost), rate(all));
    let quantile = |quantile: &str| {
        let rate = format!("rate({}_bucket{CHOSEN}[$__rate_interval])", RTT.name);
        format!("histogram_quantile({quantile}, {rate})")
    };
    let suspect = "{{suspect}} {{direction}}";
    let download = "{{url}} {{front_end}} {{host}}";
    vec![
        panel("Alarms", ACTIVE_LOSS.name.to_owned(), suspect, "percentunit"),
        panel("Hosts watched", format!("sum({})", WATCHED.name), "watched", "short"),
        panel("Hosts", HOSTS.name.to_owned(), "hosts", "short"),
        panel("Loss, received", share(RECEIVED_LOST.name, RECEIVED.name), "{{host}}", "percentunit"),
        panel("Loss, sent", share(SENT_LOST.name, SENT.name), "{{host}}", "percentunit"),
        panel("RTT, median", quantile("0.5"), "{{host}}", "s"),
        panel("RTT, 95th percentile", quantile("0.95"), "{{host}}", "s"),
        panel("Times slower than usual", SLOW.name.to_owned(), "{{kind}} {{suspect}}", "none"),
        panel("Downloads", format!("{}{CHOSEN}", DOWNLOAD_RATE.name), download, "Bps"),
        panel(
            "Downloads that failed",
            format!("increase({}{CHOSEN}[1h])", DOWNLOADS_FAILED.name),
            download,
            "short",
        ),
        panel("Settings changed", format!("increase({}{CHOSEN}[1h])", CHANGES.name), "{{host}}", "short"),
        panel("Sessions lost", format!("increase({}{CHOSEN}[1h])", GAPS.name), "{{host}}", "short"),
        panel("Notifications that failed", format!("increase({}[1h])", UNDELIVERED.name), "failed", "short"),
    ]
}

/// The dashboard as JSON.
#[must_use]
pub fn dashboard() -> Value {
    const COLUMNS: usize = 2;
    let source = json!({ "type": "prometheus", "uid": "${datasource}" });
    let panels: Vec<Value> = panels()
        .iter()
        .enumerate()
        .map(|(at, panel)| {
            json!({
                "id": at + 1,
                "type": "timeseries",
                "title": panel.title,
                "datasource": source,
                "gridPos": { "h": 8, "w": 12, "x": at % COLUMNS * 12, "y": at / COLUMNS * 8 },
                "fieldConfig": { "defaults": { "unit": panel.unit, "min": 0 }, "overrides": [] },
                "targets": [{ "refId": "A", "datasource": source, "expr": panel.expr, "legendFormat": panel.legend }],
            })
        })
        .collect();
    let hosts = format!("label_values({}, host)", WATCHED.name);
    json!({
        "uid": "linerate-watch",
        "title": "linerate watch",
        "tags": ["linerate"],
        "schemaVersion": 38,
        "time": { "from": "now-6h", "to": "now" },
        "refresh": "1m",
        "panels": panels,
        "templating": { "list": [
            { "name": "datasource", "type": "datasource", "query": "prometheus" },
            {
                "name": "host", "type": "query", "datasource": source, "query": hosts, "refresh": 2,
                "multi": true, "includeAll": true, "allValue": ".*",
            },
        ] },
    })
}
