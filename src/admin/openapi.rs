//! `/openapi.json`: the control plane, described.

use axum::Json;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::error::{ErrorBody, ErrorDetail};
use super::{audit_log, flags, health, periods, reservations, vault_keys};

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
        periods::retrieve, audit_log::list,
        health::healthz, health::readyz, serve,
    ),
    components(schemas(ErrorBody, ErrorDetail)),
    security(("admin_token" = [])),
    modifiers(&AdminTokenScheme),
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

/// The document as it is served.
pub fn openapi_json() -> Document {
    AdminApi::openapi()
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "Health", security(()),
    responses((status = 200, description = "An OpenAPI document.")),
)]
pub(super) async fn serve() -> Json<Document> {
    Json(openapi_json())
}

#[cfg(test)]
mod tests {
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
