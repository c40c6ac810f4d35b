//! The admin API as the commands use it: one request, one JSON object or its error.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::config::{BaseUrl, Environment, SecretFile};

/// A command that writes waits for one commit; a minute of silence is a broken server.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Reading Stripe's feed over a gap takes as long as it takes: at twenty reads a second this is a hundred
/// thousand lost charges.
const PATIENT_TIMEOUT: Duration = Duration::from_mins(90);

/// A hundred vault keys with full metadata are some 3 MiB.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Where the admin API is, and how its answer is printed. The token comes from `SPENDCAP_ADMIN_TOKEN` or
/// the file that `SPENDCAP_ADMIN_TOKEN_FILE` names: an argument would show in the list of processes.
#[derive(Debug, Args)]
pub(super) struct AdminArgs {
    /// Where the admin API is
    #[arg(
        long,
        value_name = "URL",
        env = "SPENDCAP_ADMIN_URL",
        hide_env_values = true,
        default_value = "http://127.0.0.1:12112",
        help_heading = HEADING
    )]
    admin_url: String,
    /// Print the API's JSON instead of a table
    #[arg(long, help_heading = HEADING)]
    pub(super) json: bool,
}

const HEADING: &str =
    "Admin API (its token: SPENDCAP_ADMIN_TOKEN, or its file: SPENDCAP_ADMIN_TOKEN_FILE)";

/// One server's admin API.
#[derive(Debug)]
pub(super) struct AdminClient {
    base: BaseUrl,
    token: SecretString,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeout: Duration,
}

impl AdminArgs {
    /// A client for that server.
    pub(super) fn client(&self) -> anyhow::Result<AdminClient> {
        let base = BaseUrl::parse(&self.admin_url).with_context(|| {
            format!(
                "--admin-url is http://host:port or https://host, not {}",
                self.admin_url
            )
        })?;
        AdminClient::new(base, token(&Environment::of_process())?)
    }
}

impl AdminClient {
    /// A client that presents `token`.
    pub(super) fn new(base: BaseUrl, token: SecretString) -> anyhow::Result<Self> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(provider)
            .context("TLS cannot be set up")?
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            // A command whose answer is lost may have been carried out: never sent twice by itself.
            .retry_canceled_requests(false)
            .build(connector);
        Ok(Self {
            base,
            token,
            client,
            timeout: TIMEOUT,
        })
    }

    /// The same for a command that reads from Stripe.
    pub(super) fn patient(self) -> Self {
        Self {
            timeout: PATIENT_TIMEOUT,
            ..self
        }
    }

    /// Reads the object or list at `path`, which is encoded already.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::GET, path, Full::default()).await
    }

    /// Sends a command.
    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let body = Full::from(body.to_string());
        self.send(Method::POST, path, body).await
    }

    async fn send(&self, method: Method, path: &str, body: Full<Bytes>) -> anyhow::Result<Value> {
        let uri = Uri::builder()
            .scheme(self.base.scheme().clone())
            .authority(self.base.authority().clone())
            .path_and_query(path)
            .build()
            .with_context(|| format!("not a path of the admin API: {path}"))?;
        let mut authorization =
            HeaderValue::from_str(&format!("Bearer {}", self.token.expose_secret()))
                .context("the admin token is visible ASCII")?;
        authorization.set_sensitive(true);
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(AUTHORIZATION, authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(body)?;
        let exchange = async {
            let response = self.client.request(request).await?;
            let (status, body) = (response.status(), response.into_body());
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| anyhow!("the answer broke off: {error}"))?;
            anyhow::Ok((status, body.to_bytes()))
        };
        let (status, body) = tokio::time::timeout(self.timeout, exchange)
            .await
            .map_err(|_| anyhow!("no answer within {} s", self.timeout.as_secs()))
            .flatten()
            .with_context(|| {
                format!(
                    "the admin API at {} does not answer (is `serve` running, and is this its \
                     admin.listen? --admin-url names another)",
                    self.base
                )
            })?;
        let answer: Value = serde_json::from_slice(&body)
            .with_context(|| format!("{} answered {status}, not JSON", self.base))?;
        if status.is_success() {
            return Ok(answer);
        }
        let error = &answer["error"];
        let message = error["message"].as_str().unwrap_or("no message");
        match error["code"].as_str() {
            Some(code) => bail!("{message} ({code})"),
            None => bail!("{message} ({status})"),
        }
    }
}

/// `value` as it stands in a path or a query.
pub(super) fn encoded(value: &str) -> String {
    form_urlencoded::byte_serialize(value.as_bytes()).collect()
}

/// A path with the filters that are set.
pub(super) fn with_query(path: &str, filters: &[(&str, Option<&str>)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in filters {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{query}")
    }
}

fn token(environment: &Environment) -> anyhow::Result<SecretString> {
    const VARIABLE: &str = "SPENDCAP_ADMIN_TOKEN";
    const FILE: &str = "SPENDCAP_ADMIN_TOKEN_FILE";
    match (environment.get(VARIABLE), environment.get(FILE)) {
        (Some(token), None) => Ok(SecretString::from(token.trim())),
        (None, Some(path)) => SecretFile::new(path)
            .read()
            .map_err(|error| anyhow!("{FILE}: {path} {error}")),
        (Some(_), Some(_)) => bail!("set {VARIABLE} or {FILE}, not both"),
        (None, None) => bail!("set {VARIABLE} to an admin token, or {FILE} to its file"),
    }
}
