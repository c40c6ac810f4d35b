//! `/openapi.json`: the control plane, described.

use axum::Json;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{
    KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi as Document, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{Modify, OpenApi};

use super::error::{ErrorBody, ErrorDetail};
use super::{audit_log, flags, health, metrics, periods, reconcile, reservations, vault_keys};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "spendcap admin API",
        description = "Vault keys, reservations, flags, billing periods and the audit log.",
    ),
    paths(
        vault_keys::create, vault_keys::list, vault_keys::retrieve, vault_keys::update,
        vault_keys::revoke, vault_keys::rotate,
        reservations::list, reservations::retrieve, reservations::resolve,
        flags::list, flags::acknowledge,
        periods::retrieve, reconcile::reconcile, audit_log::list,
        health::healthz, health::readyz, metrics::scrape, serve,
    ),
    components(schemas(ErrorBody, ErrorDetail)),
    security(("admin_token" = [])),
    modifiers(&AdminTokenScheme, &WhatAllHave),
)]
struct AdminApi;

struct AdminTokenScheme;

impl Modify for AdminTokenScheme {
    fn modify(&self, document: &mut Document) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("admin_token", SecurityScheme::Http(bearer));
    }
}

/// Every path under `/v1/` may be refused, and every command repeated.
struct WhatAllHave;

impl Modify for WhatAllHave {
    fn modify(&self, document: &mut Document) {
        let paths = &mut document.paths.paths;
        for item in paths.values_mut() {
            for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
                describe(operation);
            }
        }
        for (_, item) in paths
            .iter_mut()
            .filter(|(path, _)| path.starts_with("/v1/"))
        {
            for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
                let responses = &mut operation.responses.responses;
                responses.insert("4XX".to_owned(), error("The request is refused."));
                responses.insert("503".to_owned(), error("The ledger is away: try again."));
            }
            if let Some(command) = &mut item.post {
                let parameters = command.parameters.get_or_insert_default();
                parameters.push(RefOr::T(idempotency_key()));
            }
        }
    }
}

/// OpenAPI wants words for every response.
fn describe(operation: &mut Operation) {
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            "The object as it stands.".clone_into(&mut response.description);
        }
    }
}

fn error(description: &str) -> RefOr<Response> {
    let body = Ref::from_schema_name("ErrorBody");
    let content = ContentBuilder::new().schema(Some(body)).build();
    let response = ResponseBuilder::new().description(description);
    RefOr::T(response.content("application/json", content).build())
}

fn idempotency_key() -> Parameter {
    let description = "Makes the command repeatable. A repeat does nothing; it is answered with the \
        object as it stands then, `Idempotent-Replayed: true`, and no `secret`.";
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .description(Some(description))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

/// A point in time on input.
pub(super) fn time_schema() -> Schema {
    let seconds = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .description(Some("Unix seconds."));
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some("RFC 3339 with an offset."));
    OneOfBuilder::new().item(seconds).item(text).build().into()
}

/// The document as it is served.
pub fn openapi_json() -> Document {
    AdminApi::openapi()
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "Health", security(()),
    responses((status = 200, description = "An OpenAPI document.")),
)]
pub(super) async fn serve() -> Json<Document> {
    Json(openapi_json())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::admin::reservations::ReservationResolve;
    use crate::admin::vault_keys::{
        VaultKeyCreate, VaultKeyRevoke, VaultKeyRotate, VaultKeyUpdate,
    };

    fn document() -> Value {
        serde_json::to_value(openapi_json()).unwrap()
    }

    #[test]
    fn bodies_are_described_as_they_are_read() {
        let document = document();
        for (schema, fields) in [
            ("VaultKeyCreate", VaultKeyCreate::FIELDS.as_slice()),
            ("VaultKeyUpdate", VaultKeyUpdate::FIELDS.as_slice()),
            ("VaultKeyRevoke", VaultKeyRevoke::FIELDS.as_slice()),
            ("VaultKeyRotate", VaultKeyRotate::FIELDS.as_slice()),
            ("ReservationResolve", ReservationResolve::FIELDS.as_slice()),
        ] {
            let described = &document["components"]["schemas"][schema]["properties"];
            let mut described: Vec<&str> = described
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .collect();
            let mut fields = fields.to_vec();
            described.sort_unstable();
            fields.sort_unstable();
            assert_eq!(described, fields, "{schema}");
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_path_takes_a_token() {
        let document = document();
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(!references.is_empty());
        for reference in references {
            let pointer = reference.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        assert_eq!(document["security"], json!([{"admin_token": []}]));
        for (path, item) in document["paths"].as_object().unwrap() {
            for operation in item.as_object().unwrap().values() {
                let open = operation["security"] == json!([{}]);
                assert_eq!(open, !path.starts_with("/v1/"), "{path}");
            }
        }
    }

    #[test]
    fn operations_have_names_of_their_own() {
        let document = document();
        let paths = document["paths"].as_object().unwrap().values();
        let operations = paths.flat_map(|item| item.as_object().unwrap().values());
        let names: Vec<&str> = operations
            .map(|operation| operation["operationId"].as_str().unwrap())
            .collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), distinct.len(), "{names:?}");
        assert!(names.contains(&"create_vault_key"), "{names:?}");
    }

    fn collect(value: &Value, references: &mut Vec<String>) {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(reference)) = object.get("$ref") {
                    references.push(reference.clone());
                }
                object.values().for_each(|value| collect(value, references));
            }
            Value::Array(list) => list.iter().for_each(|value| collect(value, references)),
            _ => {}
        }
    }
}
