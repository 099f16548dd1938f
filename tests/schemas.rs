//! The schema files and the configuration page are what the Rust types say, and real records obey
//! the schemas. A run with `REWRITE=1` writes the files.

use std::{fs, path::Path};

use snapshots::{ArchiveTable, UpdateTable};
use types::{config, schema};

use super::support::check_golden;

#[test]
fn schema_files_have_not_drifted() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/topics");
    let mut expected = Vec::new();
    for (name, schema) in schema::schemas().into_iter().chain(server::api::forget_schemas()) {
        check_golden(&format!("schemas/topics/{name}.v1.json"), &schema::schema_text(&schema));
        expected.push(directory.join(format!("{name}.v1.json")));
    }
    for file in fs::read_dir(&directory).unwrap() {
        assert!(expected.contains(&file.unwrap().path()), "a schema file that no type makes");
    }
}

#[test]
fn statements_of_tables_have_not_drifted() {
    for table in ArchiveTable::ALL {
        check_golden(&format!("schemas/tables/{}.v1.json", table.name()), &table.statement());
    }
    for table in UpdateTable::ALL {
        check_golden(&format!("schemas/tables/snapshot-{}.v1.json", table.name()), &table.statement());
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/tables");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), ArchiveTable::ALL.len() + UpdateTable::ALL.len());
}

#[test]
fn the_schema_of_an_exported_bank_has_not_drifted() {
    check_golden("schemas/bank.v1.json", &schema::schema_text(&schema::bank_schema()));
}

#[test]
fn the_schema_of_a_pipeline_file_has_not_drifted() {
    check_golden("schemas/pipeline.v1.json", &schema::schema_text(&schema::pipeline_schema()));
}

#[test]
fn the_openapi_document_has_not_drifted() {
    check_golden("schemas/openapi.v1.json", server::openapi());
}

/// What would mislead a generator of types: an enum without a type, and a default that makes a version a field which
/// every client must send, or that no double holds.
#[test]
fn the_openapi_document_can_be_made_into_types() {
    fn walk(place: &str, value: &serde_json::Value) {
        let Some(fields) = value.as_object() else {
            let items = value.as_array().into_iter().flatten();
            return items.enumerate().for_each(|(at, item)| walk(&format!("{place}/{at}"), item));
        };
        if !place.ends_with("/properties") {
            assert!(!fields.contains_key("enum") || fields.contains_key("type"), "{place}: an enum without a type");
            assert!(!place.ends_with("/version") || !fields.contains_key("default"), "{place}: a default");
        }
        fields.iter().for_each(|(name, value)| walk(&format!("{place}/{name}"), value));
    }
    walk("", &serde_json::from_str(server::openapi()).unwrap());
}

/// Every key of a pipeline file is on the page, described as its doc comment says.
#[test]
fn the_page_of_configuration_has_not_drifted() {
    check_golden("docs/configuration.md", &config::reference_page());
}

#[test]
fn pipeline_files_obey_their_schema() {
    let schema = serde_json::to_value(schema::pipeline_schema()).unwrap();
    for file in super::pipelines::files() {
        let table: toml::Table = fs::read_to_string(&file).unwrap().parse().unwrap();
        super::support::obeys(&serde_json::to_value(table).unwrap(), &schema, &schema, &file.display().to_string());
    }
}

/// The properties that a schema names are those that a record has.
#[test]
fn records_of_the_sample_have_the_fields_of_their_schema() {
    let home = tempfile::tempdir().unwrap();
    let mut service = super::support::open(&super::support::pipeline(home.path(), ""));
    super::support::ingest(&mut service, &super::support::data("sample.jsonl"));
    let evidence = super::support::ask(&service, "sample/harbour", "What does Marta sing?");
    let memory = service.log().read(logs::Topic::Memory, 0, 0, 1).unwrap().records.remove(0);
    let records = [
        ("memory", serde_json::from_slice(&memory.value.unwrap()).unwrap()),
        ("answers", serde_json::to_value(&evidence).unwrap()),
        ("questions", serde_json::to_value(&evidence.question).unwrap()),
    ];
    for (name, record) in records {
        let (_, schema) = schema::schemas().into_iter().find(|(n, _)| *n == name).unwrap();
        let schema = serde_json::to_value(&schema).unwrap();
        let object: &serde_json::Map<String, serde_json::Value> = record.as_object().unwrap();
        for field in schema["required"].as_array().unwrap() {
            assert!(object.contains_key(field.as_str().unwrap()), "{name}: {field} is missing");
        }
        for field in object.keys() {
            assert!(schema["properties"].get(field).is_some(), "{name}: {field} is not in the schema");
        }
    }
}
