//! `docs/reference/schemas.json`, against which tests hold what commands print.

use std::path::Path;

use serde_json::Value;

/// Fails where a value is not the published document of this name.
pub fn hold(document: &str, value: &Value) {
    let flaws = Schemas::published().flaws(document, value);
    assert!(flaws.is_empty(), "not a document `{document}`: {flaws:?}\n{value:#}");
}

/// The published schemas.
#[derive(Debug)]
pub struct Schemas(Value);

impl Schemas {
    /// Of this workspace.
    #[must_use]
    pub fn published() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas.json");
        Self(serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap())
    }

    /// Names of the documents.
    #[must_use]
    pub fn documents(&self) -> Vec<&str> {
        self.0["$defs"].as_object().unwrap().keys().map(String::as_str).collect()
    }

    /// Why a document has no verdict as `summary`; `None` for one that must have it.
    #[must_use]
    pub fn unjudged(&self, document: &str) -> Option<&str> {
        self.0["$defs"][document]["$comment"].as_str()?.strip_prefix("no `summary`: ")
    }

    /// Why a value is not the document of this name: another shape, or no verdict.
    #[must_use]
    pub fn flaws(&self, document: &str, value: &Value) -> Vec<String> {
        let mut schema = self.0.clone();
        assert!(schema["$defs"][document].is_object(), "no schema of {document}");
        // What every verdict has, whatever the schema of the document asks for.
        if self.unjudged(document).is_none() && !value["summary"]["findings"].is_array() {
            return vec![format!("/summary: {document} without a verdict")];
        }
        schema["$ref"] = format!("#/$defs/{document}").into();
        let schema = jsonschema::validator_for(&schema).unwrap();
        schema.iter_errors(value).map(|flaw| format!("{}: {flaw}", flaw.instance_path())).collect()
    }
}
