//! The schema files are what the Rust types say, and real records obey them.

use std::{fs, path::Path};

use ripplemem::{
    schema,
    snapshot::{Table, UpdateTable},
};

/// Run with `REWRITE=1` to write them anew.
#[test]
fn schema_files_have_not_drifted() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/topics");
    let mut expected = Vec::new();
    for (name, schema) in schema::schemas() {
        let path = directory.join(format!("{name}.v1.json"));
        let text = schema::text(&schema);
        if std::env::var_os("REWRITE").is_some() {
            fs::write(&path, &text).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap_or_default(), text, "{} has drifted", path.display());
        expected.push(path);
    }
    for file in fs::read_dir(&directory).unwrap() {
        assert!(expected.contains(&file.unwrap().path()), "a schema file that no type makes");
    }
}

/// Run with `REWRITE=1` to write them anew.
#[test]
fn statements_of_tables_have_not_drifted() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/tables");
    for table in Table::ALL {
        let path = directory.join(format!("{}.v1.json", table.name()));
        if std::env::var_os("REWRITE").is_some() {
            fs::create_dir_all(&directory).unwrap();
            fs::write(&path, table.statement()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap_or_default(), table.statement(), "{} has drifted", path.display());
    }
    for table in UpdateTable::ALL {
        let path = directory.join(format!("snapshot-{}.v1.json", table.name()));
        if std::env::var_os("REWRITE").is_some() {
            fs::write(&path, table.statement()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap_or_default(), table.statement(), "{} has drifted", path.display());
    }
    assert_eq!(fs::read_dir(&directory).unwrap().count(), Table::ALL.len() + UpdateTable::ALL.len());
}

/// Run with `REWRITE=1` to write it anew.
#[test]
fn the_schema_of_an_evaluation_has_not_drifted() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/eval.v1.json");
    let text = schema::text(&schema::eval());
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), text, "{} has drifted", path.display());
}

/// Run with `REWRITE=1` to write it anew.
#[test]
fn the_schema_of_an_exported_bank_has_not_drifted() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/bank.v1.json");
    let text = schema::text(&schema::bank());
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), text, "{} has drifted", path.display());
}

/// The properties that a schema names are those that a record has.
#[test]
fn records_of_the_sample_have_the_fields_of_their_schema() {
    let home = tempfile::tempdir().unwrap();
    let mut service = super::support::open(&super::support::pipeline(home.path(), ""));
    super::support::ingest(&mut service, &super::support::data("sample.jsonl"));
    let evidence = super::support::ask(&service, "sample/harbour", "What does Marta sing?");
    let memory = service.log().read(ripplemem::log::Topic::Memory, 0, 0, 1).unwrap().records.remove(0);
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
